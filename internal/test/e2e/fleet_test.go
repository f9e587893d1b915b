//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// TestFleet has two policies in one fleet, while clients read and write objects of both. The rules
// of one change; it moves to pods of its own and back; the pods of the fleet are replaced in turn;
// the fleet is scaled, and its authority replaced. No conversion fails. A fleet that is deleted
// stays until its policies are gone, and so do its pods.
func TestFleet(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	first, second := shared(ctx, t, "first.example.com"), shared(ctx, t, "second.example.com")
	name := "e2e"
	fleetExists(ctx, t, name)
	for _, crontab := range []scenarios.CronTab{first, second} {
		inFleet(ctx, t, crontab, name)
		waitReady(ctx, t, crontab.CRD(), v1alpha1.ReasonSucceeded)
		expect.NoError(t, fleet.Create(ctx, crontab.At(crontab.Old), loadClients, crontab.Object))
	}
	if dedicated := converters(ctx, t, first); len(dedicated) > 0 {
		t.Errorf("%d pods are of one policy alone", len(dedicated))
	}
	loads := []*load{startLoad(ctx, first), startLoad(ctx, second)}
	all := allConvert(ctx, t, first)

	pods := fleetUIDs(ctx, t, name)
	splitAt(ctx, t, first, "|")
	splitAt(ctx, t, first, ":")
	if now := fleetUIDs(ctx, t, name); fmt.Sprint(now) != fmt.Sprint(pods) {
		t.Errorf("pods of the fleet were replaced when rules changed: %v, before %v", now, pods)
	}

	change(ctx, t, first, `{"spec":{"workload":{},"converterFleetName":null}}`)
	waitService(ctx, t, first, names.Child(first.CRD()))
	waitReady(ctx, t, first.CRD(), v1alpha1.ReasonSucceeded)
	change(ctx, t, first, fmt.Sprintf(`{"spec":{"workload":null,"converterFleetName":%q}}`, name))
	waitService(ctx, t, first, names.Fleet(name))

	for _, pod := range fleetPods(ctx, t, name) {
		expect.NoError(t, cluster.Delete(ctx, &pod))
		waitFleet(ctx, t, name, 3)
	}
	patchFleet(ctx, t, name, `{"spec":{"replicas":2}}`)
	waitFleet(ctx, t, name, 2)

	before := caBundle(ctx, t, second)
	patchFleet(ctx, t, name, `{"spec":{"certificates":{"selfManaged":{"rotationTrigger":"e2e"}}}}`)
	expect.Eventually(t, "all CustomResourceDefinitions trust the next authority, too", func() (bool, string) {
		return len(caBundle(ctx, t, second)) > len(before) && string(caBundle(ctx, t, first)) == string(caBundle(ctx, t, second)), ""
	})
	expect.Eventually(t, "the fleet serves a certificate of it after the propagation delay", func() (bool, string) {
		rotation := getFleet(ctx, t, name).Status.Rotation
		return rotation != nil && rotation.State != v1alpha1.RotationPropagating && rotation.State != v1alpha1.RotationAddingCA, fmt.Sprintf("%+v", rotation)
	})
	expect.Eventually(t, "all CustomResourceDefinitions trust the next authority alone", func() (bool, string) {
		found := getFleet(ctx, t, name)
		rotation := found.Status.Rotation
		return rotation != nil && rotation.State == v1alpha1.RotationIdle && len(caBundle(ctx, t, second)) == len(before) &&
			string(caBundle(ctx, t, second)) != string(before) && string(caBundle(ctx, t, first)) == string(caBundle(ctx, t, second)), fmt.Sprintf("%+v", rotation)
	})

	expect.Eventually(t, "no pod of the policy alone is left", func() (bool, string) {
		err := cluster.Get(ctx, client.ObjectKey{Namespace: system, Name: names.Child(first.CRD())}, &appsv1.Deployment{})
		return client.IgnoreNotFound(err) == nil && err != nil, fmt.Sprint(err)
	})
	expect.NoError(t, cluster.Delete(ctx, getFleet(ctx, t, name)))
	expect.Eventually(t, "the deletion of the fleet is blocked", func() (bool, string) {
		blocked := apimeta.FindStatusCondition(getFleet(ctx, t, name).Status.Conditions, v1alpha1.DeletionBlockedCondition)
		return blocked != nil, ""
	})
	if now := len(fleetPods(ctx, t, name)); now != 2 {
		t.Errorf("the fleet has %d pods", now)
	}
	for _, load := range loads {
		load.check(t)
	}
	all()
	remove(t, first.CRD())
	remove(t, second.CRD())
	expect.Eventually(t, "the fleet is gone", func() (bool, string) {
		err := cluster.Get(ctx, client.ObjectKey{Name: name}, &v1alpha1.ConverterFleet{})
		return err != nil && client.IgnoreNotFound(err) == nil, fmt.Sprintf("%d pods", len(fleetPods(ctx, t, name)))
	})
}

