// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestRequestsAreRemembered of each API server, of the latest eight, to the hour.
func TestRequestsAreRemembered(t *testing.T) {
	w := newWorld(t, policyYAML)
	w.retire("v1beta1", v1alpha1.RetirementDeprecate)
	promoted(w)
	for _, c := range []struct {
		what     string
		server   int64
		requests int64
		asked    bool
	}{
		{"there was no request", 100, 0, false},
		{"there was one", 100, 1, true},
		{"there was no other", 100, 1, false},
		{"another server was asked before", 200, 3, true},
		{"the first one again, as it was", 100, 1, false},
		{"the second, as it was", 200, 3, false},
		{"it was started again, and no one has asked", 300, 0, false},
	} {
		w.requested.Requests = countedBy(c.server, map[string]int64{"v1beta1": c.requests, "v1": 99})
		before := w.observed.Policy.Status.Retirement[0].LastRequested
		w.later(2 * time.Hour)
		after := w.observed.Policy.Status.Retirement[0].LastRequested
		expect.Equal(t, c.what+": asked", c.asked, !after.Equal(before))
		if after != nil && !after.Time.Equal(after.Truncate(time.Hour)) {
			t.Errorf("%s: %v is not to the hour", c.what, after)
		}
	}
	for server := range 12 {
		w.requested.Requests = countedBy(1000+int64(server), nil)
		w.later(2 * time.Hour)
	}
	var servers []int64
	for _, server := range slices.Sorted(maps.Keys(w.observed.Policy.Status.Retirement[0].Requests)) {
		at, err := time.Parse(time.RFC3339, server)
		expect.NoError(t, err)
		servers = append(servers, at.Unix())
	}
	want := []int64{1004, 1005, 1006, 1007, 1008, 1009, 1010, 1011}
	expect.Equal(t, "servers", want, servers)
}

// TestCountsAreNotTooOld: the first of a version are of now, and the last before it
// goes of when its time has come. In between those that others have read do.
func TestCountsAreNotTooOld(t *testing.T) {
	w := newWorld(t, policyYAML)
	w.ask("v1", 1)
	w.retire("v1beta1", v1alpha1.RetirementUnserve)
	begin := w.observed.Now
	promoted(w)
	expect.Equal(t, "the first counts may be of a time before the policy", false, w.countsSince.Before(begin))
	w.later(2 * time.Hour)
	expect.Equal(t, "counts in between are to be of this time or later", time.Time{}, w.countsSince)
	deprecated := w.observed.Policy.Status.Retirement[0].DeprecatedTime
	w.later(week)
	expect.Equal(t, "the last counts may be of", deprecated.Add(week), w.countsSince)
	expect.Equal(t, "v1beta1 is served after a week in which no client asked", false, w.observed.CRD.Spec.Versions[0].Served)
}

// TestClearAgain: an update may bring entries of a version back into managedFields while the version
// stays unserved, so that the check of weeks ago proves nothing when the version is removed.
func TestClearAgain(t *testing.T) {
	for name, test := range map[string]struct {
		waits time.Duration
		want  []string
	}{
		"at once":     {0, []string{"remove"}},
		"weeks later": {2 * week, []string{"clear", "remove"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, policyYAML)
			w.retire("v1beta1", v1alpha1.RetirementUnserve)
			w.observed.Policy.Spec.Retirement[0].After = &metav1.Duration{}
			promoted(w)
			w.settleAPIServers()
			if w.observed.Cleared == nil || len(w.observed.CRD.Spec.Versions) != 2 {
				t.Fatal("v1beta1 is not cleared, or removed")
			}
			w.later(test.waits)
			w.observed.Policy.Spec.Retirement[0].Action = v1alpha1.RetirementRemove
			var steps []string
			for range 20 {
				decided := w.plan()
				for _, s := range decided.Steps {
					switch s := s.(type) {
					case step.ClearManagedFields:
						steps = append(steps, "clear")
					case step.EditVersions:
						if slices.ContainsFunc(s.Changes, func(change step.VersionChange) bool { return change.Field == "" }) {
							steps = append(steps, "remove")
						}
					}
				}
				w.carryOut(decided)
			}
			expect.Equal(t, "steps", test.want, steps)
		})
	}
}

