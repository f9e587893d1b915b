//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/dev/localcluster"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/release"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// The first node is in one zone, and two others are in another.
const (
	firstNode = "node1"
	homeZone  = "home"
	lostZone  = "lost"
)

// TestFleetNodes has three policies in a fleet on three nodes in two zones. Every node is drained, and the two
// nodes of one zone fail at once.
func TestFleetNodes(t *testing.T) {
	release.Only(t, "TestPods", "TestRedundancy")
	if os.Getenv(scenarios.EndpointVariable) == "" {
		t.Skip("nodes of other clusters cannot be switched off")
	}
	ctx := t.Context()
	workers := joinNodes(ctx, t)
	const name = "nodes"
	createFleet(ctx, t, name)
	var crontabs []scenarios.CronTab
	for _, group := range []string{"first", "second", "third"} {
		crontabs = append(crontabs, inFleet(ctx, t, group+".nodes.example.com", name))
	}
	drainAll(ctx, t, name, crontabs)
	loseZone(ctx, t, name, crontabs, workers)
}

// joinNodes adds two nodes to the cluster until the test ends.
func joinNodes(ctx context.Context, t *testing.T) (workers []*localcluster.Worker) {
	t.Helper()
	run(ctx, t, "kubectl", "label", "node", firstNode, corev1.LabelTopologyZone+"="+homeZone)
	t.Cleanup(func() {
		run(context.WithoutCancel(ctx), t, "kubectl", "label", "node", firstNode, corev1.LabelTopologyZone+"-")
	})
	for number := 2; number <= 3; number++ {
		worker, err := localcluster.Join(ctx, number, t.Output())
		expect.NoError(t, err)
		t.Cleanup(func() { removeNode(context.WithoutCancel(ctx), t, worker) })
		run(ctx, t, "kubectl", "label", "node", worker.Name(), corev1.LabelTopologyZone+"="+lostZone)
		workers = append(workers, worker)
	}
	return workers
}

// removeNode takes a node out of the cluster, after its pods have moved.
func removeNode(ctx context.Context, t *testing.T, worker *localcluster.Worker) {
	t.Helper()
	drainNode(ctx, t, worker.Name())
	expect.NoError(t, worker.Kill(ctx))
	run(ctx, t, "kubectl", "delete", "node", worker.Name())
}

func drainNode(ctx context.Context, t *testing.T, node string) {
	t.Helper()
	run(ctx, t, "kubectl", "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=3m")
}

// drainAll drains the nodes in turn while clients read and write. No request fails.
func drainAll(ctx context.Context, t *testing.T, name string, crontabs []scenarios.CronTab) {
	t.Helper()
	var loads []*load
	for _, crontab := range crontabs {
		loads = append(loads, startLoad(ctx, t, crontab))
	}
	nodes := &corev1.NodeList{}
	expect.NoError(t, cluster.List(ctx, nodes))
	for _, node := range nodes.Items {
		drainNode(ctx, t, node.Name)
		if left := onNode(fleetPods(ctx, t, name), node.Name); len(left) > 0 {
			t.Errorf("%s was drained, and has the pod %s", node.Name, left[0].Name)
		}
		waitFleet(ctx, t, name, 3)
		run(ctx, t, "kubectl", "uncordon", node.Name)
	}
	for _, load := range loads {
		load.checkAll(t)
	}
}

func onNode(all []corev1.Pod, nodes ...string) []corev1.Pod {
	return slices.DeleteFunc(slices.Clone(all), func(pod corev1.Pod) bool { return !slices.Contains(nodes, pod.Spec.NodeName) })
}

// idleConnections is how long API servers keep an unused connection to a pod: SetTransportDefaults
// of k8s.io/apimachinery/pkg/util/net.
const idleConnections = 90 * time.Second

