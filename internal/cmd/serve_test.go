// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/webhook"
)

// rulesetText is a ruleset without rules.
func rulesetText(t *testing.T, crd string, versions ...string) []byte {
	t.Helper()
	text, err := (&conversion.Ruleset{Format: 2, CRD: crd, Group: "example.com", Kind: "CronTab", Hub: versions[0], Versions: versions}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func mountRulesets(t *testing.T, rulesets map[string][]byte) string {
	t.Helper()
	directory := t.TempDir()
	for name, text := range rulesets {
		if err := os.WriteFile(filepath.Join(directory, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

// TestServeFailsWithoutAllRulesets: a pod that cannot load one of its rulesets must not become
// ready.
func TestServeFailsWithoutAllRulesets(t *testing.T) {
	good := rulesetText(t, "crontabs.example.com", "v1")
	cases := map[string]struct {
		rulesets map[string][]byte
		want     string
	}{
		"none":                 {nil, "no ruleset (*.json) found in DIRECTORY: mount the rulesets there, or correct --rulesets"},
		"one of two is broken": {map[string][]byte{"a.json": good, "b.json": []byte("{")}, "load the ruleset DIRECTORY/b.json: "},
		"of two definitions": {map[string][]byte{"a.json": good, "b.json": rulesetText(t, "jobs.example.com", "v1")},
			"ruleset DIRECTORY/b.json is for jobs.example.com, and another one in DIRECTORY is for crontabs.example.com: "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			directory := mountRulesets(t, tc.rulesets)
			_, _, err := run("serve", "--rulesets="+directory, "--certificates="+directory)
			if want := strings.ReplaceAll(tc.want, "DIRECTORY", directory); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("error is %v, want %s", err, want)
			}
		})
	}
}

// TestServeLoadsAllRulesets by the hash of their text, with any file name.
func TestServeLoadsAllRulesets(t *testing.T) {
	first, second := rulesetText(t, "crontabs.example.com", "v1"), rulesetText(t, "crontabs.example.com", "v2")
	options := serveOptions{rulesets: mountRulesets(t, map[string][]byte{"a.json": first, "b.json": second, "c.txt": []byte("no plan")})}
	handler, _, err := options.newHandler(logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, webhook.RulesetsPath, nil))
	var got webhook.Rulesets
	if err := json.Unmarshal(recorder.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := []string{conversion.HashOf(first), conversion.HashOf(second)}
	slices.Sort(want)
	if diff := cmp.Diff(want, got.Hashes); diff != "" {
		t.Errorf("rulesets (-want +got):\n%s", diff)
	}
}
