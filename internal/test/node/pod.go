// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// retryPause is the time between tries of what failed for a reason outside of the pod.
const retryPause = 500 * time.Millisecond

// pod is a pod of a node, from when it is seen until its object is deleted, or it has finished.
type pod struct {
	node    *Node
	uid     podID
	ip, dir string
	started metav1.Time
	volumes *Volumes
	// changed has a token if run has something to do.
	changed chan struct{}
	// alive ends when all processes have to end at once, wanted when they have to stop.
	alive, wanted context.Context //nolint:containedctx // the life of the pod
	kill, stop    context.CancelFunc
	running       sync.WaitGroup
	released      atomic.Bool

	mu         sync.Mutex
	object     *corev1.Pod
	containers []*container
	// trouble is why no container can start.
	trouble error
	// stale tells that the volumes have to be read again.
	stale bool
	// reported is the status that the API server has, without conditions of others.
	reported *corev1.PodStatus
}

// newPod returns a pod that does not run yet. The caller holds the node's lock.
func newPod(n *Node, object *corev1.Pod) *pod {
	p := &pod{node: n, uid: object.UID, ip: n.nextIP(), dir: n.podDir(object.UID), started: metav1.Now(), changed: make(chan struct{}, 1)}
	if object.Spec.HostNetwork {
		p.ip = n.ip()
	}
	p.reported = ours(&object.Status)
	p.volumes = NewVolumes(p.dir, object)
	p.alive, p.kill = context.WithCancel(n.alive)
	p.wanted, p.stop = context.WithCancel(p.alive)
	for i := range object.Spec.Containers {
		p.containers = append(p.containers, newContainer(p, object, i))
	}
	p.set(object)
	return p
}

// set keeps the newest object. A changed pod also gets the newest files.
func (p *pod) set(object *corev1.Pod) {
	p.mu.Lock()
	seen := object.DeepCopy()
	seen.Status.PodIP, seen.Status.HostIP = p.ip, p.node.ip()
	p.stale = p.stale || p.object == nil || p.object.Generation != seen.Generation || fmt.Sprint(p.object.Annotations, p.object.Labels) != fmt.Sprint(seen.Annotations, seen.Labels)
	p.object = seen
	p.mu.Unlock()
	p.touch()
}

// touch has run look at the pod.
func (p *pod) touch() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

func (p *pod) get() *corev1.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.object
}

// run mounts the volumes, starts the containers, keeps files and status up to date, and stops the
// containers when the pod is deleted. It ends when the object is gone, or the node.
func (p *pod) run() {
	defer func() {
		p.kill()
		p.release()
	}()
	begun := false
	resync := time.NewTicker(syncPeriod)
	defer resync.Stop()
	for p.alive.Err() == nil {
		begun = p.step(begun)
		retry := retryPause
		if p.trouble == nil {
			retry = time.Hour
		}
		select {
		case <-p.alive.Done():
		case <-p.changed:
		case <-time.After(retry):
		case <-resync.C:
			p.mu.Lock()
			p.stale = true
			p.mu.Unlock()
		}
	}
}

// step does what the pod needs now. A failure is tried again a little later.
func (p *pod) step(begun bool) bool {
	deleted := p.get().DeletionTimestamp != nil
	finished := false
	p.update()
	if !begun && !deleted && p.trouble == nil {
		begun = true
		p.begin()
	}
	if deleted {
		p.stop()
	}
	var err error
	if begun || !deleted {
		finished, err = p.report()
	}
	if finished {
		p.release()
	}
	if err == nil && deleted && (finished || !begun) {
		err = p.remove()
	}
	if err != nil {
		time.AfterFunc(retryPause, p.touch)
	}
	return begun
}

// release waits for the processes, removes the volumes, and gives the address back.
func (p *pod) release() {
	p.running.Wait()
	p.released.Store(true)
	if err := os.RemoveAll(p.dir); err != nil {
		p.node.cluster.Log.Error(err, "Cannot remove the volumes of a pod")
	}
}

// update writes the files of the volumes if they may have changed.
func (p *pod) update() {
	p.mu.Lock()
	stale := !p.released.Load() && (p.stale || p.trouble != nil)
	p.stale = false
	object := p.object
	p.mu.Unlock()
	if !stale || object.DeletionTimestamp != nil {
		return
	}
	err := p.refuse(object)
	if err == nil {
		err = p.volumes.Sync(p.alive, p.node.cluster.api, object)
	}
	p.mu.Lock()
	p.trouble = err
	p.mu.Unlock()
}

// refuse returns an error for a pod that needs what nodes of processes do not have.
func (p *pod) refuse(object *corev1.Pod) error {
	if len(object.Spec.InitContainers) > 0 {
		return errors.New("nodes of processes have no init containers")
	}
	for _, container := range object.Spec.Containers {
		if container.StartupProbe != nil {
			return errors.New("nodes of processes have no startup probes")
		}
		for _, mount := range container.VolumeMounts {
			if mount.SubPath != "" || mount.SubPathExpr != "" {
				return errors.New("nodes of processes have no subPath")
			}
		}
	}
	return nil
}

// begin starts all containers.
func (p *pod) begin() {
	for _, c := range p.containers {
		p.running.Go(func() { c.run(p.alive, p.wanted) })
	}
}

// report sends the status to the API server if it has changed, and returns whether all containers
// have finished.
func (p *pod) report() (finished bool, err error) {
	p.mu.Lock()
	object, status := p.object, p.status()
	finished = true
	for _, c := range p.containers {
		finished = finished && c.finished
	}
	p.mu.Unlock()
	if equality.Semantic.DeepEqual(p.reported, status) {
		return finished, nil
	}
	change, err := change(object, p.reported, status)
	if err != nil {
		return finished, err
	}
	if err = p.node.cluster.api.Status().Patch(p.alive, object.DeepCopy(), change); err == nil {
		p.reported = status
	}
	return finished, client.IgnoreNotFound(err)
}

// remove deletes the object of a pod that has stopped.
func (p *pod) remove() error {
	err := p.node.cluster.api.Delete(p.alive, p.get(), client.GracePeriodSeconds(0), client.Preconditions{UID: &p.uid})
	return client.IgnoreNotFound(err)
}

// grace is how long the processes of a deleted pod may take to end.
func (p *pod) grace() time.Duration {
	object := p.get()
	for _, seconds := range []*int64{object.DeletionGracePeriodSeconds, object.Spec.TerminationGracePeriodSeconds} {
		if seconds != nil {
			return time.Duration(*seconds) * time.Second
		}
	}
	return corev1.DefaultTerminationGracePeriodSeconds * time.Second
}

// kubeconfig writes a kubeconfig with the token of the pod's ServiceAccount, and returns its file. It
// stands for the folder that clients read in a pod, whose path is fixed.
func (p *pod) kubeconfig(container *corev1.Container) (string, error) {
	folder := p.volumes.Path(container, accountPath)
	if folder == accountPath {
		return "", nil
	}
	file := filepath.Join(p.dir, "kubeconfig")
	const text = `{apiVersion: v1, kind: Config, current-context: pod, contexts: [{name: pod, context: {cluster: pod, user: pod, namespace: %q}}],
clusters: [{name: pod, cluster: {server: %q, certificate-authority: %q}}], users: [{name: pod, user: {tokenFile: %q}}]}
`
	return file, os.WriteFile(file, fmt.Appendf(nil, text, p.get().Namespace, p.node.cluster.Config.Host,
		filepath.Join(folder, "ca.crt"), filepath.Join(folder, "token")), 0o600)
}
