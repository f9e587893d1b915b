// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package components

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

const (
	renaming = `
namespace: elsewhere
namePrefix: my-
nameSuffix: -x
images: [{name: localhost/conversion-operator, newName: registry.example.com/operator, newTag: v1}]
`
	renamedImage, renamedManager = "registry.example.com/operator:v1", "my-conversion-operator-x"
)

// TestReferences: with another namespace, names and image, what the objects of each component refer to is there:
// roles, admission policies, accounts and priority levels. Roles are bound to the manager, or to an account of
// the same name, and the admission policies confine the manager. Nothing else names the previous namespace.
func TestReferences(t *testing.T) {
	for _, component := range namesIn(t, "components") {
		t.Run(component, func(t *testing.T) {
			folder := kustomization(t, absolute(t, "default"), renaming, with(component)...)
			if component == "granted-rights" || component == "uninstall-guard" { // they take the namespace from below
				folder = kustomization(t, kustomization(t, absolute(t, "default"), renaming), "", component)
			}
			checkReferences(t, render(t, folder))
		})
	}
}

func checkReferences(t *testing.T, objects built) {
	t.Helper()
	for name, text := range objects {
		if strings.Contains(strings.ReplaceAll(string(text), "conversion-system.svc", ""), "conversion-system") {
			t.Errorf("%s names conversion-system:\n%s", name, text)
		}
		object := map[string]any{}
		expect.NoError(t, yaml.Unmarshal(text, &object))
		for _, reference := range references(t, object) {
			if _, found := objects[reference]; !found {
				t.Errorf("%s refers to %s", name, reference)
			}
		}
	}
}

// references returns the kinds and names of the objects that a binding of RBAC or of admission, or the manager,
// refers to.
func references(t *testing.T, object map[string]any) (found []string) {
	t.Helper()
	text := func(in map[string]any, path ...string) string {
		value, _, _ := unstructured.NestedString(in, path...)
		return value
	}
	kind, role := text(object, "kind"), text(object, "roleRef", "name")
	account := func(name, namespace string) {
		if name != renamedManager && name != role {
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
	case "Deployment":
		manager := &appsv1.Deployment{}
		expect.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object, manager))
		told := environment(manager)
		if image := manager.Spec.Template.Spec.Containers[0].Image; image != renamedImage || told["CONVERSION_OPERATOR_IMAGE"] != image {
			t.Errorf("the manager of the image %s starts pods of %s", image, told["CONVERSION_OPERATOR_IMAGE"])
		}
		found = append(found, "ServiceAccount "+told["CONVERTER_SERVICE_ACCOUNT"], "PriorityLevelConfiguration "+told["MIGRATION_PRIORITY_LEVEL"])
		if searcher, set := told["DEPENDENTS_SERVICE_ACCOUNT"]; set {
			found = append(found, "ServiceAccount "+searcher)
		}
	}
	return found
}

func environment(manager *appsv1.Deployment) map[string]string {
	values := map[string]string{}
	for _, variable := range manager.Spec.Template.Spec.Containers[0].Env {
		values[variable.Name] = variable.Value
	}
	return values
}

// TestDependentsAccount: only with the component, the manager gets the name of the account that has the rights. It
// may not change that account, which does not have the label of objects that the manager creates.
func TestDependentsAccount(t *testing.T) {
	for want, objects := range map[string]built{"": build(t), "conversion-operator-dependents": build(t, "dependents")} {
		var manager appsv1.Deployment
		objects.read(t, "Deployment conversion-operator", &manager)
		expect.Equal(t, "the manager searches as", want, environment(&manager)["DEPENDENTS_SERVICE_ACCOUNT"])
		if want == "" {
			continue
		}
		var account corev1.ServiceAccount
		objects.read(t, "ServiceAccount "+want, &account)
		expect.Equal(t, "the account is managed by", "", account.Labels["app.kubernetes.io/managed-by"])
	}
}

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
	expect.Equal(t, "match constraints of keep-conversion and the guard", guard.Spec.MatchConstraints, keep.Spec.MatchConstraints)
}
