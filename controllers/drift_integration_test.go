//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

// activate creates a policy and a CustomResourceDefinition of two versions, and waits until
// conversion is active.
func activate(t *testing.T, group string, change func(*v1alpha1.ConversionPolicy)) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	name := "crontabs." + group
	create(t, manifest(group, "v1beta1", "v1"), &apiextensionsv1.CustomResourceDefinition{})
	wanted := &v1alpha1.ConversionPolicy{}
	unmarshal(t, policy(group), wanted)
	change(wanted)
	expect.NoError(t, cluster.Create(t.Context(), wanted))
	pods.run(t, name)
	waitFor(t, name, v1alpha1.ConversionConfiguredCondition, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
	return getCRD(t, name)
}

func unchanged(*v1alpha1.ConversionPolicy) {}

// TestDrift: the operator reverts each kind of foreign write with one write, and reports it on
// both objects.
func TestDrift(t *testing.T) {
	for name, c := range foreign {
		t.Run(name, func(t *testing.T) {
			active := activate(t, strings.NewReplacer(" ", "-", "'", "").Replace(strings.ToLower(name))+".drift.example.com", unchanged)
			expect.NoError(t, writeCRD(t, active.Name, c.write))
			written := time.Now()
			waitForConversion(t, active)
			t.Logf("undone within %s", time.Since(written).Round(time.Millisecond))
			checkEvents(t, active.Name, v1alpha1.ReasonConversionDrifted, c.message, "ConversionPolicy", "CustomResourceDefinition")
			waitFor(t, active.Name, v1alpha1.ConversionConfiguredCondition, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
			expect.Equal(t, "generation, after their write and ours,", active.Generation+2, getCRD(t, active.Name).Generation)
			drift := getPolicy(t, active.Name).Status.Drift
			if drift.LastManager != c.manager || drift.Answer != v1alpha1.DriftRepaired || len(drift.Repairs) != 1 {
				t.Errorf("status.drift is %+v, want one repair after %q", drift, c.manager)
			}
			checkIdle(t, active.Name)
		})
	}
}

// TestNoDrift: a write that does not change spec.conversion is no drift, and causes no write.
func TestNoDrift(t *testing.T) {
	active := activate(t, "none.drift.example.com", unchanged)
	for _, write := range harmless {
		expect.NoError(t, writeCRD(t, active.Name, write))
	}
	for name, write := range impossible {
		if err := write(t, getCRD(t, active.Name)); !apierrors.IsInvalid(err) {
			t.Errorf("%s of strategy None: %v, want a refusal", name, err)
		}
	}
	err := cluster.Apply(t.Context(), strategyNone(active.Name), client.FieldOwner("helm"))
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), strconv.Quote(names.ManagedBy)) {
		t.Errorf("server-side apply without force: %v, want a conflict that names the operator", err)
	}
	checkIdle(t, active.Name)
	expect.Equal(t, "generation", active.Generation, getCRD(t, active.Name).Generation)
	expect.Equal(t, "status.drift", nil, getPolicy(t, active.Name).Status.Drift)
}

// TestDriftWhileAPodHangs: a slow probe does not delay the repair of a foreign write.
func TestDriftWhileAPodHangs(t *testing.T) {
	active := activate(t, "hangs.drift.example.com", unchanged)
	pods.hang.Store(new(names.ServerName(active.Name, system)))
	defer pods.hang.Store(nil)
	pods.run(t, active.Name) // others, that have proven nothing
	expect.Eventually(t, "pods are probed, or did not answer in time", func() (bool, string) {
		verified := apimeta.FindStatusCondition(getPolicy(t, active.Name).Status.Conditions, v1alpha1.ConversionVerifiedCondition)
		return verified.Reason == v1alpha1.ReasonProbing || verified.Reason == string(probe.ReasonTimeout), verified.String()
	})
	drop(t, active.Name)
	written := time.Now()
	waitForConversion(t, active)
	t.Logf("undone within %s", time.Since(written).Round(time.Millisecond))
	waitFor(t, active.Name, v1alpha1.ConversionVerifiedCondition, metav1.ConditionFalse, string(probe.ReasonTimeout))
}

// TestDriftWithStaleCache: a manager whose cache does not have its own activation yet writes
// nothing. Otherwise it would take a foreign write for the state before the activation.
func TestDriftWithStaleCache(t *testing.T) {
	active := activate(t, "stale.drift.example.com", func(policy *v1alpha1.ConversionPolicy) { policy.Spec.Drift = v1alpha1.DriftReport })
	drop(t, active.Name)
	waitFor(t, active.Name, v1alpha1.StalledCondition, metav1.ConditionTrue, v1alpha1.ReasonConversionDrifted)
	checkIdle(t, active.Name)
	dropped := getCRD(t, active.Name)
	lagging, err := client.NewWithWatch(direct, client.Options{Scheme: cluster.Scheme()})
	expect.NoError(t, err)
	stale := newReconciler(t)
	stale.Settings.PropagationDelay = time.Minute
	stale.Client = interceptor.NewClient(lagging, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			err := c.Get(ctx, key, object, options...)
			if policy, is := object.(*v1alpha1.ConversionPolicy); is {
				policy.Status, policy.ResourceVersion = v1alpha1.ConversionPolicyStatus{}, "1"
			}
			return err
		},
	})
	tries := false
	stale.Live = interceptor.NewClient(lagging, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			_, is := object.(*v1alpha1.ConversionPolicy)
			tries = tries || is
			return c.Get(ctx, key, object, options...)
		},
	})
	expect.Eventually(t, "it goes to write, and loses", func() (bool, string) {
		result, err := stale.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: active.Name}})
		expect.NoError(t, err)
		return tries && result.RequeueAfter == conflictPause, fmt.Sprintf("tries to write: %t, %v", tries, result)
	})
	expect.Equal(t, "generation, as it does not write spec.conversion,", dropped.Generation, getCRD(t, active.Name).Generation)
}

func drop(t *testing.T, name string) {
	t.Helper()
	expect.NoError(t, foreign["an upgrade by merge patch"].write(t, getCRD(t, name)))
}

func patchPolicy(t *testing.T, name, patch string) {
	t.Helper()
	expect.NoError(t, cluster.Patch(t.Context(), getPolicy(t, name), client.RawPatch(mergePatch, []byte(patch))))
}

func waitForConversion(t *testing.T, active *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	expect.Eventually(t, "spec.conversion is what it was", func() (bool, string) {
		diff := cmp.Diff(active.Spec.Conversion, getCRD(t, active.Name).Spec.Conversion)
		return diff == "", diff
	})
}