// checked brings the world to where v1beta1 is not served, and its removal is due if nothing else names
// it.
func checked(w *world) {
	w.t.Helper()
	w.observed.Settings.DependentsAccount = "searcher"
	w.retire("v1beta1", v1alpha1.RetirementRemove)
	w.observed.Policy.Spec.Retirement[0].Dependents = v1alpha1.DependentsCheck
	w.observed.Policy.Spec.Retirement[0].After = &metav1.Duration{}
	promoted(w)
	w.log.Reset()
}

// webhook is what names v1beta1.
func webhook(count int) observed.BackgroundCheck {
	names := []string{"ValidatingWebhookConfiguration a (AdmissionWebhook)", "ConfigMap default/b (OwnerReference)", "ConfigMap default/c (OwnerReference)"}
	return observed.BackgroundCheck{Dependents: map[string]observed.Dependents{"v1beta1": {Count: count, Names: names[:min(count, len(names))]}}}
}

func unread(found observed.BackgroundCheck) observed.BackgroundCheck {
	found.Reason, found.Lost = v1alpha1.ReasonCheckFailed, true
	found.Message = "2 resources or objects could not be read, for example secrets: forbidden"
	return found
}

// dependentsBlockServing: a version stays served while other objects name it. What names it when it is
// not served any more blocks its removal.
func dependentsBlockServing(w *world) {
	w.observed.Settings.DependentsAccount = "searcher"
	w.retire("v1beta1", v1alpha1.RetirementUnserve)
	w.observed.Policy.Spec.Retirement[0].Dependents = v1alpha1.DependentsCheck
	w.searched = webhook(2)
	promoted(w)
	w.log.Reset()
	w.say("Nothing is searched before a week without requests has passed.")
	w.later(week - time.Hour)
	w.tellBlocks()
	w.later(2 * time.Hour)
	w.tellBlocks()
	w.tellCondition(v1alpha1.VersionsRetiredCondition)
	expect.Equal(w.t, "v1beta1, which other objects name, is served", true, crds.Serves(w.observed.CRD, "v1beta1"))
	w.say("Nothing names it.")
	w.searched = observed.BackgroundCheck{}
	w.later(time.Hour)
	w.tellCondition(v1alpha1.VersionsRetiredCondition)
	w.say("It is to be removed, and is named again.")
	w.searched = webhook(1)
	w.observed.Policy.Spec.Retirement[0].Action = v1alpha1.RetirementRemove
	w.later(week)
	w.tellBlocks()
}

func dependentsBlock(w *world) {
	checked(w)
	w.say("No object of the kind names v1beta1 any more. Others do.")
	w.searched = webhook(5)
	w.settleAPIServers()
	w.tellBlocks()
	w.tellCondition(v1alpha1.VersionsRetiredCondition)
	w.say("Nothing is searched before ten minutes are over. Then one is left, and what was found stays in the status meanwhile.")
	w.later(9 * time.Minute)
	w.searched = observed.BackgroundCheck{Running: true}
	w.later(time.Minute)
	w.tellBlocks()
	w.observed.Searched = nil
	w.searched = unread(webhook(1))
	w.converge()
	w.tellBlocks()
	w.say("Nothing names it.")
	w.searched = observed.BackgroundCheck{}
	w.later(time.Hour)
	w.tellVersions()
}

