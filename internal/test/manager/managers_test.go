//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/controllers"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestPreviousManager: a manager of another version that should have ended reconciles a policy
// beside the leader. The leader reverts the changes once, the CustomResourceDefinition is not
// written, and both become idle.
func TestPreviousManager(t *testing.T) {
	t.Parallel()
	const name = "crontabs.before.managers.example.com"
	crd := activate(t, "before.managers.example.com", nil)
	waitReady(t, name, v1alpha1.ReasonSucceeded)
	deployment := deploymentOf(t, name)
	before := startIdle(t, "conversion-operator:before")
	// It decides once: after a conflict with the leader it would change the Deployment again.
	expect.Eventually(t, "the other manager changes the Deployment", func() (bool, string) {
		_, err := before.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: name}})
		return deploymentOf(t, name).Generation > deployment.Generation, fmt.Sprint(err)
	})
	expect.Eventually(t, "the Deployment is as the leader wants it", func() (bool, string) {
		now := deploymentOf(t, name)
		return now.Generation > deployment.Generation && imageOf(now) == operatorImage, imageOf(now)
	})
	waitReady(t, name, v1alpha1.ReasonSucceeded)
	checkIdle(t, name)
	expect.Equal(t, "changes of the Deployment, there and back,", 2, deploymentOf(t, name).Generation-deployment.Generation)
	expect.Equal(t, "generation of the CustomResourceDefinition", crd.Generation, getCRD(t, name).Generation)
}

func imageOf(deployment *appsv1.Deployment) string {
	return deployment.Spec.Template.Spec.Containers[0].Image
}

// startIdle starts a manager with another image that does not become the leader, so that it reconciles on
// request.
func startIdle(t *testing.T, image string) *controllers.ConversionPolicyReconciler {
	t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "taken"}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: new("the leader"), LeaseDurationSeconds: new(int32(3600)), RenewTime: new(metav1.NowMicro())}}
	expect.NoError(t, cluster.Create(t.Context(), lease))
	idle, err := newManager(manager.config, ctrl.Options{LeaderElection: true, LeaderElectionID: lease.Name, LeaderElectionNamespace: system})
	expect.NoError(t, err)
	settings := manager.settings
	settings.Image = image
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	reconciler, err := setUp(ctx, idle, settings)
	expect.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- idle.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		expect.NoError(t, <-ended)
	})
	if !idle.GetCache().WaitForCacheSync(t.Context()) {
		t.Fatal("its cache does not fill")
	}
	return reconciler
}

// TestTwoManagers: the manager does not take over objects of other clients that have names which it would
// use. The unit tests of createOnce show that it accepts what another manager created.
func TestTwoManagers(t *testing.T) {
	t.Parallel()
	const name = "crontabs.taken.managers.example.com"
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: names.AuthoritySecret(name)}}
	expect.NoError(t, cluster.Create(t.Context(), secret))
	define(t, "taken.managers.example.com", "v1", "v1beta1")
	createPolicy(t, "taken.managers.example.com", nil)
	refused := []string{"exists without the labels"}
	waitFor(t, name, v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonApplyFailed, refused)
	expect.NoError(t, cluster.Delete(t.Context(), secret))
	waitReady(t, name, v1alpha1.ReasonSucceeded)

	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: names.Run(name, names.RunID(getCRD(t, name), "v1", "now"))}}
	job.Spec.Suspend = new(true)
	job.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "a", Image: "a"}}}
	expect.NoError(t, cluster.Create(t.Context(), job))
	patch(t, getPolicy(t, name), `{"spec":{"migration":{"trigger":"now"}}}`)
	waitFor(t, name, v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonApplyFailed, refused)
	expect.NoError(t, cluster.Delete(t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	waitReady(t, name, v1alpha1.ReasonSucceeded)
}
