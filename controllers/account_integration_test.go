//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestManagerAccount: an image does not run with an account of the operator, and no object is created
// for it. With an account of a user it runs. Patches change neither that account nor its token.
func TestManagerAccount(t *testing.T) {
	const group, name = "account.example.com", "crontabs.account.example.com"
	create(t, manifest(group, "v1beta1", "v1"), &apiextensionsv1.CustomResourceDefinition{})
	create(t, ownPolicy(group, "image: {reference: 'example.com/crontab:1', serviceAccountName: conversion-operator}"), &v1alpha1.ConversionPolicy{})
	for _, account := range []string{"conversion-operator", "conversion-operator-converter", names.MigrationRights(name)} {
		changePolicy(t, name, func(spec *v1alpha1.ConversionPolicySpec) { spec.Converter.Image.ServiceAccountName = account })
		expect.Eventually(t, account+" is refused", func() (bool, string) {
			condition := waitFor(t, name, v1alpha1.RulesValidCondition, metav1.ConditionFalse, v1alpha1.ReasonInvalidServiceAccount)
			return strings.HasPrefix(condition.Message, "spec.converter.image.serviceAccountName: "+account+" belongs to the operator"), condition.Message
		})
	}
	if left := remainingObjects(t, name); len(left) != 0 {
		t.Errorf("there are %v", left)
	}

	changePolicy(t, name, func(spec *v1alpha1.ConversionPolicySpec) {
		spec.Converter.Image.ServiceAccountName = ""
		spec.Workload = &v1alpha1.Workload{Patches: []v1alpha1.Patch{{Target: &v1alpha1.PatchTarget{Kind: "Deployment"}, Patch: `
apiVersion: apps/v1
kind: Deployment
metadata: {name: any}
spec:
  template:
    spec:
      serviceAccountName: conversion-operator
      serviceAccount: conversion-operator
      automountServiceAccountToken: true
      imagePullSecrets: [{name: theirs}]
      volumes: [{name: token, projected: {sources: [{serviceAccountToken: {path: token}}]}}]
      containers: [{name: converter, volumeMounts: [{name: token, mountPath: /token}]}]
`}}}
	})
	var deployment appsv1.Deployment
	expect.Eventually(t, "there is a Deployment", func() (bool, string) {
		found, there := deploymentsOf(t, name)["example.com/crontab:1"]
		deployment = found
		return there, "none"
	})
	pod := deployment.Spec.Template.Spec
	if pod.ServiceAccountName != "conversion-operator-converter" || pod.DeprecatedServiceAccount != "conversion-operator-converter" || *pod.AutomountServiceAccountToken {
		t.Errorf("the pods have the account %s or %s, with a token: %t", pod.ServiceAccountName, pod.DeprecatedServiceAccount, *pod.AutomountServiceAccountToken)
	}
	i := slices.IndexFunc(pod.ImagePullSecrets, func(secret corev1.LocalObjectReference) bool { return secret.Name == "theirs" })
	if i < 0 {
		t.Fatalf("the pull secrets are %v", pod.ImagePullSecrets)
	}
	pod.ImagePullSecrets = slices.Delete(pod.ImagePullSecrets, i, i+1)
	expectInherited(t, pod)
}
