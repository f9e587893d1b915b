//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// TestFleet has two policies in one fleet, while clients read and write objects of both. One moves to
// pods of its own and back; the pods of the fleet are replaced in turn; the fleet is scaled, and its
// authority replaced. No conversion fails. A fleet that is deleted stays until its policies are gone,
// and so do its pods.
func TestFleet(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	const name = "e2e"
	createFleet(ctx, t, name)
	first, second := inFleet(ctx, t, "first.example.com", name), inFleet(ctx, t, "second.example.com", name)
	expect.Equal(t, "pods that are of one policy alone", 0, len(converters(ctx, t, first)))
	loads := []*load{startLoad(ctx, t, first), startLoad(ctx, t, second)}

	change(ctx, t, first, `{"spec":{"workload":{"type":"Dedicated","fleet":null}}}`)
	waitService(ctx, t, first, names.Child(first.CRD()))
	waitReady(ctx, t, first, v1alpha1.ReasonSucceeded)
	change(ctx, t, first, fmt.Sprintf(`{"spec":{"workload":{"type":"Fleet","fleet":{"name":%q}}}}`, name))
	waitService(ctx, t, first, names.Fleet(name))

	for _, pod := range fleetPods(ctx, t, name) {
		expect.NoError(t, cluster.Delete(ctx, &pod))
		waitFleet(ctx, t, name, 3)
	}
	patchFleet(ctx, t, name, `{"spec":{"replicas":2}}`)
	waitFleet(ctx, t, name, 2)

	before := caBundle(ctx, t, second)
	patchFleet(ctx, t, name, `{"spec":{"certificates":{"type":"SelfManaged","selfManaged":{"rotationTrigger":"e2e"}}}}`)
	expect.Eventually(t, "all CustomResourceDefinitions trust the next authority alone", func() (bool, string) {
		is, now := getFleet(ctx, t, name).Status.Certificate, caBundle(ctx, t, second)
		return is != nil && is.Rotation == v1alpha1.RotationIdle && !bytes.Equal(now, before) && bytes.Count(now, []byte("BEGIN")) == 1 &&
			bytes.Equal(now, caBundle(ctx, t, first)), fmt.Sprintf("%+v", is)
	})

	waitGone(ctx, t, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: names.Child(first.CRD())}})
	expect.NoError(t, cluster.Delete(ctx, getFleet(ctx, t, name)))
	expect.Eventually(t, "the deletion of the fleet is blocked", func() (bool, string) {
		return apimeta.FindStatusCondition(getFleet(ctx, t, name).Status.Conditions, v1alpha1.DeletionBlockedCondition) != nil, ""
	})
	expect.Equal(t, "pods of the fleet", 2, len(fleetPods(ctx, t, name)))
	for _, load := range loads {
		load.checkAll(t)
		remove(t, load.crontab.CRD())
	}
	waitGone(ctx, t, &v1alpha1.ConverterFleet{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// inFleet returns a CronTab that converts in a fleet, with an object for each client of a load.
func inFleet(ctx context.Context, t *testing.T, group, name string) scenarios.CronTab {
	t.Helper()
	crontab := inGroup(t, group)
	applySample(ctx, t, crontab, crontab.CRDStorage)
	policy := &v1alpha1.ConversionPolicy{}
	expect.NoError(t, yaml.Unmarshal([]byte(readSample(t, crontab, crontab.Policy)), policy))
	policy.Spec.Workload = &v1alpha1.Workload{Type: v1alpha1.WorkloadFleet, Fleet: &v1alpha1.FleetWorkload{Name: v1alpha1.FleetName(name)}}
	expect.NoError(t, cluster.Create(ctx, policy))
	waitService(ctx, t, crontab, names.Fleet(name))
	waitReady(ctx, t, crontab, v1alpha1.ReasonSucceeded)
	expect.NoError(t, fleet.Create(ctx, crontab.At(crontab.Old), loadClients, crontab.Object))
	return crontab
}

// waitService waits until a CustomResourceDefinition converts through a Service.
func waitService(ctx context.Context, t *testing.T, crontab scenarios.CronTab, service string) {
	t.Helper()
	expect.Eventually(t, crontab.CRD()+" converts through "+service, func() (bool, string) {
		conversion := getCRD(ctx, t, crontab).Spec.Conversion
		return conversion.Webhook != nil && conversion.Webhook.ClientConfig.Service.Name == service, fmt.Sprint(getPolicy(ctx, t, crontab).Status.Conditions)
	})
}

func getFleet(ctx context.Context, t *testing.T, name string) *v1alpha1.ConverterFleet {
	t.Helper()
	return get(ctx, t, name, &v1alpha1.ConverterFleet{})
}

func patchFleet(ctx context.Context, t *testing.T, name, patch string) {
	t.Helper()
	expect.NoError(t, cluster.Patch(ctx, getFleet(ctx, t, name), client.RawPatch(types.MergePatchType, []byte(patch))))
}

// createFleet creates a fleet, and waits until its pods are ready.
func createFleet(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	created := &v1alpha1.ConverterFleet{ObjectMeta: metav1.ObjectMeta{Name: name}}
	expect.NoError(t, cluster.Create(ctx, created))
	t.Cleanup(func() {
		_ = client.IgnoreNotFound(cluster.Delete(context.WithoutCancel(ctx), created)) // it may be gone
	})
	waitFleet(ctx, t, name, 3)
}

func fleetPods(ctx context.Context, t *testing.T, name string) []corev1.Pod {
	t.Helper()
	return pods(ctx, t, client.MatchingLabels{names.InstanceLabel: names.Fleet(name)})
}

// waitFleet waits until a fleet has a number of pods, all of them ready, and reports it.
func waitFleet(ctx context.Context, t *testing.T, name string, count int) {
	t.Helper()
	waitPods(t, count, func() []corev1.Pod { return fleetPods(ctx, t, name) })
	expect.Eventually(t, "the fleet reports its pods", func() (bool, string) {
		status := getFleet(ctx, t, name).Status
		return int(status.ReadyReplicas) == count, fmt.Sprintf("%+v", status)
	})
}
