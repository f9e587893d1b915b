// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// stepsOf returns the first steps of a seed.
func stepsOf(seed uint64, count int) []step {
	sequence := newSequence(seed)
	var steps []step
	for range count {
		steps = append(steps, sequence.next())
	}
	return append(steps, sequence.finish()...)
}

func TestSeedIsReproducible(t *testing.T) {
	if diff := cmp.Diff(stepsOf(7, 500), stepsOf(7, 500)); diff != "" {
		t.Errorf("the steps of seed 7 differ:\n%s", diff)
	}
	if cmp.Equal(stepsOf(7, 500), stepsOf(8, 500)) {
		t.Error("the steps of seeds 7 and 8 are the same")
	}
}

// TestAllVariantsOccur: no kind, and no variant of one, is impossible because of the preconditions.
func TestAllVariantsOccur(t *testing.T) {
	came := map[string]bool{}
	for seed := range uint64(10) {
		for _, s := range stepsOf(seed, 1000) {
			came[s.Kind+" "+s.Detail] = true
			for _, w := range s.Writes {
				came[string(w.Do)+" at "+w.Version] = true
			}
		}
	}
	want := []string{"write ", "end ", "abandon policy ", "adopt ", "rotate authority ", "trigger migration ",
		"suspend migrations ", "resume migrations ", "fill disk ", "age certificate ", "suspend policy ", "resume policy ",
		"no longer promote ", "prune storedVersions "}
	want = append(want, prefixed("kill ", processNames(nil))...)
	want = append(want, prefixed("stop ", processNames(nil))...)
	want = append(want, prefixed("delete pods ", podKinds(nil))...)
	want = append(want, prefixed("delete its ", childNames)...)
	want = append(want, prefixed("change policy ", changeNames(true))...)
	want = append(want, prefixed("begin ", places("in"))...)
	want = append(want, prefixed("move ", places("to"))...)
	for size := 1; size <= replicasAtMost; size++ {
		want = append(want, prefixed("scale fleet ", prefixedAll(fleetNames, fmt.Sprintf(" to %d", size)))...)
	}
	want = append(want, prefixed("scale manager from ", []string{"1 to 2", "1 to 3", "2 to 1", "2 to 3", "3 to 1", "3 to 2"})...)
	for _, kind := range []string{"rotate authority of fleet ", "replace fleet ", "age certificate of fleet "} {
		want = append(want, prefixed(kind, fleetNames)...)
	}
	want = append(want, prefixed("delete pods of fleet ", eachOf(fleetNames, onePod, allButOne))...)
	want = append(want, prefixed("edit rulesets of fleet ", eachOf(fleetNames, deleteRulesets, deleteRuleset, damageRuleset))...)
	want = append(want, prefixed("delete of fleet ", eachOf(fleetNames, fleetChildNames...))...)
	want = append(want, prefixed("overwrite conversion ", []string{strategyNone, foreignAuthority, foreignService})...)
	want = append(want, prefixed("retire "+hub+" to ", []string{"Report", "Deprecate", "Unserve"})...)
	for _, version := range without(versions, hub) {
		want = append(want, prefixed("retire "+version+" to ", []string{"Report", "Deprecate", "Unserve"})...)
		for _, accepted := range acceptances[version] {
			want = append(want, "retire "+removalOf(version, accepted))
		}
	}
	for _, kind := range []string{"store at ", "promote ", "no longer retire ", "serve ", "unserve ", "put at ", "label at ", "delete at "} {
		want = append(want, prefixed(kind, versions)...)
	}
	for _, kind := range []string{"add version ", "remove version "} {
		want = append(want, prefixed(kind, without(versions, hub))...)
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), sortedKeys(came)); diff != "" {
		t.Errorf("what comes differs from what should (-should +does):\n%s", diff)
	}
}

func prefixed(prefix string, texts []string) []string {
	var all []string
	for _, text := range texts {
		all = append(all, prefix+text)
	}
	return all
}

