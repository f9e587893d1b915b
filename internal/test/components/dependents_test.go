// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package components

import (
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestDependentsAccount: the manager gets the name of the account that has the rights, also with
// another namespace and names. The manager may not change that account: it does not have the label of
// objects that the manager creates.
func TestDependentsAccount(t *testing.T) {
	folder, err := filepath.Abs(filepath.Join(config, "default"))
	expect.NoError(t, err)
	for want, more := range map[string]string{
		"conversion-operator-dependents":      "namespace: conversion-system\n",
		"my-conversion-operator-dependents-x": "namespace: elsewhere\nnamePrefix: my-\nnameSuffix: -x\n",
	} {
		objects := render(t, kustomization(t, folder, more, "dependents"))
		var account corev1.ServiceAccount
		objects.read(t, "ServiceAccount "+want, &account)
		if by := account.Labels["app.kubernetes.io/managed-by"]; by != "" {
			t.Errorf("the account is managed by %s", by)
		}
		var binding rbacv1.ClusterRoleBinding
		objects.read(t, "ClusterRoleBinding "+want, &binding)
		subject := binding.Subjects[0]
		if subject.Name != want || subject.Namespace != account.Namespace || binding.RoleRef.Name != want {
			t.Errorf("%s/%s has the role %s", subject.Namespace, subject.Name, binding.RoleRef.Name)
		}
		if got := environment(t, objects)["DEPENDENTS_SERVICE_ACCOUNT"]; got != want {
			t.Errorf("the manager searches as %q, want %q", got, want)
		}
	}
	if got, set := environment(t, build(t))["DEPENDENTS_SERVICE_ACCOUNT"]; set {
		t.Errorf("without the component, the manager searches as %q", got)
	}
}

// environment is that of the manager.
func environment(t *testing.T, objects built) map[string]string {
	t.Helper()
	values := map[string]string{}
	for name := range objects {
		if !strings.HasPrefix(name, "Deployment ") {
			continue
		}
		var deployment appsv1.Deployment
		objects.read(t, name, &deployment)
		for _, variable := range deployment.Spec.Template.Spec.Containers[0].Env {
			values[variable.Name] = variable.Value
		}
	}
	return values
}
