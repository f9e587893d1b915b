// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// TestRequestsAreRemembered of each API server, of the latest eight, to the hour.
func TestRequestsAreRemembered(t *testing.T) {
	w := newWorld(t, policyYAML)
	w.retire("v1beta1", v1alpha1.RetirementDeprecate)
	promoted(w)
	for _, step := range []struct {
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
		w.requested.Requests = countedBy(step.server, map[string]int64{"v1beta1": step.requests, "v1": 99})
		before := w.observed.Policy.Status.Retirement[0].LastRequested
		w.later(2 * time.Hour)
		after := w.observed.Policy.Status.Retirement[0].LastRequested
		if asked := !after.Equal(before); asked != step.asked {
			t.Errorf("%s: last requested %v, before %v", step.what, after, before)
		}
		if after != nil && !after.Time.Equal(after.Truncate(time.Hour)) {
			t.Errorf("%s: %v is not to the hour", step.what, after)
		}
	}
	for server := range 12 {
		w.requested.Requests = countedBy(1000+int64(server), nil)
		w.later(2 * time.Hour)
	}
	var servers []int64
	for _, count := range w.observed.Policy.Status.Retirement[0].Requests {
		servers = append(servers, count.StartTime.Unix())
	}
	want := []int64{1004, 1005, 1006, 1007, 1008, 1009, 1010, 1011}
	if diff := cmp.Diff(want, servers); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}
}

// TestCountsAreNotTooOld: the first of a version are of now, and the last before it
// goes of when its time has come. In between those that others have read do.
func TestCountsAreNotTooOld(t *testing.T) {
	w := newWorld(t, policyYAML)
	w.ask("v1", 1)
	w.retire("v1beta1", v1alpha1.RetirementUnserve)
	begin := w.observed.Now
	promoted(w)
	if w.countsSince.Before(begin) {
		t.Errorf("the first counts may be of %s, which is before the policy", w.countsSince)
	}
	w.later(2 * time.Hour)
	if !w.countsSince.IsZero() {
		t.Errorf("counts in between are to be of %s or later", w.countsSince)
	}
	deprecated := w.observed.Policy.Status.Retirement[0].DeprecatedTime
	w.later(week)
	if want := deprecated.Add(week); !w.countsSince.Equal(want) {
		t.Errorf("the last counts may be of %s, want %s", w.countsSince, want)
	}
	if w.observed.CRD.Spec.Versions[0].Served {
		t.Error("v1beta1 is served after a week in which no client asked")
	}
}
