// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package components

import (
	"path/filepath"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestCrossplaneFollowsTheManager: the rights to CompositeResourceDefinitions, and what confines them, are
// about the account of the manager, also with another namespace and names.
func TestCrossplaneFollowsTheManager(t *testing.T) {
	folder, err := filepath.Abs(filepath.Join(config, "default"))
	expect.NoError(t, err)
	for want, more := range map[string]string{
		"conversion-system/conversion-operator": "",
		"elsewhere/my-conversion-operator":      "namespace: elsewhere\nnamePrefix: my-\n",
	} {
		objects := render(t, kustomization(t, folder, more, "crossplane"))
		prefix := ""
		if more != "" {
			prefix = "my-"
		}
		var binding rbacv1.ClusterRoleBinding
		objects.read(t, "ClusterRoleBinding "+prefix+"conversion-operator-crossplane", &binding)
		if got := binding.Subjects[0].Namespace + "/" + binding.Subjects[0].Name; got != want || binding.RoleRef.Name != prefix+"conversion-operator-crossplane" {
			t.Errorf("%s has the role %s, want %s", got, binding.RoleRef.Name, want)
		}
		var confines admissionregistrationv1.ValidatingAdmissionPolicyBinding
		objects.read(t, "ValidatingAdmissionPolicyBinding "+prefix+"composite-definitions.conversion-operator.io", &confines)
		if got := confines.Spec.ParamRef.Namespace + "/" + confines.Spec.ParamRef.Name; got != want || confines.Spec.PolicyName != prefix+"composite-definitions.conversion-operator.io" {
			t.Errorf("%s confines %s, want %s", confines.Spec.PolicyName, got, want)
		}
	}
}
