//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestRetain: deletion is blocked while two versions are served. Then the CustomResourceDefinition
// is restored first, the pods stay for a while, and nothing is left.
func TestRetain(t *testing.T) {
	active := activate(t, "retain.leaving.example.com", unchanged)
	expect.NoError(t, cluster.Delete(t.Context(), getPolicy(t, active.Name)))
	condition := waitFor(t, active.Name, v1alpha1.DeletionBlockedCondition, metav1.ConditionTrue, v1alpha1.ReasonVersionsInUse)
	if !strings.Contains(condition.Message, "v1beta1 is served") {
		t.Errorf("the message does not name the version: %s", condition.Message)
	}
	checkDescription(t, "blocked-deletion", active.Name)
	checkIdle(t, active.Name)
	changeCRD(t, active.Name, func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions = crd.Spec.Versions[1:] })
	waitForRelease(t, active.Name)
	waitUntilNothingIsLeft(t, active.Name)
}

// TestRestoreNone: two served versions with the same schema need no converter.
func TestRestoreNone(t *testing.T) {
	const group, name = "none.leaving.example.com", "crontabs.none.leaving.example.com"
	create(t, manifest(group, "v1", "v2"), &apiextensionsv1.CustomResourceDefinition{})
	wanted := &v1alpha1.ConversionPolicy{}
	unmarshal(t, policyWith(group, "{hub: v2, spokes: [{version: v1}]}"), wanted)
	wanted.Spec.DeletionPolicy = v1alpha1.DeletionRestoreNone
	expect.NoError(t, cluster.Create(t.Context(), wanted))
	pods.run(t, name)
	waitFor(t, name, v1alpha1.ConversionConfiguredCondition, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
	expect.NoError(t, cluster.Delete(t.Context(), getPolicy(t, name)))
	waitForRelease(t, name)
	waitUntilNothingIsLeft(t, name)
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

func abandon(t *testing.T, policy string) {
	t.Helper()
	patchPolicy(t, policy, `{"spec":{"deletionPolicy":"Abandon"}}`)
	expect.NoError(t, cluster.Delete(t.Context(), getPolicy(t, policy)))
	waitUntilGone(t, policy)
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

// force removes the finalizer, as users do with a policy that is stuck.
func force(t *testing.T, policy string) {
	t.Helper()
	expect.NoError(t, cluster.Delete(t.Context(), getPolicy(t, policy)))
	patchPolicy(t, policy, `{"metadata":{"finalizers":null}}`)
	waitUntilGone(t, policy)
}

// TestDeletedPolicy: after the deletion of a policy, with or without its finalizer, the
// CustomResourceDefinition still converts, and a policy of the same name takes over without
// writing to it.
func TestDeletedPolicy(t *testing.T) {
	for name, remove := range map[string]func(*testing.T, string){"abandoned": abandon, "forced": force} {
		t.Run(name, func(t *testing.T) {
			group := name + ".leaving.example.com"
			active := activate(t, group, unchanged)
			waitUntilReadEnds(t, active.Name)
			before, deployment := remainingObjects(t, active.Name), getDeployment(t, active.Name)
			remove(t, active.Name)
			waitForOrphanEvent(t, active.Name)
			checkIdleOrphan(t, active.Name)
			if diff := cmp.Diff(before, remainingObjects(t, active.Name)); diff != "" {
				t.Errorf("the rest (-before +after):\n%s", diff)
			}
			create(t, policy(group), &v1alpha1.ConversionPolicy{})
			waitFor(t, active.Name, v1alpha1.ConversionConfiguredCondition, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
			if got := getCRD(t, active.Name).Generation; got != active.Generation {
				t.Errorf("the CustomResourceDefinition has generation %d, want %d: no write", got, active.Generation)
			}
			if got := getDeployment(t, active.Name); got.UID != deployment.UID || got.Generation != deployment.Generation {
				t.Errorf("the Deployment is another, or has generation %d instead of %d", got.Generation, deployment.Generation)
			}
		})
	}
}

func getDeployment(t *testing.T, policy string) *appsv1.Deployment {
	t.Helper()
	deployment := &appsv1.Deployment{}
	expect.NoError(t, cluster.Get(t.Context(), client.ObjectKey{Namespace: system, Name: names.Child(policy)}, deployment))
	return deployment
}

func waitForOrphanEvent(t *testing.T, crd string) {
	t.Helper()
	expect.Eventually(t, "an event of the CustomResourceDefinition", func() (bool, string) {
		list := &eventsv1.EventList{}
		expect.NoError(t, cluster.List(t.Context(), list))
		for _, event := range list.Items {
			if event.Regarding.Kind == "CustomResourceDefinition" && event.Regarding.Name == crd && event.Reason == v1alpha1.ReasonOrphaned {
				return true, ""
			}
		}
		return false, fmt.Sprintf("%d events", len(list.Items))
	})
}

// checkIdleOrphan: reconciling the objects of a deleted policy causes no write.
func checkIdleOrphan(t *testing.T, policy string) {
	t.Helper()
	expect.Eventually(t, "the manager is at rest", func() (bool, string) {
		before := writes.Load()
		for i := range 3 {
			touch(t, policy, i)
		}
		return writes.Load() == before, fmt.Sprintf("%d writes", writes.Load()-before)
	})
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
			force(t, active.Name)
			waitForOrphanEvent(t, active.Name)
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
	before := getDeployment(t, active.Name)
	stale := &ConversionPolicyReconciler{
		Client: blind{cluster}, Live: cluster, Recorder: events.NewFakeRecorder(1), Now: time.Now,
		Settings: observed.Settings{Namespace: system, PropagationDelay: time.Minute}, Prober: NewProber(time.Hour), Checks: fakeChecks(),
	}
	stale.start(t.Context())
	stale.orphans.put(active.Name, orphan{released: time.Unix(0, 0)})
	_, err := stale.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: active.Name}})
	expect.NoError(t, err)
	if after := getDeployment(t, active.Name); after.UID != before.UID {
		t.Error("the Deployment was deleted, and made again")
	}
}

// TestRecreatedNamespace: after all objects of the operator were deleted and it was installed
// again, one write to the CustomResourceDefinition activates a new authority.
func TestRecreatedNamespace(t *testing.T) {
	active := activate(t, "namespace.leaving.example.com", unchanged)
	loseChildren(t, active.Name)
	waitFor(t, active.Name, v1alpha1.WebhookAvailableCondition, metav1.ConditionFalse, v1alpha1.ReasonNoPodsReady)
	pods.run(t, active.Name)
	expect.Eventually(t, "caBundle is another", func() (bool, string) {
		before, after := active.Spec.Conversion.Webhook.ClientConfig.CABundle, getCRD(t, active.Name).Spec.Conversion.Webhook.ClientConfig.CABundle
		return string(before) != string(after), "the same"
	})
	waitFor(t, active.Name, v1alpha1.ConversionConfiguredCondition, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
	if got, want := getCRD(t, active.Name).Generation, active.Generation+1; got != want {
		t.Errorf("the CustomResourceDefinition has generation %d, want %d", got, want)
	}
}

func loseChildren(t *testing.T, policy string) {
	t.Helper()
	here := []client.DeleteAllOfOption{client.InNamespace(system), childrenNamed(policy), client.GracePeriodSeconds(0)}
	for _, kind := range []client.Object{&appsv1.Deployment{}, &corev1.Pod{}, &corev1.ConfigMap{}, &corev1.Secret{}} {
		expect.NoError(t, cluster.DeleteAllOf(t.Context(), kind, here...))
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: names.Child(policy)}}
	expect.NoError(t, cluster.Delete(t.Context(), service))
}