func dependentsUnknown(w *world) {
	w.searched = observed.BackgroundCheck{Running: true}
	checked(w)
	w.say("The search takes long.")
	w.settleAPIServers()
	w.tellBlocks()
	w.tellCondition(v1alpha1.VersionsRetiredCondition)
	w.say("The manager is replaced by one that has no account to search.")
	w.observed.Searched, w.observed.Settings.DependentsAccount = nil, ""
	w.converge()
	w.tellBlocks()
	w.tellCondition(v1alpha1.VersionsRetiredCondition)
	w.say("The account may not read everything.")
	w.searched = unread(observed.BackgroundCheck{})
	w.observed.Settings.DependentsAccount = "searcher"
	w.converge()
	w.tellBlocks()
	w.tellCondition(v1alpha1.VersionsRetiredCondition)
	w.say("Another search takes long, and changes no condition meanwhile.")
	w.searched = observed.BackgroundCheck{Running: true}
	w.later(5 * time.Minute)
	w.tellCondition(v1alpha1.VersionsRetiredCondition)
	w.observed.Searched = nil
	w.say("The author wants to keep v1beta1 for now: nothing is searched.")
	w.observed.Policy.Spec.Retirement[0].Action = v1alpha1.RetirementDeprecate
	w.later(time.Hour)
	w.tellBlocks()
	w.say("The author accepts whatever names it.")
	w.observed.Policy.Spec.Retirement[0].Action = v1alpha1.RetirementRemove
	w.observed.Policy.Spec.Retirement[0].Dependents = v1alpha1.DependentsIgnore
	w.settleAPIServers()
	w.settleAPIServers()
	w.settleAPIServers()
	w.tellVersions()
}

// dependentsBeforeLosses: preserved values are deleted only after a search has found nothing.
func dependentsBeforeLosses(w *world) {
	w.holdingNotes()
	w.log.Reset()
	w.observed.Settings.DependentsAccount = "searcher"
	w.retire("v1beta1", v1alpha1.RetirementRemove)
	w.observed.Policy.Spec.Retirement[0].Dependents = v1alpha1.DependentsCheck
	w.observed.Policy.Spec.Retirement[0].AcceptedLosses = []string{".note"}
	w.say("Notes may be lost, but a webhook names v1beta1 after it is not served any more: they stay.")
	w.converge()
	w.later(week)
	w.searched = webhook(1)
	w.later(week)
	w.tellBlocks()
	expect.Equal(w.t, "notes are gone", false, w.held.Objects == 0)
	w.say("The webhook is corrected.")
	w.searched = observed.BackgroundCheck{}
	w.later(time.Hour)
	w.tellVersions()
}

// TestSearchAgain: while something blocks a version, the search is repeated after ten minutes. What
// names another version does not block it.
func TestSearchAgain(t *testing.T) {
	w := newWorld(t, policyYAML)
	checked(w)
	w.searched = webhook(1)
	w.settleAPIServers()
	searches := func() (versions []string) {
		for _, one := range plan.Make(*w.observed).Steps {
			if search, is := one.(step.FindDependents); is {
				versions = append(versions, search.Versions...)
			}
		}
		return versions
	}
	expect.Equal(t, "versions searched again at once", nil, searches())
	w.observed.Now = w.observed.Now.Add(10 * time.Minute)
	expect.Equal(t, "versions searched", []string{"v1beta1"}, searches())
	w.observed.Searched.Dependents = map[string]observed.Dependents{"v1alpha1": {Count: 1, Names: []string{"ConfigMap a/a (OwnerReference)"}}}
	w.observed.Searched.Ended = w.observed.Now
	w.converge()
	if left, _ := crds.Version(w.observed.CRD, "v1beta1"); left != nil {
		t.Errorf("v1beta1 stays, which nothing names: %+v", w.observed.Policy.Status.Versions)
	}
}

// TestOldSearch: a search that found nothing does not count later.
func TestOldSearch(t *testing.T) {
	w := newWorld(t, policyYAML)
	checked(w)
	w.searched = webhook(1)
	w.settleAPIServers()
	w.observed.Searched.Dependents = nil
	for age, removes := range map[time.Duration]bool{10*time.Minute - 1: true, 10 * time.Minute: false} {
		w.observed.Now = w.observed.Searched.Ended.Add(age)
		decided := plan.Make(*w.observed)
		expect.Equal(t, "removed by a result of "+age.String(), removes, decided.Status.VersionsEdit != "")
	}
}
