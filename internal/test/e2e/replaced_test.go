//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/release"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// TestBrokenPodIsReplaced suspends the process in one of two verified pods of an image. The pod
// stays ready, because its port accepts connections. The next probe fails, the pod is evicted, and
// another one replaces it.
func TestBrokenPodIsReplaced(t *testing.T) {
	release.Only(t, "TestPodConvertsWrongly")
	ctx := t.Context()
	probeEvery(ctx, t, "3s")
	crontab := inGroup(t, "replaced.example.com")
	applySample(ctx, t, crontab, crontab.CRDBoth)
	expect.NoError(t, cluster.Create(ctx, imagePolicy(t, crontab)))
	waitReady(ctx, t, crontab.CRD(), v1alpha1.ReasonSucceeded)
	expect.NoError(t, fleet.Create(ctx, crontab.At(crontab.Old), 1, crontab.Object))
	generation := getCRD(ctx, t, crontab.CRD()).Generation
	victim := converters(ctx, t, crontab)[0]
	if process := processOf(t, &victim, "--group="+crontab.Group); process != 0 {
		signal(t, process, syscall.SIGSTOP)
		waitEvicted(ctx, t, crontab)
	} else if os.Getenv(scenarios.EndpointVariable) != "" {
		t.Fatal("the pod's process is not found on the project's own cluster")
	} else {
		kill(ctx, t, []corev1.Pod{victim})
	}
	expect.Eventually(t, "another pod is in its place", func() (bool, string) {
		found := converters(ctx, t, crontab)
		gone := !slices.ContainsFunc(found, func(pod corev1.Pod) bool { return pod.UID == victim.UID })
		return gone && len(found) == 2, fmt.Sprintf("%d pods, the one that went wrong is gone: %t", len(found), gone)
	})
	waitReady(ctx, t, crontab.CRD(), v1alpha1.ReasonSucceeded)
	readsUntilRight(ctx, t, crontab, 50)
	if got := getCRD(ctx, t, crontab.CRD()).Generation; got != generation {
		t.Errorf("the CustomResourceDefinition was written %d times", got-generation)
	}
}

func waitEvicted(ctx context.Context, t *testing.T, crontab scenarios.CronTab) {
	t.Helper()
	expect.Eventually(t, "an event tells of the eviction", func() (bool, string) {
		list := &eventsv1.EventList{}
		expect.NoError(t, cluster.List(ctx, list))
		told := slices.ContainsFunc(list.Items, func(event eventsv1.Event) bool {
			return event.Regarding.Name == crontab.CRD() && event.Reason == v1alpha1.ReasonPodEvicted
		})
		verified := apimeta.FindStatusCondition(getPolicy(ctx, t, crontab.CRD()).Status.Conditions, v1alpha1.ConversionVerifiedCondition)
		return told, verified.String()
	})
}

// probeEvery makes the managers probe pods more often, until the test ends.
func probeEvery(ctx context.Context, t *testing.T, lifetime string) {
	t.Helper()
	before := changeManagers(ctx, t, "--proof-lifetime="+lifetime)
	t.Cleanup(func() { changeManagers(context.WithoutCancel(ctx), t, before...) })
}

// changeManagers adds an argument to the managers, or sets all arguments, and returns the previous
// ones.
func changeManagers(ctx context.Context, t *testing.T, arguments ...string) []string {
	t.Helper()
	managers := &appsv1.Deployment{}
	expect.NoError(t, cluster.Get(ctx, client.ObjectKey{Namespace: system, Name: "conversion-operator"}, managers))
	base := managers.DeepCopy()
	container := &managers.Spec.Template.Spec.Containers[0]
	before := container.Args
	if container.Args = arguments; len(arguments) == 1 {
		container.Args = append(slices.Clone(before), arguments...)
	}
	expect.NoError(t, cluster.Patch(ctx, managers, client.MergeFrom(base)))
	waitRolledOut(ctx, t)
	return before
}
