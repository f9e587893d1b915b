// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/bench/pod"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/workload"
	"github.com/conversion-operator/conversion-operator/internal/test/node"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

const (
	// updateDelay is the time until a kubelet writes the files of a changed pod: one period of each
	// of the loops of its volume manager, 100 ms, which is their worst case (pkg/kubelet/volumemanager
	// of k8s.io/kubernetes).
	updateDelay = 200 * time.Millisecond
	// syncPeriod is the time between updates of files in an unchanged pod.
	syncPeriod = time.Minute
	// startsAtOnce bounds how many pods start in parallel.
	startsAtOnce = 4
)

// nodes act as the controllers and kubelets of a cluster for Deployments: each pod is a process of
// the operator's binary on this machine, with its volumes in directories.
type nodes struct {
	client client.WithWatch
	// binary replaces the image, dir has the volumes, address is that of all pods.
	binary, dir, address string

	mu      sync.Mutex
	started int
	pods    map[string]*runningPod
}

// runningPod is a pod with a process.
type runningPod struct {
	*pod.Pod
	// deployment is the name of its Deployment, and of its Service.
	name, deployment string
	// client connects to it.
	client *http.Client
	// metrics is the port of /metrics.
	metrics int
	volumes *node.Volumes
	// object is what its volumes depend on.
	object  *corev1.Pod
	refresh chan struct{}
	// annotations are those for which the files were updated.
	annotations map[string]string
	end         context.CancelFunc
}

// run acts until ctx ends, or until the first error. Processes end with it.
func (n *nodes) run(ctx context.Context) error {
	n.pods = map[string]*runningPod{}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return n.followDeployments(ctx, group) })
	group.Go(func() error { return n.followPods(ctx) })
	return group.Wait()
}

// running returns the pods, sorted by port.
func (n *nodes) running() []*runningPod {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.SortedFunc(maps.Values(n.pods), func(a, b *runningPod) int { return a.Port - b.Port })
}

// of returns the pods of a Deployment.
func (n *nodes) of(deployment string) []*runningPod {
	return slices.DeleteFunc(n.running(), func(p *runningPod) bool { return p.deployment != deployment })
}

func (n *nodes) followDeployments(ctx context.Context, group *errgroup.Group) error {
	watching, err := n.client.Watch(ctx, &appsv1.DeploymentList{}, client.InNamespace(system))
	if err != nil {
		return err
	}
	defer watching.Stop()
	slots := make(chan struct{}, startsAtOnce)
	seen := map[string]int64{}
	for event := range watching.ResultChan() {
		deployment, isDeployment := event.Object.(*appsv1.Deployment)
		if event.Type == watch.Deleted || !isDeployment || seen[deployment.Name] == deployment.Generation {
			continue
		}
		seen[deployment.Name] = deployment.Generation
		group.Go(func() error {
			slots <- struct{}{}
			defer func() { <-slots }()
			if err := n.rollOut(ctx, deployment); err != nil && ctx.Err() == nil {
				return fmt.Errorf("start the pods of %s: %w", deployment.Name, err)
			}
			return nil
		})
	}
	return ended(ctx)
}

// ended is the error for the end of a watch before that of ctx.
func ended(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return errWatchEnded
	}
}

func (n *nodes) rollOut(ctx context.Context, deployment *appsv1.Deployment) error {
	old := &corev1.PodList{}
	if err := n.client.List(ctx, old, client.InNamespace(system), client.MatchingLabels(deployment.Spec.Selector.MatchLabels)); err != nil {
		return err
	}
	replicas := *deployment.Spec.Replicas
	for range replicas {
		if err := n.start(ctx, deployment); err != nil {
			return err
		}
	}
	for i := range old.Items {
		if err := n.client.Delete(ctx, &old.Items[i], client.GracePeriodSeconds(0)); err != nil {
			return err
		}
	}
	return testenv.ReportRollout(ctx, n.client, deployment, replicas)
}

