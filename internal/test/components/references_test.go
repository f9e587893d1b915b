// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package components

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestReferences: with another namespace and names, what the objects of each component refer to is there: roles,
// admission policies, and accounts. Roles are bound to the manager, or to an account of the same name, and the
// admission policies confine the manager.
func TestReferences(t *testing.T) {
	for _, component := range namesIn(t, "components") {
		t.Run(component, func(t *testing.T) {
			objects := render(t, kustomization(t, absolute(t, "default"), "namespace: elsewhere\nnamePrefix: my-\nnameSuffix: -x\n", with(component)...))
			for name, text := range objects {
				object := map[string]any{}
				expect.NoError(t, yaml.Unmarshal(text, &object))
				for _, reference := range references(object) {
					if _, found := objects[reference]; !found {
						t.Errorf("%s refers to %s", name, reference)
					}
				}
			}
		})
	}
}

// references returns the kinds and names of the objects that a binding of RBAC or of admission refers to.
func references(object map[string]any) (found []string) {
	text := func(in map[string]any, path ...string) string {
		value, _, _ := unstructured.NestedString(in, path...)
		return value
	}
	kind, role := text(object, "kind"), text(object, "roleRef", "name")
	account := func(name, namespace string) {
		if name != "my-conversion-operator-x" && name != role {
			name += ", which is not the manager"
		}
		found = append(found, "ServiceAccount "+name, "Namespace "+namespace)
	}
	switch kind {
	case "RoleBinding", "ClusterRoleBinding":
		found = append(found, text(object, "roleRef", "kind")+" "+role)
		subjects, _, _ := unstructured.NestedSlice(object, "subjects")
		for _, each := range subjects {
			subject := each.(map[string]any) //nolint:forcetypeassert // a subject
			if text(subject, "kind") == "ServiceAccount" && text(subject, "name") != "prometheus-k8s" {
				account(text(subject, "name"), text(subject, "namespace"))
			}
		}
	case "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding":
		found = append(found, strings.TrimSuffix(kind, "Binding")+" "+text(object, "spec", "policyName"))
		if name := text(object, "spec", "paramRef", "name"); name != "" {
			account(name, text(object, "spec", "paramRef", "namespace"))
		}
	}
	return found
}