func prefixedAll(texts []string, suffix string) []string {
	var all []string
	for _, text := range texts {
		all = append(all, text+suffix)
	}
	return all
}

// TestStepsAreAllowed: no step is something that an API server rejects, or that the documentation
// tells users not to do.
func TestStepsAreAllowed(t *testing.T) {
	for seed := range uint64(10) {
		before, rests := newWorld().subjects(), true
		for _, s := range stepsOf(seed, 1000) {
			if kindNamed(s.Kind).whenIdle && !rests {
				t.Fatalf("seed %d, step %v: the step before is not waited for", seed, s)
			}
			checkFleets(t, seed, s, before, rests)
			for i, is := range s.After {
				checkSubject(t, seed, s, is)
				checkAuthors(t, seed, s, before[i], is)
				checkWrites(t, seed, s, before[i], is)
			}
			before, rests = s.After, s.Waits
		}
	}
}

func checkSubject(t *testing.T, seed uint64, s step, is subject) {
	t.Helper()
	switch {
	case !is.Exists:
		if is.Policy {
			t.Fatalf("seed %d, step %v: there is a policy without a definition", seed, s)
		}
	case !slices.Contains(is.Versions, hub), !slices.Contains(is.Served, is.Storage):
		t.Fatalf("seed %d, step %v: %+v lacks the hub, or does not serve what it stores", seed, s, is)
	case slices.ContainsFunc(slices.Concat(is.Served, is.Deprecated), func(version string) bool { return !slices.Contains(is.Versions, version) }):
		t.Fatalf("seed %d, step %v: %+v serves, or warns of, what it does not have", seed, s, is)
	}
	if is.Wanted != "" && is.Wanted != is.Storage || goes(is, is.Storage) {
		t.Fatalf("seed %d, step %v: %+v stores what the policy does not want to be stored", seed, s, is)
	}
	for version, blocker := range is.Blocked {
		if is.Retires[version] != v1alpha1.RetirementRemove || !slices.Contains(is.Versions, version) ||
			len(is.Records[blocker].wouldLose(version, is.Accepts[version])) == 0 {
			t.Fatalf("seed %d, step %v: %s keeps %s of %+v, and has nothing that would be lost", seed, s, blocker, version, is)
		}
	}
	if !is.Policy && (is.MigrationsSuspended || is.Suspended || is.Wanted != "" || len(is.Retires) > 0) {
		t.Fatalf("seed %d, step %v: %+v says what only a policy says", seed, s, is)
	}
}

// checkFleets: a fleet that has to change CRDs or rulesets has no user that stops it, and no step
// after which pods must convert takes the last pod.
func checkFleets(t *testing.T, seed uint64, s step, before []subject, rests bool) {
	t.Helper()
	if s.Gentle && (!rests || !s.Waits) {
		t.Fatalf("seed %d, step %v: no conversion must fail, while something else may change", seed, s)
	}
	for i, is := range s.After {
		if is.Fleet != "" && !slices.Contains(fleetNames, is.Fleet) {
			t.Fatalf("seed %d, step %v: %s uses the fleet %q", seed, s, is.Name, is.Fleet)
		}
		if before[i].Exists && is.Exists && before[i].Fleet != is.Fleet && (!before[i].active() || !is.active()) {
			t.Fatalf("seed %d, step %v: %s moved, and is not active", seed, s, is.Name)
		}
		needs := []string{"rotate authority of fleet", "edit rulesets of fleet", "delete of fleet", "replace fleet"}
		if slices.Contains(needs, s.Kind) && before[i].Exists && strings.HasSuffix(s.Detail, before[i].Fleet) && before[i].Fleet != "" && !before[i].active() {
			t.Fatalf("seed %d, step %v: %s does not follow", seed, s, is.Name)
		}
	}
	for _, f := range s.Fleets {
		if what, name := cutFleetOf(s); f.Replicas < 1 || name == f.Name && what != "" && f.Replicas < 2 {
			t.Fatalf("seed %d, step %v: fleet %s has %d pods", seed, s, f.Name, f.Replicas)
		}
	}
}

