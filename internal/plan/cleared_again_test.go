// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/step"
)

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
			w.later(w.observed.Settings.PropagationDelay)
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
			if !slices.Equal(steps, test.want) {
				t.Errorf("steps are %v, want %v", steps, test.want)
			}
		})
	}
}
