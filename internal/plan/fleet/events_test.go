// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/fleet"
)

// TestEvents: each change of a condition has one event, and so has the end of a problem.
func TestEvents(t *testing.T) {
	w := ready(t)
	step := func(change func()) (events []string) {
		before := w.fleet.Status
		change()
		w.fleet.Status = fleet.Make(w.observe()).Status
		for _, event := range fleet.Events(before, w.fleet.Status) {
			kind := "Normal"
			if event.Warning {
				kind = "Warning"
			}
			events = append(events, kind+" "+event.Action+" "+event.Reason)
		}
		return events
	}
	for _, c := range []struct {
		name   string
		change func()
		want   []string
	}{
		{"nothing", func() {}, nil},
		{"all pods are on one node", w.onOneNode, []string{"Warning NotRedundant OneNode"}},
		{"another node can take them", func() { w.others.Usable = true }, nil},
		{"one is on another node", func() { w.pods[0].Node = "two" }, []string{"Normal NotRedundant NotRedundantResolved"}},
		{"one is not ready", func() { w.pods[0].Ready = false }, []string{"Normal WebhookAvailable SomePodsReady", "Warning NotRedundant OneNode"}},
		{"one is left", func() { w.pods = w.pods[1:2] }, []string{"Normal NotRedundant NotRedundantResolved"}},
		{"none is left", func() { w.pods = nil }, []string{"Normal WebhookAvailable NoPodsReady"}},
		{"the patch is wrong", func() {
			w.fleet.Spec.Workload = &v1alpha1.Workload{Patches: []v1alpha1.Patch{{Patch: "what?"}}}
		}, []string{"Warning WebhookAvailable InvalidPatch"}},
	} {
		if diff := cmp.Diff(c.want, step(c.change)); diff != "" {
			t.Errorf("%s: events (-want +got):\n%s", c.name, diff)
		}
	}
}
