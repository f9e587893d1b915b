//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

// TestDrift: the operator reverts each kind of foreign write with one write, and reports it on
// both objects.
func TestDrift(t *testing.T) {
	t.Parallel()
	for name, c := range foreign {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			active := activate(t, dns(strings.ReplaceAll(name, "'", ""))+".drift.example.com", shared)
			expect.NoError(t, writeCRD(t, active.Name, c.write))
			written := time.Now()
			waitForConversion(t, active)
			t.Logf("undone within %s", time.Since(written).Round(time.Millisecond))
			checkWarned(t, active.Name, v1alpha1.ReasonDrifted, c.message)
			waitFor(t, active.Name, v1alpha1.ConversionConfiguredCondition, metav1.ConditionTrue, v1alpha1.ReasonConfigured, nil)
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
	t.Parallel()
	active := activate(t, "none.drift.example.com", shared)
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
	t.Parallel()
	active := activate(t, "hangs.drift.example.com", nil)
	misbehave(t, active.Name, faults{Manager: fault{Hang: true}})
	waitFor(t, active.Name, v1alpha1.ConversionVerifiedCondition, metav1.ConditionFalse, string(probe.ReasonUnreachable), []string{"timed out"})
	drop(t, active.Name)
	written := time.Now()
	waitForConversion(t, active)
	t.Logf("undone within %s", time.Since(written).Round(time.Millisecond))
	waitFor(t, active.Name, v1alpha1.ConversionVerifiedCondition, metav1.ConditionFalse, string(probe.ReasonUnreachable), []string{"timed out"})
}

func drop(t *testing.T, name string) {
	t.Helper()
	expect.NoError(t, foreign["an upgrade by merge patch"].write(t, getCRD(t, name)))
}

func waitForConversion(t *testing.T, active *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	expect.Eventually(t, "spec.conversion is what it was", func() (bool, string) {
		diff := cmp.Diff(active.Spec.Conversion, getCRD(t, active.Name).Spec.Conversion)
		return diff == "", diff
	})
}

// writeCRD calls write with the latest CustomResourceDefinition, and again after a conflict.
func writeCRD(t *testing.T, name string, write func(*testing.T, *apiextensionsv1.CustomResourceDefinition) error) error {
	t.Helper()
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error { return write(t, getCRD(t, name)) })
}
