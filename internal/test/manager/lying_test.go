//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestPodConvertsWrongly: a pod converts wrongly after the activation. The re-probe detects it, the
// CRD is not written, the running migration is suspended, and the pod is evicted, unless its
// PodDisruptionBudget forbids that, or no other pod converts correctly.
func TestPodConvertsWrongly(t *testing.T) {
	t.Parallel()
	const group, policy = "lying.example.com", "crontabs.lying.example.com"
	migrateSlowly(t, group, func(spec *v1alpha1.ConversionPolicySpec) {
		spec.Workload.Dedicated.Replicas = new(int32(2))
		spec.Workload.Dedicated.Patches = []v1alpha1.Patch{{Target: &v1alpha1.PatchTarget{Kind: "PodDisruptionBudget"}, Patch: `[{op: replace, path: /spec/maxUnavailable, value: 0}]`}}
	})
	waitFor(t, policy, v1alpha1.StorageMigratedCondition, metav1.ConditionFalse, v1alpha1.ReasonMigrating, nil)
	waitJob(t, policy, false)
	waitFor(t, policy, v1alpha1.ConversionVerifiedCondition, metav1.ConditionTrue, v1alpha1.ReasonVerified, []string{"2 converter pods"})
	active, pods := getCRD(t, policy), podsOf(t, policy)

	bad := pods[1]
	misbehave(t, bad, faults{Manager: fault{Replace: [2]string{`"host":"`, `"host":"x`}}})
	waitFor(t, policy, v1alpha1.ConversionVerifiedCondition, metav1.ConditionFalse, "CanaryFailed",
		[]string{"converter pod " + bad + ": ", ".host", "the operator evicts it once PodDisruptionBudget"})
	waitJob(t, policy, true)
	if now := podsOf(t, policy); !slices.Contains(now, bad) {
		t.Errorf("the pod was evicted although its PodDisruptionBudget allows none: there are %v", now)
	}
	patch(t, getPolicy(t, policy), `{"spec":{"workload":{"dedicated":{"patches":null}}}}`)
	expect.Eventually(t, "the pod is replaced", func() (bool, string) {
		now := podsOf(t, policy)
		return len(now) == 2 && !slices.Contains(now, bad), fmt.Sprint(now)
	})
	waitFor(t, policy, v1alpha1.ConversionVerifiedCondition, metav1.ConditionTrue, v1alpha1.ReasonVerified, []string{"2 converter pods"})
	waitEvent(t, policy, v1alpha1.ReasonPodEvicted)
	waitJob(t, policy, false)

	misbehave(t, policy, faults{Manager: fault{Garbage: true}})
	waitFor(t, policy, v1alpha1.ConversionVerifiedCondition, metav1.ConditionFalse, "UnexpectedAnswer",
		[]string{"no other pod answers correctly", "kubectl -n conversion-system rollout restart deployment"})
	waitJob(t, policy, true)
	misbehave(t, policy, faults{})
	waitJob(t, policy, false)
	expect.Equal(t, "generation of the CustomResourceDefinition", active.Generation, getCRD(t, policy).Generation)
}

// TestRepeatedProbes: while pods convert correctly, they are probed again and again, and the manager
// writes nothing.
func TestRepeatedProbes(t *testing.T) {
	t.Parallel()
	const group, policy = "rests.example.com", "crontabs.rests.example.com"
	define(t, group, "v1beta1", "v1")
	createPolicy(t, group, nil)
	waitReady(t, policy, v1alpha1.ReasonSucceeded)
	checkAtRest(t, policy)
	rests, since := "", time.Now()
	expect.Eventually(t, "the policy rests while its pods are probed three times", func() (bool, string) {
		if is := getPolicy(t, policy).ResourceVersion; is != rests {
			rests, since = is, time.Now()
		}
		return time.Since(since) > 4*proofLifetime, fmt.Sprint("it was written at ", since)
	})
}

// podsOf returns the names of the pods of a policy that are not about to end.
func podsOf(t *testing.T, policy string) []string {
	t.Helper()
	list := &corev1.PodList{}
	expect.NoError(t, cluster.List(t.Context(), list, client.InNamespace(system), client.MatchingLabels{
		names.InstanceLabel: names.Child(policy), names.ComponentLabel: names.ConverterComponent}))
	var found []string
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			found = append(found, pod.Name)
		}
	}
	slices.Sort(found)
	return found
}
