//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestPreviousManager: a manager of another version that should have ended reconciles a policy
// beside the leader. The leader reverts the changes once, the CustomResourceDefinition is not
// written, and both become idle.
func TestPreviousManager(t *testing.T) {
	const group = "before.managers.example.com"
	name := "crontabs." + group
	create(t, manifest(group, "v1beta1"), &apiextensionsv1.CustomResourceDefinition{})
	create(t, policy(group), &v1alpha1.ConversionPolicy{})
	pods.run(t, name)
	waitFor(t, name, v1alpha1.ReadyCondition, "True", v1alpha1.ReasonWaitingForVersion)
	deployment, crd := deploymentOf(t, name), getCRD(t, name)

	before := newReconciler(t)
	before.Settings.Image = "conversion-operator:before"
	// It decides once: after a conflict with the leader it would change the Deployment again.
	expect.Eventually(t, "the other manager changes the Deployment", func() (bool, string) {
		_, err := before.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: name}})
		return deploymentOf(t, name).Generation > deployment.Generation, fmt.Sprint(err)
	})
	expect.Eventually(t, "the Deployment is as the leader wants it", func() (bool, string) {
		now := deploymentOf(t, name)
		return now.Generation > deployment.Generation && imageOf(now) == imageOf(deployment), imageOf(now)
	})
	pods.run(t, name)
	waitFor(t, name, v1alpha1.ReadyCondition, "True", v1alpha1.ReasonWaitingForVersion)

	checkNoWrites(t, name, func(int) { look(t, []string{name}) })
	expect.Equal(t, "changes of the Deployment, there and back,", 2, deploymentOf(t, name).Generation-deployment.Generation)
	expect.Equal(t, "generation of the CustomResourceDefinition", crd.Generation, getCRD(t, name).Generation)
}

func deploymentOf(t *testing.T, policy string) *appsv1.Deployment {
	t.Helper()
	deployment := &appsv1.Deployment{}
	expect.NoError(t, cluster.Get(t.Context(), client.ObjectKey{Namespace: system, Name: names.Child(policy)}, deployment))
	return deployment
}

func imageOf(deployment *appsv1.Deployment) string {
	return deployment.Spec.Template.Spec.Containers[0].Image
}
