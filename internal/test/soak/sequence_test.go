// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/golden"
)

// stepsOf returns the first steps of a seed.
func stepsOf(seed uint64, count int) []Step {
	sequence := NewSequence(seed)
	var steps []Step
	for range count {
		steps = append(steps, sequence.Next())
	}
	return append(steps, sequence.Finish()...)
}

func TestSeedIsReproducible(t *testing.T) {
	expect.Equal(t, "steps of seed 7", lines(stepsOf(7, 500)), lines(stepsOf(7, 500)))
	expect.Equal(t, "the steps of seeds 7 and 8 are the same", false, lines(stepsOf(7, 500)) == lines(stepsOf(8, 500)))
}

// TestAllVariantsOccur: testdata/variants.txt has all kinds with all their variants. None is impossible
// because of the preconditions.
func TestAllVariantsOccur(t *testing.T) {
	came := map[string]bool{}
	for seed := range uint64(10) {
		for _, s := range stepsOf(seed, 1000) {
			came[strings.TrimSpace(s.Kind+" "+s.Detail)] = true
			if _, blocker := s.blockedRemoval(); blocker != "" {
				came["retire, and it is blocked"] = true
			}
		}
	}
	for _, k := range kinds {
		if !slices.ContainsFunc(sortedKeys(came), func(one string) bool { return strings.HasPrefix(one, k.name) }) {
			t.Errorf("%q never comes", k.name)
		}
	}
	golden.Check(t, strings.Join(sortedKeys(came), "\n")+"\n", "variants.txt")
}

// TestStepsAreAllowed: no step is something that an API server rejects, or that the documentation
// tells users not to do. The last ones remove everything.
func TestStepsAreAllowed(t *testing.T) {
	for seed := range uint64(10) {
		idle, steps := true, stepsOf(seed, 1000)
		for _, s := range steps {
			expect.Equal(t, fmt.Sprintf("seed %d, step %v", seed, s), "", forbidden(s, idle))
			idle = s.Waits
		}
		for _, is := range steps[len(steps)-1].After {
			if is.Exists || is.Policy != nil || len(is.Objects) > 0 {
				t.Errorf("seed %d: there is something left: %+v", seed, is)
			}
		}
	}
}

func forbidden(s Step, idle bool) string {
	if !idle && kindNamed(s.Kind).whenIdle || s.Gentle && (!idle || !s.Waits) {
		return "something else may change"
	}
	for i, is := range s.After {
		before, mine := s.Before[i], s.Subject == s.Before[i].Name && s.Before[i].Exists && s.Kind != "end"
		switch {
		case !is.Exists && is.Policy != nil, is.Exists && (!slices.Contains(is.Versions, hub) || !slices.Contains(is.Served, is.Storage)):
			return "a policy without a definition, or a definition without its hub or storage version"
		case len(without(append(slices.Clone(is.Served), is.Deprecated...), is.Versions...)) > 0:
			return "a version is served that does not exist"
		case is.Policy != nil && is.Policy.StorageVersion != "" && string(is.Policy.StorageVersion) != is.Storage, is.leaves(is.Storage):
			return "what the policy does not want is stored"
		case before.Exists && is.Exists && before.Fleet != is.Fleet && !before.active():
			return "a policy moved, and is not active"
		case mine && before.suspended() && slices.Contains([]string{"move", "add version", "remove version", "overwrite conversion", "promote", "retire"}, s.Kind):
			return "the policy is suspended"
		case mine && !before.migrates() && (s.Kind == "retire" || s.Kind == "remove version"):
			return "migrations are suspended"
		case is.suspended() && !before.suspended() && before.Unsettled:
			return "something is half done"
		}
		for _, version := range versions {
			if mine && before.retirement(version).Action != "" && s.Kind != "retire" && slices.Contains(before.Served, version) != slices.Contains(is.Served, version) {
				return "the policy retires " + version
			}
		}
		for version, blocker := range is.Blocked {
			if !slices.Contains(is.Versions, version) || len(is.Objects[blocker].wouldLose(version, is.retirement(version).AcceptedLosses)) == 0 {
				return blocker + " keeps a version, and has nothing that would be lost"
			}
		}
	}
	return forbiddenWrite(s)
}

// forbiddenWrite: clients write at versions that are served throughout the step, and no two of them
// write the same object, except for labels.
func forbiddenWrite(s Step) string {
	written, labelled := map[string]string{}, map[string]bool{}
	for _, w := range s.Writes {
		before, after, object := in(s.Before, w.Subject), in(s.After, w.Subject), w.Subject+"/"+w.Name
		_, existed := before.Objects[w.Name]
		switch {
		case !slices.Contains(before.Served, w.Version) || !slices.Contains(after.Served, w.Version):
			return w.Version + " is not served all the while"
		case w.Do != putObject && !existed, w.Do != labelObject && after.blocksRemoval(w.Name):
			return w.Name + " does not exist, or keeps a version"
		case w.Do == labelObject:
			labelled[object] = true
		case written[object] != "":
			return "two clients write " + object
		default:
			written[object] = w.Do
		}
	}
	for object := range labelled {
		if written[object] == deleteObject {
			return object + " is deleted and labelled"
		}
	}
	return ""
}