// cutFleetOf returns the fleet whose pods a step deletes, if it does.
func cutFleetOf(s step) (what, name string) {
	if s.Kind != "delete pods of fleet" {
		return "", ""
	}
	return cutFleet(s.Detail)
}

func goes(is subject, version string) bool {
	return is.Retires[version] != "" && is.Retires[version] != v1alpha1.RetirementReport
}

// checkAuthors: the author of a CRD does not change the versions of a policy, and a suspended
// or busy policy gets no step that it could not perform.
func checkAuthors(t *testing.T, seed uint64, s step, before, is subject) {
	t.Helper()
	if s.Subject != is.Name || !before.Exists || s.Kind == "end" {
		return
	}
	for _, version := range versions {
		same := slices.Contains(before.Served, version) == slices.Contains(is.Served, version) &&
			slices.Contains(before.Versions, version) == slices.Contains(is.Versions, version)
		if before.Retires[version] != "" && !same && s.Kind != "retire" {
			t.Fatalf("seed %d, step %v: the policy retires %s", seed, s, version)
		}
	}
	if before.Wanted != "" && before.Storage != is.Storage && s.Kind != "promote" {
		t.Fatalf("seed %d, step %v: the policy wants to store %s", seed, s, before.Wanted)
	}
	idle := []string{"move", "add version", "remove version", "overwrite conversion", "promote", "no longer promote", "retire",
		"rotate authority", "delete its", "age certificate"}
	if before.Suspended && slices.Contains(idle, s.Kind) {
		t.Fatalf("seed %d, step %v: the policy is suspended", seed, s)
	}
	if before.MigrationsSuspended && (s.Kind == "retire" || s.Kind == "remove version") {
		t.Fatalf("seed %d, step %v: migrations are suspended", seed, s)
	}
	if before.Unsettled && is.Suspended && !before.Suspended {
		t.Fatalf("seed %d, step %v: something is half done", seed, s)
	}
}

// TestRest: after a wait, the operator has finished, unless it is suspended, or its migrations are.
func TestRest(t *testing.T) {
	cases := map[string]struct {
		is     subject
		behind bool
	}{
		"a policy":             {subject{Policy: true}, false},
		"suspended migrations": {subject{Policy: true, MigrationsSuspended: true}, true},
		"a suspended policy":   {subject{Policy: true, Suspended: true}, true},
		"no policy":            {subject{}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.is.Behind, c.is.Unsettled = true, true
			w := world{Subjects: []*subject{&c.is}}
			w.becomeIdle()
			if c.is.Unsettled || c.is.Behind != c.behind || !w.Idle {
				t.Errorf("the rest is %+v, want it behind: %t, and at rest", c.is, c.behind)
			}
		})
	}
}

// TestRetirementActions: each action determines the whole state of a version, whatever the previous
// action was.
func TestRetirementActions(t *testing.T) {
	want := map[v1alpha1.RetirementAction]subject{
		v1alpha1.RetirementReport:    {Versions: []string{hub, joined}, Served: []string{hub, joined}},
		v1alpha1.RetirementDeprecate: {Versions: []string{hub, joined}, Served: []string{hub, joined}, Deprecated: []string{joined}},
		v1alpha1.RetirementUnserve:   {Versions: []string{hub, joined}, Served: []string{hub}, Deprecated: []string{joined}},
		v1alpha1.RetirementRemove:    {Versions: []string{hub}, Served: []string{hub}},
	}
	for from, before := range want {
		for to, after := range want {
			if from == v1alpha1.RetirementRemove {
				continue // that cannot be taken back
			}
			is := before.clone()
			retired(is, joined+" to "+string(to))
			after.Retires = map[string]v1alpha1.RetirementAction{joined: to}
			if diff := cmp.Diff(after, *is, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("from %s to %s (-want +got):\n%s", from, to, diff)
			}
		}
	}
}

