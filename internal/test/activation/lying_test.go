//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package activation

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/workload"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

const lying = "lying.example.com"

// TestPodConvertsWrongly: a pod converts wrongly after the activation. The re-probe detects it, the
// CRD is not written, the running migration is suspended, and the pod is evicted, unless its
// PodDisruptionBudget forbids that or it is the last one. While the pods convert correctly, the
// manager writes nothing.
func TestPodConvertsWrongly(t *testing.T) {
	const group, policy = lying, "crontabs." + lying
	define(t, group, "v1beta1", "v1")
	createCronTab(t, group, "v1beta1", "good", "a.example.com:1")
	createPolicy(t, group, func(policy *v1alpha1.ConversionPolicy) {
		policy.Spec.Workload.Replicas = new(int32(2))
		policy.Spec.Migration.Mode, policy.Spec.Migration.Trigger = v1alpha1.MigrationAutomatic, "once"
	})
	first := startConverter(t, policy, behaviour{}, behaviour{})
	second := first.another(t, "second")
	waitFor(t, policy, v1alpha1.StorageMigratedCondition, metav1.ConditionFalse, v1alpha1.ReasonMigrating, nil)
	active := getCRD(t, policy)
	waitRests(t, policy, second)

	second.lie()
	waitFor(t, policy, v1alpha1.ConversionVerifiedCondition, metav1.ConditionFalse, "CanaryFailed",
		[]string{"converter pod second: ", ".host", "the operator evicts it once PodDisruptionBudget"})
	waitSuspended(t, true)
	if err := second.get(t.Context()); err != nil {
		t.Errorf("the pod was evicted although its PodDisruptionBudget allows none: %v", err)
	}
	allowEvictions(t, policy)
	expect.Eventually(t, "the pod is evicted", func() (bool, string) {
		err := second.get(t.Context())
		return err != nil && client.IgnoreNotFound(err) == nil, fmt.Sprint(err)
	})
	waitFor(t, policy, v1alpha1.ConversionVerifiedCondition, metav1.ConditionTrue, v1alpha1.ReasonVerified, []string{"1 converter pods"})
	waitEvent(t, policy, v1alpha1.ReasonPodEvicted)
	waitSuspended(t, false)

	first.toManager.Store(&behaviour{answer: garbage})
	waitFor(t, policy, v1alpha1.ConversionVerifiedCondition, metav1.ConditionFalse, "UnexpectedAnswer",
		[]string{"no other pod answers correctly", "kubectl -n conversion-system rollout restart deployment"})
	waitSuspended(t, true)
	first.toManager.Store(&behaviour{})
	waitSuspended(t, false)
	if after := getCRD(t, policy); after.ResourceVersion != active.ResourceVersion {
		t.Errorf("the CustomResourceDefinition was written: generation %d, was %d", after.Generation, active.Generation)
	}
}

// companion is another pod of a policy, which only the manager probes.
type companion struct {
	name     string
	behaves  *atomic.Pointer[behaviour]
	answered *atomic.Int32
}

// another starts a second pod of the policy.
func (c *testConverter) another(t *testing.T, name string) companion {
	t.Helper()
	deployment := &appsv1.Deployment{}
	expect.NoError(t, cluster.Get(t.Context(), client.ObjectKey{Namespace: system, Name: names.Child(c.policy)}, deployment))
	n, answered := pods.Add(1), &atomic.Int32{}
	second := &testConverter{policy: c.policy, ip: fmt.Sprintf("127.0.%d.%d", 1+n/200, 1+n%200)}
	second.load(t)
	behaves := &atomic.Pointer[behaviour]{}
	behaves.Store(&behaviour{answer: counting(answered)})
	second.listen(t, net.JoinHostPort(second.ip, fmt.Sprint(workload.ContainerPort)), behaves)
	testenv.RunPod(t, cluster, deployment, testenv.Pod{Name: name, IP: second.ip})
	return companion{name, behaves, answered}
}

// counting counts the reviews that a converter answers.
func counting(reviews *atomic.Int32) func(http.Handler, http.ResponseWriter, *http.Request) {
	return func(converter http.Handler, w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			reviews.Add(1)
		}
		converter.ServeHTTP(w, r)
	}
}

func (c companion) lie() { c.behaves.Store(&behaviour{answer: replacing(`"host":"`, `"host":"x`)}) }

func (c companion) get(ctx context.Context) error {
	return cluster.Get(ctx, client.ObjectKey{Namespace: system, Name: c.name}, &corev1.Pod{})
}

// waitRests waits until a pod is probed repeatedly without any write.
func waitRests(t *testing.T, policy string, asked companion) {
	t.Helper()
	rests, since := "", int32(0)
	expect.Eventually(t, "the policy rests while the pod is asked three times", func() (bool, string) {
		if is := getPolicy(t, policy).ResourceVersion; is != rests {
			rests, since = is, asked.answered.Load()
		}
		reviews := asked.answered.Load() - since
		return reviews >= 3*2, fmt.Sprintf("%d reviews since it was written", reviews)
	})
}

func waitSuspended(t *testing.T, want bool) {
	t.Helper()
	expect.Eventually(t, fmt.Sprintf("the migration is suspended: %t", want), func() (bool, string) {
		jobs := &batchv1.JobList{}
		expect.NoError(t, cluster.List(t.Context(), jobs, client.InNamespace(system), client.MatchingLabels{names.InstanceLabel: names.Child("crontabs." + lying)}))
		return len(jobs.Items) == 1 && ptr.Deref(jobs.Items[0].Spec.Suspend, false) == want, fmt.Sprintf("%d Jobs", len(jobs.Items))
	})
}

// allowEvictions acts as the controller of PodDisruptionBudgets.
func allowEvictions(t *testing.T, policy string) {
	t.Helper()
	budget := &policyv1.PodDisruptionBudget{}
	expect.NoError(t, cluster.Get(t.Context(), client.ObjectKey{Namespace: system, Name: names.Child(policy)}, budget))
	budget.Status = policyv1.PodDisruptionBudgetStatus{
		ObservedGeneration: budget.Generation, DisruptionsAllowed: 2, CurrentHealthy: 2, DesiredHealthy: 1, ExpectedPods: 2}
	expect.NoError(t, cluster.Status().Update(t.Context(), budget))
}

func waitEvent(t *testing.T, policy, reason string) {
	t.Helper()
	expect.Eventually(t, "an event "+reason, func() (bool, string) { return hasEvent(t, policy, reason) })
}

// hasEvent reports whether a policy has an event, and what there is instead.
func hasEvent(t *testing.T, policy, reason string) (bool, string) {
	t.Helper()
	list := &eventsv1.EventList{}
	expect.NoError(t, cluster.List(t.Context(), list))
	for _, event := range list.Items {
		if event.Regarding.Name == policy && event.Reason == reason {
			return true, ""
		}
	}
	return false, fmt.Sprintf("%d events; %s", len(list.Items), summaryOf(getPolicy(t, policy).Status.Conditions))
}
