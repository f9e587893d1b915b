//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"reflect"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestBlock: deletion is blocked while two versions are served. Then the CustomResourceDefinition
// is restored first, the pods stay for a while, and nothing is left.
func TestBlock(t *testing.T) {
	t.Parallel()
	active := activate(t, "block.leaving.example.com", nil)
	blocked := foresee(t, active.Name, nil, "--delete").report.End
	expect.Equal(t, "end of the forecast", v1alpha1.DeletionBlockedCondition+" "+v1alpha1.ReasonInUse, blocked.Condition+" "+blocked.Reason)
	expect.NoError(t, cluster.Delete(t.Context(), getPolicy(t, active.Name)))
	waitFor(t, active.Name, v1alpha1.DeletionBlockedCondition, metav1.ConditionTrue, v1alpha1.ReasonInUse, []string{"v1beta1 is served"})
	checkIdle(t, active.Name)
	forecast := foresee(t, active.Name, []client.Object{manifest(t, active.Spec.Group, "v1")})
	expect.Equal(t, "the policy is gone at the end of the forecast", true, forecast.report.End.Gone)
	changeCRD(t, active.Name, func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions = crd.Spec.Versions[:1] })
	waitForRelease(t, active.Name)
	waitUntilNothingIsLeft(t, active.Name)
	forecast.check(t)
}

// waitForRelease waits for strategy None, while the pods still run.
func waitForRelease(t *testing.T, name string) {
	t.Helper()
	expect.Eventually(t, "the CustomResourceDefinition is released before the pods go", func() (bool, string) {
		strategy, left := getCRD(t, name).Spec.Conversion.Strategy, remainingObjects(t, name)
		return strategy == apiextensionsv1.NoneConverter && left["Deployment"] == 1 && left["Service"] == 1, fmt.Sprint(strategy, left)
	})
}

func waitUntilGone(t *testing.T, policy string) {
	t.Helper()
	waitGone(t, policy, &v1alpha1.ConversionPolicy{})
}

func waitUntilNothingIsLeft(t *testing.T, policy string) {
	t.Helper()
	waitUntilGone(t, policy)
	expect.Eventually(t, "nothing is left of the policy", func() (bool, string) {
		left := remainingObjects(t, policy)
		return len(left) == 0, fmt.Sprint(left)
	})
}

// childKinds are those of the objects of policies.
var childKinds = []client.ObjectList{
	&appsv1.DeploymentList{}, &batchv1.JobList{}, &corev1.ConfigMapList{}, &corev1.SecretList{}, &corev1.ServiceList{}, &corev1.ServiceAccountList{},
	&policyv1.PodDisruptionBudgetList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{},
	&flowcontrolv1.FlowSchemaList{}, &admissionregistrationv1.ValidatingWebhookConfigurationList{},
}

// remainingObjects counts the remaining objects of a policy, by kind.
func remainingObjects(t *testing.T, policy string) map[string]int {
	t.Helper()
	left := map[string]int{}
	for _, kind := range childKinds {
		list := kind.DeepCopyObject().(client.ObjectList) //nolint:forcetypeassert // a copy is of the same type
		expect.NoError(t, cluster.List(t.Context(), list, client.MatchingLabels{names.InstanceLabel: names.Child(policy)}))
		expect.NoError(t, apimeta.EachListItem(list, func(item runtime.Object) error {
			left[reflect.TypeOf(item).Elem().Name()]++
			return nil
		}))
	}
	return left
}

// waitUntilReadEnds waits until the check of a policy's objects has finished, and the right to read
// them is deleted.
func waitUntilReadEnds(t *testing.T, policy string) {
	t.Helper()
	expect.Eventually(t, "what was written in the window is counted", func() (bool, string) {
		window := getPolicy(t, policy).Status.UnconvertedWindow
		return window != nil && window.Written != nil, fmt.Sprint(window)
	})
	waitGone(t, names.ReadRights(policy), &rbacv1.ClusterRole{})
}

// TestDeletedPolicy: after the deletion of a policy, the CustomResourceDefinition still converts, and a
// policy of the same name takes over without writing to it. TestOrphansAreDeleted is about a policy that
// was deleted without its finalizer.
func TestDeletedPolicy(t *testing.T) {
	const group = "orphaned.leaving.example.com"
	t.Parallel()
	active := activate(t, group, nil)
	waitUntilReadEnds(t, active.Name)
	before, deployment := remainingObjects(t, active.Name), deploymentOf(t, active.Name)
	patch(t, getPolicy(t, active.Name), `{"spec":{"deletionPolicy":"Orphan"}}`)
	expect.NoError(t, cluster.Delete(t.Context(), getPolicy(t, active.Name)))
	waitUntilGone(t, active.Name)
	waitEventOf(t, aboutCRD, active.Name, v1alpha1.ReasonOrphaned, "")
	expect.Equal(t, "the rest", before, remainingObjects(t, active.Name))
	checkOrphanIsIdle(t, active.Name)
	createPolicy(t, group, nil)
	waitFor(t, active.Name, v1alpha1.ConversionConfiguredCondition, metav1.ConditionTrue, v1alpha1.ReasonConfigured, nil)
	expect.Equal(t, "the CustomResourceDefinition has generation", active.Generation, getCRD(t, active.Name).Generation)
	if got := deploymentOf(t, active.Name); got.UID != deployment.UID || got.Generation != deployment.Generation {
		t.Errorf("the Deployment is another, or has generation %d instead of %d", got.Generation, deployment.Generation)
	}
}

// TestOrphansAreDeleted after the CustomResourceDefinition stops using them, or is deleted.
func TestOrphansAreDeleted(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*testing.T, *apiextensionsv1.CustomResourceDefinition){
		"dropped": func(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) { drop(t, crd.Name) },
		"deleted": func(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
			expect.NoError(t, cluster.Delete(t.Context(), crd))
		},
	}
	for name, end := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			active := activate(t, name+".orphans.example.com", nil)
			// As users do with a policy that is stuck.
			expect.NoError(t, cluster.Delete(t.Context(), getPolicy(t, active.Name)))
			patch(t, getPolicy(t, active.Name), `{"metadata":{"finalizers":null}}`)
			waitUntilGone(t, active.Name)
			waitEventOf(t, aboutCRD, active.Name, v1alpha1.ReasonOrphaned, "")
			checkOrphanIsIdle(t, active.Name)
			certificate := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: names.CertificateSecret(active.Name)}}
			expect.NoError(t, cluster.Delete(t.Context(), certificate))
			expect.Eventually(t, "the certificate is issued again", func() (bool, string) {
				return remainingObjects(t, active.Name)["Secret"] == 2, "one Secret"
			})
			end(t, active)
			waitUntilNothingIsLeft(t, active.Name)
		})
	}
}

// checkOrphanIsIdle waits until changes of the Service that a policy left cause no writes.
func checkOrphanIsIdle(t *testing.T, policy string) {
	t.Helper()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: names.Child(policy)}}
	touch := func(n int) { patch(t, service, fmt.Sprintf(`{"metadata":{"annotations":{"touched":"%d"}}}`, n)) }
	checkNoWrites(t, policy, func() { lookAfter(t, policy, touch) })
}

func deploymentOf(t *testing.T, policy string) *appsv1.Deployment {
	t.Helper()
	return get(t, names.Child(policy), &appsv1.Deployment{})
}
