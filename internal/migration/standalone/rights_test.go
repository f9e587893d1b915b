// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func TestRoles(t *testing.T) {
	rights := []Right{
		{Verb: "patch", Resource: "secrets"}, {Verb: "list", Resource: "secrets"}, {Verb: "list", Resource: "pods"}, {Verb: "patch", Resource: "pods"},
		{Verb: "list", Group: "apps", Resource: "deployments"},
		{Verb: "get", Group: crdGroup, Resource: crdResource, Name: "b"}, {Verb: "get", Group: crdGroup, Resource: crdResource, Name: "a"},
		{Verb: "list", Group: crdGroup, Resource: crdResource},
		{Verb: "create", Resource: "configmaps", Namespace: "default"},
	}
	want := []any{
		roleOf("role", "", []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods", "secrets"}, Verbs: []string{"list", "patch"}},
			{APIGroups: []string{crdGroup}, Resources: []string{crdResource}, ResourceNames: []string{"a", "b"}, Verbs: []string{"get"}},
			{APIGroups: []string{crdGroup}, Resources: []string{crdResource}, Verbs: []string{"list"}},
			{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"list"}},
		}),
		roleOf("role", "default", []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}}}),
	}
	expect.Equal(t, "roles", want, Roles("role", rights, nil))
	if got := Roles("role", rights, &Subject{"ci", "migrate"}); len(got) != 4 {
		t.Errorf("with bindings: %v", got)
	}
}