// checkWrites: clients write at versions that are served throughout the step, and no two of them
// write the same object, except for labels.
func checkWrites(t *testing.T, seed uint64, s step, before, after subject) {
	t.Helper()
	written, labelled := map[string]int{}, map[string]bool{}
	for _, w := range s.Writes {
		if w.Subject != after.Name {
			continue
		}
		if !slices.Contains(before.Served, w.Version) || !slices.Contains(after.Served, w.Version) {
			t.Fatalf("seed %d, step %v: %s is not served all the while", seed, s, w.Version)
		}
		if w.Do == labelObject {
			labelled[w.Name] = true
		} else {
			written[w.Name]++
		}
		if w.Do != labelObject && after.blocksRemoval(w.Name) && before.blocksRemoval(w.Name) {
			t.Fatalf("seed %d, step %v: %s keeps a version, and is written", seed, s, w.Name)
		}
		if written[w.Name] > 1 {
			t.Fatalf("seed %d, step %v: two clients write %s", seed, s, w.Name)
		}
	}
	for _, w := range s.Writes {
		if w.Subject == after.Name && w.Do == deleteObject && labelled[w.Name] {
			t.Fatalf("seed %d, step %v: %s is deleted and labelled", seed, s, w.Name)
		}
	}
}

// TestRemovalResults: with accepted losses or without, some removals succeed, and some are blocked
// by values.
func TestRemovalResults(t *testing.T) {
	ends := map[string]int{}
	for seed := range uint64(20) {
		before := newWorld().subjects()
		for _, s := range stepsOf(seed, 1000) {
			version, action, accepted := readRetirement(s.Detail)
			i := slices.IndexFunc(s.After, func(is subject) bool { return is.Name == s.Subject })
			if s.Kind == retirement && action == v1alpha1.RetirementRemove {
				_, blocker := s.blockedRemoval()
				would, _ := before[i].blocker(version, nil)
				ends[fmt.Sprintf("accepted: %t, some are lost: %t, stays: %t", len(accepted) > 0, would != "" && blocker == "", blocker != "")]++
			}
			before = s.After
		}
	}
	want := []string{
		"accepted: false, some are lost: false, stays: false", "accepted: false, some are lost: false, stays: true",
		"accepted: true, some are lost: false, stays: false", "accepted: true, some are lost: false, stays: true",
		"accepted: true, some are lost: true, stays: false"}
	if diff := cmp.Diff(want, sortedKeys(ends)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestBlockedRemoval: which object blocks a removal, and which values a removal discards.
func TestBlockedRemoval(t *testing.T) {
	noted, lone := record{HostPort: "host:80", Note: "note", Timeout: 3}, record{HostPort: "host", Timeout: 3}
	begin := subject{Versions: versions, Served: versions, Records: map[string]record{"job-1": noted, "job-2": lone}}
	for detail, c := range map[string]struct {
		blocker string
		left    []record
	}{
		"v1 to Remove":                                         {"job-1", []record{noted, lone}},
		"v1 to Remove accepting .spec.note":                    {"job-2", []record{noted, lone}},
		"v1 to Remove accepting .spec.note and .spec.hostPort": {"", []record{{HostPort: "host:80", Timeout: 3}, {Timeout: 3}}},
		"v2 to Remove accepting .spec":                         {"", []record{{HostPort: "host:80", Note: "note"}, {HostPort: "host"}}},
		"v2 to Remove accepting .spec.time":                    {"job-1", []record{noted, lone}},
	} {
		t.Run(detail, func(t *testing.T) {
			is := begin.clone()
			retired(is, detail)
			version, _, _ := readRetirement(detail)
			if is.Blocked[version] != c.blocker || slices.Contains(is.Versions, version) != (c.blocker != "") || slices.Contains(is.Served, version) != (c.blocker != "") {
				t.Errorf("%q keeps %s of %+v, want %q", is.Blocked[version], version, is, c.blocker)
			}
			if diff := cmp.Diff(c.left, []record{is.Records["job-1"], is.Records["job-2"]}); diff != "" {
				t.Errorf("the rest (-want +got):\n%s", diff)
			}
			ledger := newLedger()
			ledger.put("a", "job-1", joined, noted)
			ledger.put("b", "job-1", joined, noted)
			if c.blocker == "" {
				ledger.discard("a", version, is.Accepts[version])
			}
			for subject, want := range map[string]record{"a": c.left[0], "b": noted} {
				if got := ledger.all(subject)["job-1"]; got.Record.Note != want.Note || got.Record.Timeout != want.Timeout {
					t.Errorf("the ledger has %+v of %s, want %+v", got, subject, want)
				}
			}
		})
	}
	unserved := begin.clone()
	retired(unserved, "v1 to Unserve")
	retired(unserved, "v1 to Remove")
	if diff := cmp.Diff([]string{hub, nested}, unserved.Served); diff != "" {
		t.Errorf("a version that was not served any more is served (-want +got):\n%s", diff)
	}
}

// TestStaleHosts: the model cannot tell whether an annotation still has an overwritten host, and
// then does not predict the result of a removal.
func TestStaleHosts(t *testing.T) {
	is := &subject{Versions: versions, Served: versions}
	certain := func(want bool, accepted ...string) {
		t.Helper()
		if blocker, got := is.blocker(joined, accepted); got != want || blocker != "" {
			t.Errorf("%q keeps v1 of %+v, certainly: %t; want %t", blocker, is, got, want)
		}
	}
	put := func(version, host string) {
		is.write(write{Do: putObject, Name: "job", Version: version, Record: record{HostPort: host}})
	}
	put(joined, "host")
	put(hub, "host:80")
	certain(false)
	certain(true, hostOnlyPath)
	put(hub, "host:81")
	certain(false)
	put(joined, "host:82")
	certain(true)
	put(joined, "host")
	put(nested, "host:83")
	retired(is, removalOf(joined, []string{".spec.note", hostOnlyPath}))
	certain(true)
	put(joined, "host")
	is.write(write{Do: deleteObject, Name: "job"})
	put(hub, "host:84")
	certain(true)
}

func TestFinishRemovesAll(t *testing.T) {
	for seed := range uint64(50) {
		steps := stepsOf(seed, 40)
		last := steps[len(steps)-1]
		if diff := cmp.Diff(newWorld().subjects(), last.After); diff != "" {
			t.Errorf("seed %d: there is something left (-nothing +left):\n%s", seed, diff)
		}
	}
}

// TestReplacedFleet: the users of a fleet move, and no others.
func TestReplacedFleet(t *testing.T) {
	w := newWorld()
	for i, fleet := range []string{"blue", "", "green"} {
		begun(w.Subjects[i], "in pods of its own")
		w.Subjects[i].Fleet = fleet
	}
	w.fleet("blue").Replicas = 1
	fleetReplaced(w, "blue")
	var got []string
	for _, s := range w.Subjects {
		got = append(got, s.Fleet)
	}
	if diff := cmp.Diff([]string{"green", "", "green"}, got); diff != "" || w.fleet("blue").Replicas != replicasAtFirst {
		t.Errorf("%d pods; fleets (-want +got):\n%s", w.fleet("blue").Replicas, diff)
	}
}

func TestStepString(t *testing.T) {
	s := step{Number: 3, Kind: "stop", Detail: "etcd", Seconds: 4, Writes: []write{
		{Client: 0, Do: putObject, Subject: "a", Name: "job-01", Version: "v1"},
		{Client: 2, Do: labelObject, Subject: "b", Name: "job-02", Version: "v2"},
	}}
	want := "  3  stop etcd for 4 s; meanwhile client 0 puts a/job-01 at v1, client 2 labels b/job-02 at v2; without waiting"
	if diff := cmp.Diff(want, s.String()); diff != "" {
		t.Error(diff)
	}
}
