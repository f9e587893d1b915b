// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/golden"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// stepsOf returns the first steps of a seed.
func stepsOf(seed uint64, count int) (steps []Step) {
	for sequence := NewSequence(seed); len(steps) < count; {
		steps = append(steps, sequence.Next())
	}
	return steps
}

func TestSeedIsReproducible(t *testing.T) {
	expect.Equal(t, "steps of seed 7", fmt.Sprint(stepsOf(7, 500)), fmt.Sprint(stepsOf(7, 500)))
	expect.Equal(t, "the steps of seeds 7 and 8 are the same", false, fmt.Sprint(stepsOf(7, 500)) == fmt.Sprint(stepsOf(8, 500)))
}

// TestSequences: no step is something that an API server rejects, or that the documentation tells users not to do.
// None is impossible: testdata/variants.txt has all actions with all their variants.
func TestSequences(t *testing.T) {
	came, actionsCame := map[string]bool{}, map[string]bool{}
	for seed := range uint64(10) {
		idle := true
		for _, s := range stepsOf(seed, 1000) {
			expect.Equal(t, fmt.Sprintf("seed %d, step %v", seed, s), "", forbidden(s, idle))
			idle, actionsCame[s.Name] = s.Waits, true
			came[strings.TrimSuffix(s.Name+": "+s.Detail, ": ")] = true
			for _, is := range s.After.Subjects {
				blocked := slices.ContainsFunc(versions, func(version string) bool { return is.blocker(version) != "" })
				came["a removal is blocked"] = came["a removal is blocked"] || blocked
			}
		}
	}
	expect.Equal(t, "actions that came", len(actions), len(actionsCame))
	golden.Check(t, strings.Join(slices.Sorted(maps.Keys(came)), "\n")+"\n", "variants.txt")
}

func forbidden(s Step, idle bool) string {
	if !idle && (s.idle || s.Gentle) || s.Gentle && !s.Waits {
		return "something else may change"
	}
	for name, is := range s.After.Subjects {
		was := s.Before.Subjects[name]
		switch mine := s.Target == name; {
		case !is.exists() && (is.Policy != nil || len(is.Objects) > 0):
			return "there is something without a definition"
		case is.exists() && (is.version(hub) == nil || !slices.Contains(is.served(), crds.StorageVersion(&is.CRD))):
			return "a definition without its hub, or whose storage version is not served"
		case is.Policy != nil && is.Policy.StorageVersion != "" && string(is.Policy.StorageVersion) != crds.StorageVersion(&is.CRD):
			return "what the policy does not want is stored"
		case was.exists() && is.exists() && was.Fleet != is.Fleet && !was.active():
			return "a policy moved, and is not active"
		case mine && was.paused() && slices.Contains([]string{"move", "add version", "overwrite conversion", "promote"}, s.Name),
			mine && !was.migrates() && slices.Contains([]string{"retire", "retire by removal", "remove version"}, s.Name):
			return "the policy or its migrations are suspended"
		}
		for _, version := range versions {
			action := is.retirement(version).Action
			leaves := action != "" && action != v1alpha1.RetirementKeep
			if has := is.version(version); leaves && has != nil && has.Storage {
				return "what the policy retires is stored"
			}
			if was.retirement(version).Action != "" && !strings.HasPrefix(s.Name, "retire") && is.exists() && slices.Contains(was.served(), version) != slices.Contains(is.served(), version) {
				return "the policy retires " + version
			}
		}
	}
	for _, w := range s.Writes {
		before, after := s.Before.Subjects[w.Subject], s.After.Subjects[w.Subject]
		_, existed := before.Objects[w.Name]
		if !slices.Contains(before.served(), w.Version) || !slices.Contains(after.served(), w.Version) || w.Delete && !existed {
			return w.String() + ", which is not there all the while"
		}
	}
	return ""
}

