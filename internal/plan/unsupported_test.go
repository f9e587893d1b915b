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

// TestUnsupported: nothing changes for a policy of which the API server has removed what this version
// does not know. The operator must not follow its remaining fields.
func TestUnsupported(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*world)
		want   string
	}{
		"a field of a rule": {func(w *world) {
			w.observed.Policy.Spec.APIRevision = v1alpha1.APIRevision + 1
			w.observed.Policy.Spec.Converter.Declarative.Spokes[0].Rules = nil
		}, "spec.apiRevision is 2"},
		"a source of certificates": {func(w *world) {
			w.observed.Policy.Spec.APIRevision = v1alpha1.APIRevision + 1
			w.observed.Policy.Spec.Certificates.SelfManaged = &v1alpha1.SelfManagedCertificates{RotationTrigger: "now"}
		}, "spec.apiRevision is 2"},
		"a kind of converter": {func(w *world) {
			w.observed.Policy.Spec.Converter = v1alpha1.Converter{}
		}, "spec.converter is empty"},
		"a run that is under way": {func(w *world) {
			w.observed.Policy.Spec.APIRevision = v1alpha1.APIRevision + 1
			w.observed.Policy.Spec.Migration.Trigger = "now"
		}, "spec.apiRevision is 2"},
	} {
		t.Run(name, func(t *testing.T) {
			w := active(t)
			test.change(w)
			decided := w.plan()
			if diff := cmp.Diff([]string(nil), kinds(decided.Steps)); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			for condition, want := range map[string]metav1.ConditionStatus{
				v1alpha1.RulesValidCondition: metav1.ConditionFalse, v1alpha1.ReadyCondition: metav1.ConditionFalse,
				v1alpha1.StalledCondition: metav1.ConditionTrue, v1alpha1.ReconcilingCondition: metav1.ConditionFalse,
			} {
				got := apimeta.FindStatusCondition(decided.Status.Conditions, condition)
				says := strings.Contains(got.Message, test.want) || condition == v1alpha1.ReconcilingCondition // has no message
				if got.Status != want || got.Reason != v1alpha1.ReasonUnsupportedPolicy || !says {
					t.Errorf("%s is %s %s: %s; want %s with %q", condition, got.Status, got.Reason, got.Message, want, test.want)
				}
			}
		})
	}
}
