//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestRetain: deletion is blocked while two versions are served. Then the CustomResourceDefinition
// is restored first, the pods stay for a while, and nothing is left.
func TestRetain(t *testing.T) {
	active := activate(t, "retain.leaving.example.com", unchanged)
	expect.NoError(t, cluster.Delete(t.Context(), getPolicy(t, active.Name)))
	condition := waitFor(t, active.Name, v1alpha1.DeletionBlockedCondition, metav1.ConditionTrue, v1alpha1.ReasonVersionsInUse)
	expect.Contains(t, "the message", condition.Message, "v1beta1 is served")
	checkIdle(t, active.Name)
	changeCRD(t, active.Name, func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions = crd.Spec.Versions[1:] })
	waitForRelease(t, active.Name)
	waitUntilNothingIsLeft(t, active.Name)
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
	expect.Eventually(t, "the policy is gone", func() (bool, string) {
		err := cluster.Get(t.Context(), client.ObjectKey{Name: policy}, &v1alpha1.ConversionPolicy{})
		return apierrors.IsNotFound(err), "still there"
	})
}

func waitUntilNothingIsLeft(t *testing.T, policy string) {
	t.Helper()
	waitUntilGone(t, policy)
	expect.Eventually(t, "nothing is left of the policy", func() (bool, string) {
		left := remainingObjects(t, policy)
		return len(left) == 0, fmt.Sprint(left)
	})
}

// remainingObjects counts the remaining objects of a policy, by kind.
func remainingObjects(t *testing.T, policy string) map[string]int {
	t.Helper()
	left := map[string]int{}
	for _, kind := range (&ConversionPolicyReconciler{Settings: observed.Settings{Namespace: system}}).childKinds() {
		err := cluster.List(t.Context(), kind.list, childrenNamed(policy), kind.from)
		if meta.IsNoMatchError(err) {
			continue // cert-manager is not installed
		}
		expect.NoError(t, err)
		expect.NoError(t, meta.EachListItem(kind.list, func(item runtime.Object) error {
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
	expect.Eventually(t, "the right to read objects is taken back", func() (bool, string) {
		if window := getPolicy(t, policy).Status.UnconvertedWindow; window == nil || window.Written == nil {
			return false, "what was written in the window is not counted yet"
		}
		err := cluster.Get(t.Context(), client.ObjectKey{Name: names.ReadRights(policy)}, &rbacv1.ClusterRole{})
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
}

// TestDeletedPolicy: after the deletion of a policy, the CustomResourceDefinition still converts, and a
// policy of the same name takes over without writing to it. TestOrphansAreDeleted is about a policy that
// was deleted without its finalizer.
func TestDeletedPolicy(t *testing.T) {
	const group = "abandoned.leaving.example.com"
	active := activate(t, group, unchanged)
	waitUntilReadEnds(t, active.Name)
	before, deployment := remainingObjects(t, active.Name), deploymentOf(t, active.Name)
	patchPolicy(t, active.Name, `{"spec":{"deletionPolicy":"Abandon"}}`)
	expect.NoError(t, cluster.Delete(t.Context(), getPolicy(t, active.Name)))
	waitUntilGone(t, active.Name)
	checkEvents(t, active.Name, v1alpha1.ReasonOrphaned, "", "CustomResourceDefinition")
	checkIdle(t, active.Name)
	expect.Equal(t, "the rest", before, remainingObjects(t, active.Name))
	create(t, policy(group), &v1alpha1.ConversionPolicy{})
	waitFor(t, active.Name, v1alpha1.ConversionConfiguredCondition, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
	expect.Equal(t, "the CustomResourceDefinition has generation", active.Generation, getCRD(t, active.Name).Generation)
	if got := deploymentOf(t, active.Name); got.UID != deployment.UID || got.Generation != deployment.Generation {
		t.Errorf("the Deployment is another, or has generation %d instead of %d", got.Generation, deployment.Generation)
	}
}

// TestOrphansAreDeleted after the CustomResourceDefinition stops using them, or is deleted.
func TestOrphansAreDeleted(t *testing.T) {
	cases := map[string]func(*testing.T, *apiextensionsv1.CustomResourceDefinition){
		"dropped": func(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) { drop(t, crd.Name) },
		"deleted": func(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
			expect.NoError(t, cluster.Delete(t.Context(), crd))
		},
	}
	for name, end := range cases {
		t.Run(name, func(t *testing.T) {
			active := activate(t, name+".orphans.example.com", unchanged)
			// As users do with a policy that is stuck.
			expect.NoError(t, cluster.Delete(t.Context(), getPolicy(t, active.Name)))
			patchPolicy(t, active.Name, `{"metadata":{"finalizers":null}}`)
			waitUntilGone(t, active.Name)
			checkEvents(t, active.Name, v1alpha1.ReasonOrphaned, "", "CustomResourceDefinition")
			checkIdle(t, active.Name)
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

// blind is a cache that has not received any policy yet.
type blind struct{ client.Client }

func (b blind) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if _, policy := object.(*v1alpha1.ConversionPolicy); policy {
		return apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource("conversionpolicies").GroupResource(), key.Name)
	}
	return b.Client.Get(ctx, key, object, options...)
}

// TestStaleCacheIsNoOrphan: objects of a policy that the cache does not have yet are not deleted,
// even if the CustomResourceDefinition does not use them.
func TestStaleCacheIsNoOrphan(t *testing.T) {
	active := activate(t, "stale.leaving.example.com", func(policy *v1alpha1.ConversionPolicy) { policy.Spec.Drift = v1alpha1.DriftReport })
	drop(t, active.Name)
	waitFor(t, active.Name, v1alpha1.ConversionConfiguredCondition, metav1.ConditionFalse, v1alpha1.ReasonConversionDrifted)
	before := deploymentOf(t, active.Name)
	stale := newReconciler(t)
	stale.Client, stale.Settings.PropagationDelay = blind{cluster}, time.Minute
	stale.orphans.put(active.Name, orphan{released: time.Unix(0, 0)})
	_, err := stale.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: active.Name}})
	expect.NoError(t, err)
	expect.Equal(t, "UID of the Deployment, which stays,", before.UID, deploymentOf(t, active.Name).UID)
}