// TestUnchanged: objects that a step writes, or can affect in any way, are not compared.
func TestUnchanged(t *testing.T) {
	before := newState([]string{"a"}, nil)
	before.Subjects["a"].begin("")
	before.Subjects["a"].Objects = map[string]record{"job-01": {}, "job-02": {}}
	s := Step{Target: "a", Before: before, After: before.clone()}
	s.After.Subjects["a"].add(joined)
	s.After.Subjects["a"].Objects["job-02"] = record{"hostPort": "other"}
	expect.Equal(t, "unchanged", []object{{"a", "job-01", hub}}, s.unchanged())
	s.breaks = true
	expect.Equal(t, "unchanged while another client's conversion is in force", nil, s.unchanged())
}

func TestMatches(t *testing.T) {
	for line, want := range map[string][]string{
		"etcd --data-dir=/x/etcd":                 {"etcd"},
		"localcluster-nodes /x":                   {"localcluster-nodes"},
		"/bin/conversion-operator manager --x=/x": {"conversion-operator manager"},
		"/bin/converter --rulesets=/x/rulesets":   {"converter"},
		"/bin/converter --rulesets=/other":        {},
		"bash -c etcd /x":                         {},
		"kube-apiserver --etcd-servers=/other":    {},
		"":                                        {},
	} {
		got := slices.DeleteFunc(slices.Clone(processes), func(name string) bool { return !matches(name, "/x", strings.Fields(line), nil) })
		expect.Equal(t, line, want, got)
	}
}

// TestScripts: testdata/commands.txt has what the scripts of actions run, if testdata/kubectl succeeds.
func TestScripts(t *testing.T) {
	stub, err := filepath.Abs("testdata")
	expect.NoError(t, err)
	t.Setenv("PATH", stub+":"+os.Getenv("PATH"))
	t.Setenv("COMMANDS", filepath.Join(t.TempDir(), "commands"))
	p := &player{teller: scenarios.NewTeller(io.Discard, ".")}
	for _, a := range actions {
		for _, variant := range a.each() {
			expect.NoError(t, p.script(t.Context(), Step{Number: 7, action: a, Target: "a", Detail: variant}))
		}
	}
	commands, err := os.ReadFile(os.Getenv("COMMANDS"))
	expect.NoError(t, err)
	golden.Check(t, string(commands), "commands.txt")
}

// TestRecordsMatchRules: over a long sequence of writes of an object, the model of objects, which does not use
// the operator's code, equals what the converter makes by the policy of the run.
func TestRecordsMatchRules(t *testing.T) {
	all := &Subject{Name: "a"}
	all.begin("blue")
	all.add(joined)
	all.add(nested)
	converter, err := conversion.NewConverter(compile.Compile(&all.CRD, all.Policy.Converter.Declarative).Ruleset)
	expect.NoError(t, err)
	convert := func(from *unstructured.Unstructured, version string) *unstructured.Unstructured {
		text, err := from.MarshalJSON()
		expect.NoError(t, err)
		text, err = converter.Convert(nil, text, version)
		expect.NoError(t, err)
		is := &unstructured.Unstructured{}
		expect.NoError(t, is.UnmarshalJSON(text))
		return is
	}
	random, is := rand.New(rand.NewPCG(3, 3)), (*unstructured.Unstructured)(nil)
	for range 300 {
		w := Write{object: object{"a", "job", pick(random, versions)}, record: randomRecord(random)}
		if is == nil {
			is, _ = w.empty()
		}
		is = convert(is, w.Version)
		is.Object["spec"] = w.spec(w.Version)
		all.Objects["job"] = all.Objects["job"].overwritten(w.Version, w.record)
		for _, version := range versions {
			converted := convert(is, version)
			now := Observation{Subject: all, Stored: []Stored{{"job", version, 0, converted.GetAnnotations()}},
				Reads: []read{{object{"a", "job", version}, converted.Object["spec"], nil}}}
			expect.NoError(t, Check([]Invariant{readsAsWritten, preserved}, now, now))
		}
	}
}
