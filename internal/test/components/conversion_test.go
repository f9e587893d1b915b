// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package components

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestConversionPolicies: the policy that keeps spec.conversion applies to the same writes as the
// guard, except for those that change nothing, and bindings follow the names of the policies.
func TestConversionPolicies(t *testing.T) {
	folder, err := filepath.Abs(filepath.Join(config, "overlays", "keep-conversion"))
	expect.NoError(t, err)
	objects := render(t, kustomization(t, folder, "namePrefix: my-\n"))
	var guard admissionregistrationv1.ValidatingAdmissionPolicy
	var keep admissionregistrationv1.MutatingAdmissionPolicy
	objects.read(t, "ValidatingAdmissionPolicy my-conversion-guard.conversion-operator.io", &guard)
	objects.read(t, "MutatingAdmissionPolicy my-keep-conversion.conversion-operator.io", &keep)
	condition, found := strings.CutPrefix(keep.Spec.MatchConditions[0].Expression, guard.Spec.MatchConditions[0].Expression)
	if !found || !strings.HasPrefix(condition, " && ") || len(guard.Spec.MatchConditions)+len(keep.Spec.MatchConditions) != 2 {
		t.Errorf("the guard applies if %v, and keep-conversion if %v", guard.Spec.MatchConditions, keep.Spec.MatchConditions)
	}
	if diff := cmp.Diff(guard.Spec.MatchConstraints, keep.Spec.MatchConstraints); diff != "" {
		t.Errorf("match constraints (-guard +keep-conversion):\n%s", diff)
	}
	var binding admissionregistrationv1.MutatingAdmissionPolicyBinding
	objects.read(t, "MutatingAdmissionPolicyBinding my-keep-conversion.conversion-operator.io", &binding)
	if binding.Spec.PolicyName != keep.Name {
		t.Errorf("the binding is of %s", binding.Spec.PolicyName)
	}
}