// start starts a pod, and creates it as one that is ready.
func (n *nodes) start(ctx context.Context, deployment *appsv1.Deployment) error {
	started, err := n.process(ctx, deployment)
	if err != nil {
		return err
	}
	port := int32(started.Port) //nolint:gosec // it is a port
	err = testenv.StartPod(ctx, n.client, deployment, testenv.Pod{Name: started.name, IP: n.address, Port: port})
	if err != nil {
		return err
	}
	service := client.ObjectKeyFromObject(deployment)
	return testenv.CreateEndpoints(ctx, n.client, service, started.name, map[string]string{names.InstanceLabel: deployment.Name},
		n.address, map[string]int32{workload.PortName: port})
}

// process starts the process of a pod, after the objects that it mounts exist.
func (n *nodes) process(ctx context.Context, deployment *appsv1.Deployment) (*runningPod, error) {
	n.mu.Lock()
	n.started++
	p := &runningPod{name: fmt.Sprintf("%s-%d", deployment.Name, n.started), deployment: deployment.Name, refresh: make(chan struct{}, 1)}
	n.mu.Unlock()
	spec := &deployment.Spec.Template.Spec
	p.object = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: p.name}, Spec: *spec}
	p.volumes = node.NewVolumes(filepath.Join(n.dir, p.name), p.object)
	if err := wait.PollUntilContextCancel(ctx, updateDelay, true, func(ctx context.Context) (bool, error) {
		err := p.volumes.Sync(ctx, n.client, p.object)
		return err == nil, client.IgnoreNotFound(err)
	}); err != nil {
		return nil, err
	}
	var err error
	if p.metrics, err = pod.FreePort(ctx); err != nil {
		return nil, err
	}
	ctx, p.end = context.WithCancel(ctx)
	container := spec.Containers[0]
	var args []string
	for _, arg := range append(container.Args, fmt.Sprintf("--metrics-bind-address=localhost:%d", p.metrics)) {
		args = append(args, p.volumes.Path(&container, arg))
	}
	p.Pod, err = pod.Start(ctx, pod.Options{
		Binary: n.binary, Certificates: p.volumes.Path(&container, "/etc/conversion-operator/tls"), MemoryLimit: container.Resources.Limits.Memory().Value(),
		Args: args,
	})
	if err != nil {
		p.end()
		return nil, err
	}
	n.mu.Lock()
	n.pods[p.name] = p
	n.mu.Unlock()
	go p.update(ctx, n.client)
	return p, nil
}

// update updates the mounted files after each change of the pod, and periodically.
func (p *runningPod) update(ctx context.Context, api client.Client) {
	ticker := time.NewTicker(syncPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-p.refresh:
			select {
			case <-ctx.Done():
			case <-time.After(updateDelay):
			}
		}
		_ = p.volumes.Sync(ctx, api, p.object) // the next update repeats it
	}
}

// followPods has pods updated that were changed, and ends those that were deleted.
func (n *nodes) followPods(ctx context.Context) error {
	watching, err := n.client.Watch(ctx, &corev1.PodList{}, client.InNamespace(system))
	if err != nil {
		return err
	}
	defer watching.Stop()
	for event := range watching.ResultChan() {
		changed, isPod := event.Object.(*corev1.Pod)
		if !isPod {
			continue
		}
		n.mu.Lock()
		p := n.pods[changed.Name]
		if event.Type == watch.Deleted {
			delete(n.pods, changed.Name)
		}
		n.mu.Unlock()
		switch {
		case p == nil:
		case event.Type == watch.Deleted:
			p.end()
			slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: p.name}}
			if err := client.IgnoreNotFound(n.client.Delete(ctx, slice)); err != nil && ctx.Err() == nil {
				return err
			}
		case !maps.Equal(p.annotations, changed.Annotations):
			p.annotations = changed.Annotations
			select {
			case p.refresh <- struct{}{}:
			default: // it is about to be updated
			}
		}
	}
	return ended(ctx)
}