// TestRetire: each action determines the whole state of a version, whatever the previous one was, and a
// removal keeps what the policy does not accept to lose.
func TestRetire(t *testing.T) {
	hasNote, hasBoth := map[string]any{joined: "note"}, map[string]any{joined: "note", nested: int64(3)}
	for detail, want := range map[string]struct {
		served, deprecated []string
		blocker            string
		left               map[string]any
	}{
		"v1 to Report":                      {versions, nil, "", hasBoth},
		"v1 to Deprecate":                   {versions, []string{joined}, "", hasBoth},
		"v1 to Unserve":                     {[]string{hub, nested}, []string{joined}, "", hasBoth},
		"v1 to Remove":                      {versions, []string{joined}, "job-2", hasBoth},
		"v1 to Remove accepting .spec.note": {[]string{hub, nested}, nil, "", map[string]any{nested: int64(3)}},
		"v2 to Remove accepting .spec":      {[]string{hub, joined}, nil, "", hasNote},
		"v2 to Remove accepting .spec.time": {versions, []string{nested}, "job-2", hasBoth},
	} {
		t.Run(detail, func(t *testing.T) {
			is := &Subject{Policy: &v1alpha1.ConversionPolicySpec{}, Versions: versions, Served: versions,
				Objects: map[string]Object{"job-1": {}, "job-2": {record: record{Own: hasBoth}}}}
			version, action, accepted := readRetirement(detail)
			is.retire(version, v1alpha1.RetirementDeprecate, nil)
			is.retire(version, action, accepted)
			got := []any{is.Served, is.Deprecated, is.Blocked[version], is.Objects["job-2"].Own}
			expect.Equal(t, "served, deprecated, kept by, and own fields", []any{want.served, want.deprecated, want.blocker, want.left}, got, cmpopts.EquateEmpty())
		})
	}
}

// TestReadings: objects that a step writes, or can affect in any way, are not compared.
func TestReadings(t *testing.T) {
	before := Subject{Name: "a", Served: []string{hub}, Objects: map[string]Object{"job-01": {}, "job-02": {}}}
	s := Step{Kind: "serve", Subject: "a", Writes: []Write{{Subject: "a", Name: "job-02"}}, Before: []Subject{before}, After: []Subject{{Served: versions}}}
	if got := readings(s); len(got) != 1 || got[0].name != "job-01" || got[0].version != hub {
		t.Errorf("it reads %+v", got)
	}
	s.Kind = "overwrite conversion"
	expect.Equal(t, "readings while another client's conversion is in force", 0, len(readings(s)))
}

func TestTargets(t *testing.T) {
	for line, want := range map[string][]string{
		"etcd --data-dir=/x/etcd":                 {"etcd"},
		"localcluster-nodes /x":                   {"the nodes"},
		"/bin/conversion-operator manager --x=/x": {"all managers", "one manager"},
		"/bin/conversion-operator serve --other":  nil,
		"bash -c etcd /x":                         nil,
		"kube-apiserver --etcd-servers=/other":    nil,
		"":                                        nil,
	} {
		got := slices.DeleteFunc(sortedKeys(targets), func(name string) bool { return !matches(targets[name], "/x", strings.Fields(line), nil) })
		if len(got)+len(want) > 0 && !slices.Equal(got, want) {
			t.Errorf("%q is taken for %q, want %q", line, got, want)
		}
	}
}

// TestRecordsMatchRules: over a long sequence of writes, the model of objects, which does not use
// the operator's code, equals what the converter makes by the policy of the run.
func TestRecordsMatchRules(t *testing.T) {
	all := &Subject{Name: "a", Versions: versions, Served: versions, Storage: hub}
	crd, err := all.Definition(nil)
	expect.NoError(t, err)
	all.adopt()
	converter, err := conversion.NewConverter(compile.Compile(crd, all.Policy.Converter.Declarative).Ruleset)
	expect.NoError(t, err)
	convert := func(text []byte, version string) *unstructured.Unstructured {
		converted, err := converter.Convert(nil, text, version)
		expect.NoError(t, err)
		object := &unstructured.Unstructured{}
		expect.NoError(t, object.UnmarshalJSON(converted))
		return object
	}
	objects, compared := map[string][]byte{}, 0
	for _, s := range stepsOf(3, 400) {
		for _, w := range s.Writes {
			if w.Subject != "a" || w.Do == labelObject {
				continue
			}
			all.write(w)
			if w.Do == deleteObject {
				delete(objects, w.Name)
				continue
			}
			object := w.object()
			if objects[w.Name] != nil {
				object = convert(objects[w.Name], w.Version)
				object.Object["spec"] = w.spec(w.Version)
			}
			objects[w.Name], err = json.Marshal(object.Object)
			expect.NoError(t, err)
			for _, version := range versions {
				converted, want := convert(objects[w.Name], version), all.Objects[w.Name]
				held, err := preservedIn(converted.GetAnnotations(), crdOf("a"))
				expect.NoError(t, err)
				now := Observation{Subject: Subject{Objects: map[string]Object{"x": want}}, Stored: map[string]Stored{"x": {version, 0, held}},
					Reads: map[string]map[string]read{version: {"x": asRead(converted, nil)}}}
				if wrong := append(violationsOf(readsDiffer, now, now), violationsOf(preservedDiffers, now, now)...); len(wrong) > 0 {
					t.Fatalf("step %d, %v: %q", s.Number, w, wrong)
				}
				compared++
			}
		}
	}
	if compared < 300 {
		t.Errorf("%d comparisons: the sequence writes next to nothing", compared)
	}
}
