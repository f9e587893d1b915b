// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package components

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// TestDependentsAccount: the manager gets the name of the account that has the rights, also with
// another namespace and names. The manager may not change that account: it does not have the label of
// objects that the manager creates.
func TestDependentsAccount(t *testing.T) {
	for want, more := range map[string]string{
		"conversion-operator-dependents":      "namespace: conversion-system\n",
		"my-conversion-operator-dependents-x": "namespace: elsewhere\nnamePrefix: my-\nnameSuffix: -x\n",
	} {
		objects := render(t, kustomization(t, absolute(t, "default"), more, "dependents"))
		var account corev1.ServiceAccount
		objects.read(t, "ServiceAccount "+want, &account)
		if by := account.Labels["app.kubernetes.io/managed-by"]; by != "" {
			t.Errorf("the account is managed by %s", by)
		}
		if got := objects.searchesAs(t); got != want {
			t.Errorf("the manager searches as %q, want %q", got, want)
		}
	}
	if got := build(t).searchesAs(t); got != "" {
		t.Errorf("without the component, the manager searches as %q", got)
	}
}

// searchesAs is the account in the manager's environment.
func (b built) searchesAs(t *testing.T) (account string) {
	t.Helper()
	for name := range b {
		if !strings.HasPrefix(name, "Deployment ") {
			continue
		}
		var manager appsv1.Deployment
		b.read(t, name, &manager)
		for _, variable := range manager.Spec.Template.Spec.Containers[0].Env {
			if variable.Name == "DEPENDENTS_SERVICE_ACCOUNT" {
				account = variable.Value
			}
		}
	}
	return account
}
