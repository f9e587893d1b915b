// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// TestUnsupported: nothing changes for a policy of which the API server has removed the converter, because
// this version does not know its kind. The operator must not follow its remaining fields.
func TestUnsupported(t *testing.T) {
	for name, change := range map[string]func(*world){
		"a kind of converter":     func(*world) {},
		"a run that is under way": func(w *world) { w.observed.Policy.Spec.Migration.Trigger = "now" },
	} {
		t.Run(name, func(t *testing.T) {
			w := active(t)
			w.observed.Policy.Spec.Converter = v1alpha1.Converter{}
			change(w)
			decided := w.plan()
			if diff := cmp.Diff([]string(nil), kinds(decided.Steps)); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			for condition, want := range map[string]metav1.ConditionStatus{
				v1alpha1.RulesValidCondition: metav1.ConditionFalse, v1alpha1.ReadyCondition: metav1.ConditionFalse,
				v1alpha1.StalledCondition: metav1.ConditionTrue, v1alpha1.ReconcilingCondition: metav1.ConditionFalse,
			} {
				got := apimeta.FindStatusCondition(decided.Status.Conditions, condition)
				says := strings.Contains(got.Message, "spec.converter is empty") || condition == v1alpha1.ReconcilingCondition // has no message
				if got.Status != want || got.Reason != v1alpha1.ReasonUnsupportedPolicy || !says {
					t.Errorf("%s is %s %s: %s; want %s", condition, got.Status, got.Reason, got.Message, want)
				}
			}
		})
	}
}
