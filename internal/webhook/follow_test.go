// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// mounted is a mounted ConfigMap or Secret. Like a kubelet, it replaces all files at once.
type mounted struct {
	t         *testing.T
	directory string
	updates   int
}

// update replaces the files: k8s.io/kubernetes/pkg/volume/util/atomic_writer.go.
func (m *mounted) update(files map[string][]byte) {
	m.t.Helper()
	m.updates++
	next := filepath.Join(m.directory, "..data-"+string(rune('a'+m.updates)))
	expect.NoError(m.t, os.Mkdir(next, 0o755))
	for name, content := range files {
		expect.NoError(m.t, os.WriteFile(filepath.Join(next, name), content, 0o600))
	}
	expect.NoError(m.t, os.Symlink(filepath.Base(next), filepath.Join(m.directory, "..data_tmp")))
	expect.NoError(m.t, os.Rename(filepath.Join(m.directory, "..data_tmp"), filepath.Join(m.directory, "..data")))
	for name := range files {
		_ = os.Symlink(filepath.Join("..data", name), filepath.Join(m.directory, name)) // it may exist
	}
	entries, err := os.ReadDir(m.directory)
	expect.NoError(m.t, err)
	for _, entry := range entries {
		if _, wanted := files[entry.Name()]; !wanted && !strings.HasPrefix(entry.Name(), "..") {
			expect.NoError(m.t, os.Remove(filepath.Join(m.directory, entry.Name())))
		}
	}
}

// ruleset is a stored ruleset without rules, and its hash.
func ruleset(t *testing.T, crd string, versions ...string) (hash string, stored []byte) {
	t.Helper()
	rules := &conversion.Ruleset{Format: conversion.RulesetFormat, CRD: crd, Group: "example.com", Kind: "CronTab", Hub: versions[0], Versions: versions}
	for _, spoke := range versions[1:] {
		rules.Spokes = append(rules.Spokes, conversion.Spoke{Version: spoke})
	}
	text, err := rules.Marshal()
	expect.NoError(t, err)
	return conversion.HashOf(text), conversion.Store(text)
}

// follower is a handler that follows a mounted ConfigMap.
type follower struct {
	*mounted
	rulesets *RulesetDirectory
	handler  *Handler
	now      time.Time
}

func newFollower(t *testing.T, shared bool, files map[string][]byte) *follower {
	t.Helper()
	f := &follower{mounted: &mounted{t: t, directory: t.TempDir()}, now: time.Now()}
	f.update(files)
	var err error
	f.rulesets, err = OpenRulesets(f.directory, logr.Discard(), shared)
	expect.NoError(t, err)
	f.rulesets.now = func() time.Time { return f.now }
	f.handler = NewHandler(f.rulesets.Rulesets(), HandlerOptions{Log: logr.Discard()})
	return f
}

// serves fails the test unless the handler serves these rulesets and no others.
func (f *follower) serves(when string, hashes ...string) {
	f.t.Helper()
	f.rulesets.update(f.handler)
	slices.Sort(hashes)
	expect.Equal(f.t, when+", it serves", fmt.Sprint(hashes), fmt.Sprint(f.handler.served.Load().hashes))
}

const crontabs = "crontabs.example.com"

