// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options configure the nodes of a cluster.
type Options struct {
	// Config reaches the API server as an administrator. Pods reach it at the same address.
	Config *rest.Config
	// Images maps names of images to their entrypoints. Other programs of an image are in the same folder. A pod
	// with another image waits with ErrImagePull.
	Images map[string]string
	// Dir is the folder for volumes and logs. The caller removes it.
	Dir string
	// Log receives what a kubelet logs. Default: no output.
	Log logr.Logger
}

const (
	// heartbeat is the time between renewals of a node's lease. A kubelet's is 10 s, and the lease
	// expires after 40 s.
	heartbeat = 2 * time.Second
	// syncPeriod is the time between updates of files in an unchanged pod, as a kubelet's. Files of a
	// changed pod are updated at once.
	syncPeriod = time.Minute
	// backoff is the first pause before a container is restarted; each next one is twice as long, up
	// to 30 times the first. A kubelet's is 10 s.
	backoff = time.Second
)

// Cluster has the nodes of one program.
type Cluster struct {
	Options
	api   client.Client
	cache cache.Cache
	// network is the third and second last byte of all addresses: 127.<network>.0.0/16.
	network int
	socket  net.Listener
	kubelet *httptest.Server
	alive   context.Context //nolint:containedctx // the life of the cluster
	end     context.CancelFunc
	running sync.WaitGroup

	mu    sync.Mutex
	nodes map[string]*Node
	added int
}

// Start serves the proxy of the API server, which must have the EgressFile of the same
// directory, and keeps EndpointSlices. Add adds nodes. Close ends everything.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	if err := CheckImages(o.Images); err != nil {
		return nil, err
	}
	c := &Cluster{Options: o, nodes: map[string]*Node{}}
	c.alive, c.end = context.WithCancel(context.WithoutCancel(ctx))
	if err := c.open(c.alive); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// CheckImages returns an error if there is no program for one of the images.
func CheckImages(images map[string]string) error {
	for _, image := range slices.Sorted(maps.Keys(images)) {
		info, err := os.Stat(images[image])
		if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 || !filepath.IsAbs(images[image]) {
			return fmt.Errorf("image %s: %s is no program with an absolute path", image, images[image])
		}
	}
	return nil
}

func (c *Cluster) open(ctx context.Context) (err error) {
	config := rest.CopyConfig(c.Config)
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{} // they are about addresses as names
	if c.api, err = client.New(config, client.Options{Scheme: clientgoscheme.Scheme}); err != nil {
		return err
	}
	if c.cache, err = cache.New(config, cache.Options{Scheme: clientgoscheme.Scheme}); err != nil {
		return err
	}
	if err := c.serveKubelet(ctx); err != nil {
		return err
	}
	const longest = 107 // of the path of a socket, on Linux
	if len(socketOf(c.Dir)) > longest {
		return fmt.Errorf("the path %s is too long for a socket: use a shorter folder", socketOf(c.Dir))
	}
	_ = os.Remove(socketOf(c.Dir)) // of a program that was killed
	if c.socket, err = new(net.ListenConfig).Listen(ctx, "unix", socketOf(c.Dir)); err != nil {
		return fmt.Errorf("open the proxy of the API server: %w", err)
	}
	c.run(func() { c.proxy(ctx) })
	pods, err := c.cache.GetInformer(ctx, &corev1.Pod{}, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	if _, err := pods.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    c.see,
		UpdateFunc: func(_, now any) { c.see(now) },
		DeleteFunc: c.lose,
	}); err != nil {
		return err
	}
	changes, err := c.serviceChanges(ctx, pods)
	if err != nil {
		return err
	}
	if _, err := c.cache.GetInformer(ctx, &discoveryv1.EndpointSlice{}, cache.BlockUntilSynced(false)); err != nil {
		return err
	}
	c.run(func() { _ = c.cache.Start(ctx) }) // it ends with ctx
	if !c.cache.WaitForCacheSync(ctx) {
		return errors.New("the API server does not list pods")
	}
	c.run(func() { c.keepSlices(ctx, changes) })
	return nil
}

func (c *Cluster) run(do func()) { c.running.Go(do) }

// Run runs a program of the control plane until Close. Its log is in the folder of the cluster.
func (c *Cluster) Run(path string, args ...string) error {
	running, err := start(program{path: path, args: args, env: os.Environ()}, filepath.Join(c.Dir, filepath.Base(path)+".log"))
	if err != nil {
		return err
	}
	c.run(func() {
		select {
		case <-running.ended:
			c.Log.Error(errors.New("a part of the control plane has ended"), "See its log", "program", path)
		case <-c.alive.Done():
		}
		running.kill()
	})
	return nil
}

// Add adds a node, and returns when it is registered. The name may be that of a node that was killed:
// it starts all pods that are still bound to it.
func (c *Cluster) Add(ctx context.Context, name string) (*Node, error) {
	c.mu.Lock()
	if c.nodes[name] != nil {
		c.mu.Unlock()
		return nil, fmt.Errorf("node %s already runs", name)
	}
	c.added++
	n := &Node{cluster: c, Name: name, number: c.added, pods: map[podID]*pod{}}
	n.alive, n.die = context.WithCancel(context.WithoutCancel(ctx))
	c.nodes[name] = n
	c.mu.Unlock()
	if err := n.register(ctx); err != nil {
		n.Kill()
		return nil, fmt.Errorf("register node %s: %w", name, err)
	}
	n.running.Go(n.beat)
	bound := &corev1.PodList{}
	if err := c.cache.List(ctx, bound); err != nil {
		return nil, err
	}
	for i := range bound.Items {
		c.see(&bound.Items[i])
	}
	return n, nil
}

// Close kills all nodes and stops.
func (c *Cluster) Close() error {
	for _, n := range c.all() {
		n.Kill()
	}
	c.end()
	var err error
	if c.socket != nil {
		err = c.socket.Close()
	}
	if c.kubelet != nil {
		c.kubelet.Close()
	}
	c.running.Wait()
	return err
}

// Node returns a node that runs, or nil.
func (c *Cluster) Node(name string) *Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nodes[name]
}

func (c *Cluster) all() []*Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.nodes))
}

// logFile is the log of a container since one of its starts, which are counted from 0.
func (c *Cluster) logFile(pod *corev1.Pod, container string, starts int32) string {
	name := fmt.Sprintf("%s_%s_%s", pod.Namespace, pod.Name, pod.UID)
	return filepath.Join(c.Dir, "pods", name, container, fmt.Sprintf("%d.log", starts))
}