// loseZone kills all nodes of a zone while clients read. Until the Service has lost its endpoints
// there, some reads fail, and none is wrong. The other zone replaces the pods. When API servers have closed
// their connections to the lost pods, no read fails.
func loseZone(ctx context.Context, t *testing.T, name string, crontabs []scenarios.CronTab, workers []*localcluster.Worker) {
	t.Helper()
	var nodes []string
	for _, worker := range workers {
		nodes = append(nodes, worker.Name())
	}
	before := fleetPods(ctx, t, name)
	if lost := len(onNode(before, nodes...)); lost == 0 || lost == len(before) {
		t.Fatalf("%d of %d pods are in zone %s, want some in each zone", lost, len(before), lostZone)
	}
	var failed atomic.Int64
	var clients []*scenarios.Client
	for _, crontab := range crontabs {
		clients = append(clients, scenarios.Repeat(ctx, func(ctx context.Context) error {
			err := readBoth(ctx, crontab, crontab.Object(0))
			if err != nil && !errors.Is(err, errWrong) {
				failed.Add(1)
				return nil
			}
			return err
		}))
	}
	began := time.Now()
	for _, worker := range workers {
		expect.NoError(t, worker.Kill(ctx))
	}
	expect.Eventually(t, "the Service has no pod of the lost zone", func() (bool, string) {
		left := endpointsOn(ctx, t, name, nodes)
		return left == 0, fmt.Sprintf("%d endpoints", left)
	})
	waitPods(t, 3, func() []corev1.Pod { return onNode(fleetPods(ctx, t, name), firstNode) }) // those on lost nodes cannot end
	t.Logf("the lost pods were replaced after %s", time.Since(began).Round(time.Second))
	checkMoved(ctx, t, name)
	expect.Eventually(t, "the fleet reports that it is on one node", func() (bool, string) {
		status := getFleet(ctx, t, name).Status
		return apimeta.FindStatusCondition(status.Conditions, v1alpha1.NotRedundantCondition) != nil && status.ReadyReplicas == 3, fmt.Sprintf("%+v", status)
	})
	<-time.After(time.Until(began.Add(idleConnections)))
	for _, each := range clients {
		if _, err := each.Stop(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d reads failed", failed.Load())
	expect.Equal(t, "there is an outage, in which reads fail", true, failed.Load() > 0)
	for _, crontab := range crontabs {
		expect.Equal(t, "reads of "+crontab.CRD()+" that failed when the zone was out of use", 0, readsUntilRight(ctx, t, crontab))
	}

	for _, worker := range workers {
		expect.NoError(t, worker.Start(ctx))
	}
	waitFleet(ctx, t, name, 3)
	for _, crontab := range crontabs {
		waitReady(ctx, t, crontab, v1alpha1.ReasonSucceeded)
	}
}

// checkMoved checks that pods on lost nodes were deleted sooner than those of other workloads, which
// tolerate lost nodes for 300 seconds.
func checkMoved(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	for _, pod := range fleetPods(ctx, t, name) {
		for _, toleration := range pod.Spec.Tolerations {
			if toleration.Key == corev1.TaintNodeUnreachable && (toleration.TolerationSeconds == nil || *toleration.TolerationSeconds != 30) {
				t.Errorf("pod %s stays on a lost node for %v", pod.Name, toleration.TolerationSeconds)
			}
		}
		if pod.Spec.NodeName != firstNode && pod.DeletionTimestamp.IsZero() {
			t.Errorf("pod %s is still to run on %s, which is lost", pod.Name, pod.Spec.NodeName)
		}
	}
}

// endpointsOn counts the ready endpoints of a fleet on nodes.
func endpointsOn(ctx context.Context, t *testing.T, name string, nodes []string) (count int) {
	t.Helper()
	list := &discoveryv1.EndpointSliceList{}
	expect.NoError(t, cluster.List(ctx, list, client.InNamespace(system), client.MatchingLabels{discoveryv1.LabelServiceName: names.Fleet(name)}))
	for _, slice := range list.Items {
		for _, endpoint := range slice.Endpoints {
			if slices.Contains(nodes, ptr.Deref(endpoint.NodeName, "")) && ptr.Deref(endpoint.Conditions.Ready, true) {
				count++
			}
		}
	}
	return count
}