// shared is a CronTab with two versions.
func shared(ctx context.Context, t *testing.T, group string) scenarios.CronTab {
	t.Helper()
	crontab := inGroup(t, group)
	applySample(ctx, t, crontab, crontab.CRDStorage)
	return crontab
}

// inFleet creates the policy of a CronTab in a fleet.
func inFleet(ctx context.Context, t *testing.T, crontab scenarios.CronTab, name string) {
	t.Helper()
	object := samplePolicy(t, crontab)
	object.Spec.Workload, object.Spec.ConverterFleetName = nil, v1alpha1.FleetName(name)
	started := time.Now()
	expect.NoError(t, cluster.Create(ctx, object))
	waitService(ctx, t, crontab, names.Fleet(name))
	t.Logf("%s converts %s after the policy was created", crontab.CRD(), time.Since(started).Round(10*time.Millisecond))
}

// waitService waits until a CustomResourceDefinition converts through a Service.
func waitService(ctx context.Context, t *testing.T, crontab scenarios.CronTab, service string) {
	t.Helper()
	expect.Eventually(t, crontab.CRD()+" converts through "+service, func() (bool, string) {
		conversion := getCRD(ctx, t, crontab.CRD()).Spec.Conversion
		policy := getPolicy(ctx, t, crontab.CRD())
		return conversion.Webhook != nil && conversion.Webhook.ClientConfig.Service.Name == service,
			fmt.Sprintf("%+v", apimeta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ReadyCondition))
	})
}

func getFleet(ctx context.Context, t *testing.T, name string) *v1alpha1.ConverterFleet {
	t.Helper()
	found := &v1alpha1.ConverterFleet{}
	expect.NoError(t, cluster.Get(ctx, client.ObjectKey{Name: name}, found))
	return found
}

func patchFleet(ctx context.Context, t *testing.T, name, patch string) {
	t.Helper()
	expect.NoError(t, cluster.Patch(ctx, getFleet(ctx, t, name), client.RawPatch(types.MergePatchType, []byte(patch))))
}

// fleetExists creates a fleet, and waits until its pods are ready.
func fleetExists(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	created := &v1alpha1.ConverterFleet{}
	created.Name = name
	createFleet(ctx, t, created)
}

func createFleet(ctx context.Context, t *testing.T, created *v1alpha1.ConverterFleet) {
	t.Helper()
	expect.NoError(t, cluster.Create(ctx, created))
	t.Cleanup(func() {
		_ = client.IgnoreNotFound(cluster.Delete(context.WithoutCancel(ctx), created)) // it may be gone
	})
	waitFleet(ctx, t, created.Name, 3)
}

func fleetPods(ctx context.Context, t *testing.T, name string) []corev1.Pod {
	t.Helper()
	return pods(ctx, t, client.MatchingLabels{names.InstanceLabel: names.Fleet(name)})
}

func fleetUIDs(ctx context.Context, t *testing.T, name string) map[types.UID]bool {
	t.Helper()
	uids := map[types.UID]bool{}
	for _, pod := range fleetPods(ctx, t, name) {
		uids[pod.UID] = true
	}
	return uids
}

// waitFleet waits until a fleet has a number of pods, all of them ready, and no others.
func waitFleet(ctx context.Context, t *testing.T, name string, count int32) {
	t.Helper()
	expect.Eventually(t, fmt.Sprintf("fleet %s has %d ready pods", name, count), func() (bool, string) {
		found := fleetPods(ctx, t, name)
		for _, pod := range found {
			if !ready(&pod) || !pod.DeletionTimestamp.IsZero() {
				return false, pod.Name + " is not ready, or ends"
			}
		}
		status := getFleet(ctx, t, name).Status
		return len(found) == int(count) && status.ReadyReplicas == count, fmt.Sprintf("%+v", status.Conditions)
	})
}
