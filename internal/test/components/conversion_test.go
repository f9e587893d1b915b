// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package components

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// TestConversionPolicies: the policy that keeps spec.conversion applies to the same writes as the
// guard, except for those that change nothing.
func TestConversionPolicies(t *testing.T) {
	objects := build(t, "keep-conversion")
	var guard admissionregistrationv1.ValidatingAdmissionPolicy
	var keep admissionregistrationv1.MutatingAdmissionPolicy
	objects.read(t, "ValidatingAdmissionPolicy conversion-guard.conversion-operator.io", &guard)
	objects.read(t, "MutatingAdmissionPolicy keep-conversion.conversion-operator.io", &keep)
	condition, found := strings.CutPrefix(keep.Spec.MatchConditions[0].Expression, guard.Spec.MatchConditions[0].Expression)
	if !found || !strings.HasPrefix(condition, " && ") || len(guard.Spec.MatchConditions)+len(keep.Spec.MatchConditions) != 2 {
		t.Errorf("the guard applies if %v, and keep-conversion if %v", guard.Spec.MatchConditions, keep.Spec.MatchConditions)
	}
	if diff := cmp.Diff(guard.Spec.MatchConstraints, keep.Spec.MatchConstraints); diff != "" {
		t.Errorf("match constraints (-guard +keep-conversion):\n%s", diff)
	}
}