// TestRulesetsAreFollowed: a pod serves a ruleset as soon as it is mounted, and the previous one
// until API servers no longer request it.
func TestRulesetsAreFollowed(t *testing.T) {
	before, storedBefore := ruleset(t, crontabs, "v1", "v1beta1")
	after, storedAfter := ruleset(t, crontabs, "v1", "v1beta1", "v1alpha1")
	key := func(hash string) string { return conversion.StoredName("crontabs", hash) }
	f := newFollower(t, false, map[string][]byte{key(before): storedBefore, "notes.txt": []byte("no ruleset")})
	f.serves("at first", before)

	f.update(map[string][]byte{key(before): storedBefore, key(after): storedAfter})
	f.serves("after an addition", before, after)

	f.update(map[string][]byte{key(after): storedAfter})
	f.serves("after a removal", before, after)
	f.now = f.now.Add(keepUnused - time.Second)
	f.handler.served.Load().rulesets[before].requested.Store(int64(time.Since(programBegan) + keepUnused))
	f.now = f.now.Add(2 * time.Second)
	f.serves("ten minutes later, while API servers request it", before, after)
	f.now = f.now.Add(2 * keepUnused)
	f.serves("ten minutes after the last request", after)

	if metrics := scrape(t, f.handler); strings.Contains(metrics, before) || !strings.Contains(metrics, after) {
		t.Errorf("metrics show other rulesets than %s:\n%s", after, metrics)
	}
	f.update(nil)
	f.now = f.now.Add(2 * keepUnused)
	f.serves("after all were removed", after)
}

// TestDamagedRulesetIsRefused: the pod says why it does not serve a ruleset, serves the others, and
// loads it once it is repaired.
func TestDamagedRulesetIsRefused(t *testing.T) {
	good, stored := ruleset(t, crontabs, "v1", "v1beta1")
	other, storedOther := ruleset(t, crontabs, "v2", "v1")
	foreign, storedForeign := ruleset(t, "jobs.example.com", "v1", "v1beta1")
	key := func(hash string) string { return conversion.StoredName("crontabs", hash) }
	f := newFollower(t, false, map[string][]byte{key(good): stored})

	f.update(map[string][]byte{key(good): stored, key(other): stored, key(foreign): storedForeign, key("0123456789abcdef"): []byte("no gzip")})
	f.serves("with damaged rulesets", good)
	expect.Contains(t, "the answer", get(f.handler, RulesetsPath),
		`"hashes":["`+good+`"]`,
		`"0123456789abcdef":"decompress the ruleset: unexpected EOF"`,
		`"`+other+`":"the ruleset has the hash `+good+`, not `+other+`"`,
		`"`+foreign+`":"it is for jobs.example.com, and others are for crontabs.example.com`)
	f.update(map[string][]byte{key(good): stored, key(other): storedOther})
	f.serves("after the repair", good, other)
	expect.Equal(t, "rulesets", 200, postTo(f.handler, ConvertPath+"/"+other, v1Review(`{"uid":"u","desiredAPIVersion":"example.com/v1","objects":[]}`)).Code)
}

// TestPanicWhileLoading: a ruleset that makes the compiler panic is not served, and counted. The pod
// serves the others, and loads it once it no longer does.
func TestPanicWhileLoading(t *testing.T) {
	good, stored := ruleset(t, crontabs, "v1", "v1beta1")
	bad, storedBad := ruleset(t, jobs, "v1", "v1beta1")
	f := newFollower(t, true, nil)
	panics := true
	f.rulesets.compile = func(hash string, stored []byte) (Ruleset, error) {
		if hash == bad && panics {
			panic("oh")
		}
		return LoadRuleset(hash, stored)
	}
	f.update(map[string][]byte{conversion.StoredName("crontabs", good): stored, conversion.StoredName("jobs", bad): storedBad})
	f.serves("with a ruleset that panics", good)
	expect.Equal(t, "rulesets", `{"hashes":["`+good+`"],"failed":{"`+bad+`":"`+errPanicLoading.Error()+`"}}`, get(f.handler, RulesetsPath))
	metrics := counted(scrape(t, f.handler))
	expect.Equal(t, fmt.Sprintf("the failure is counted in %v", metrics), true, slices.Contains(metrics, "rulesets_failed 1"))
	panics = false
	f.now = f.now.Add(listEvery)
	f.serves("without the panic", good, bad)
	expect.Equal(t, "failed rulesets", 0, len(f.handler.served.Load().failed))
}

func get(handler http.Handler, path string) string {
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
	return recorder.Body.String()
}
