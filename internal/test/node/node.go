// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Node runs the pods that are bound to it.
type Node struct {
	Name    string
	cluster *Cluster
	number  int
	// alive ends when the node is killed.
	alive   context.Context //nolint:containedctx // the life of the node
	die     context.CancelFunc
	running sync.WaitGroup

	mu       sync.Mutex
	pods     map[podID]*pod
	assigned int
}

type podID = types.UID

// Kill ends the node as a power failure does: all processes end at once, and nothing is reported.
func (n *Node) Kill() {
	n.cluster.mu.Lock()
	delete(n.cluster.nodes, n.Name)
	n.cluster.mu.Unlock()
	n.mu.Lock()
	n.die()
	n.mu.Unlock()
	n.running.Wait()
}

func (n *Node) ip() string { return fmt.Sprintf("127.%d.%d.1", n.cluster.network, n.number) }

// nextIP returns an address for a pod: addresses are used again as late as possible. The caller holds
// the lock.
func (n *Node) nextIP() string {
	const first, count = 2, 253
	taken := map[string]bool{}
	for _, p := range n.pods {
		taken[p.ip] = !p.released.Load()
	}
	for {
		ip := fmt.Sprintf("127.%d.%d.%d", n.cluster.network, n.number, first+n.assigned%count)
		n.assigned++
		if !taken[ip] {
			return ip
		}
	}
}

// capacity does not limit how many pods are scheduled here: requests are not enforced, and tests run
// many pods on small machines.
var capacity = corev1.ResourceList{
	corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"),
	corev1.ResourceEphemeralStorage: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("250"),
}

// register creates the node, or takes over what a killed one left.
func (n *Node) register(ctx context.Context) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}
	labels := map[string]string{
		corev1.LabelHostname: n.Name, corev1.LabelOSStable: runtime.GOOS, corev1.LabelArchStable: runtime.GOARCH,
		// The scheduler does not spread pods that ask for zones among nodes without one.
		corev1.LabelTopologyZone: "local",
	}
	err := n.cluster.api.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: labels}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err := n.renew(ctx); err != nil {
		return err
	}
	now := metav1.Now()
	status := corev1.NodeStatus{
		Capacity: capacity, Allocatable: capacity,
		Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: n.ip()}, {Type: corev1.NodeHostName, Address: n.Name}},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: kubeletPort}},
		NodeInfo: corev1.NodeSystemInfo{
			OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH,
			ContainerRuntimeVersion: "processes://1", KubeletVersion: "v0.0.0-processes", OSImage: "processes of this machine"},
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
			Message: "the node runs pods as processes", LastHeartbeatTime: now, LastTransitionTime: now}},
	}
	return n.cluster.api.Status().Patch(ctx, node, patch(map[string]any{"status": status}))
}

// beat renews the node's lease until the node is killed.
func (n *Node) beat() {
	for {
		select {
		case <-n.alive.Done():
			return
		case <-time.After(heartbeat):
		}
		if err := n.renew(n.alive); err != nil && n.alive.Err() == nil {
			n.cluster.Log.Error(err, "Cannot renew the lease of a node", "node", n.Name)
		}
	}
}

func (n *Node) renew(ctx context.Context) error {
	lease := &coordinationv1.Lease{}
	lease.Namespace, lease.Name = corev1.NamespaceNodeLease, n.Name
	spec := coordinationv1.LeaseSpec{HolderIdentity: &n.Name, LeaseDurationSeconds: new(int32(40)), RenewTime: &metav1.MicroTime{Time: time.Now()}}
	err := n.cluster.api.Patch(ctx, lease, patch(map[string]any{"spec": spec}))
	if apierrors.IsNotFound(err) {
		lease.Spec = spec
		return n.cluster.api.Create(ctx, lease)
	}
	return err
}

// see starts a pod that was bound to a node, or tells it that its object has changed.
func (c *Cluster) see(object any) {
	seen := object.(*corev1.Pod)
	n := c.Node(seen.Spec.NodeName)
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.alive.Err() != nil {
		return
	}
	p := n.pods[seen.UID]
	if p != nil {
		p.set(seen)
		return
	}
	if finished := seen.Status.Phase == corev1.PodSucceeded || seen.Status.Phase == corev1.PodFailed; finished && seen.DeletionTimestamp == nil {
		return
	}
	p = newPod(n, seen)
	n.pods[seen.UID] = p
	n.running.Go(func() {
		p.run() // until the object is gone
		n.mu.Lock()
		delete(n.pods, p.uid)
		n.mu.Unlock()
	})
}

// lose kills a pod whose object is gone.
func (c *Cluster) lose(object any) {
	if last, unknown := object.(toolscache.DeletedFinalStateUnknown); unknown {
		object = last.Obj
	}
	gone := object.(*corev1.Pod)
	for _, n := range c.all() {
		n.mu.Lock()
		if p := n.pods[gone.UID]; p != nil {
			p.kill()
		}
		n.mu.Unlock()
	}
}

func (n *Node) podDir(uid podID) string { return filepath.Join(n.cluster.Dir, "volumes", string(uid)) }

// find returns a running pod.
func (c *Cluster) find(key client.ObjectKey) *pod {
	for _, n := range c.all() {
		n.mu.Lock()
		for _, p := range n.pods {
			if client.ObjectKeyFromObject(p.get()) == key {
				n.mu.Unlock()
				return p
			}
		}
		n.mu.Unlock()
	}
	return nil
}
