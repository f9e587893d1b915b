// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
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
	// SyncPeriod is the time between updates of files in an unchanged pod. Default: a minute, as a
	// kubelet's. Files of a changed pod are updated at once.
	SyncPeriod time.Duration
	// Backoff is the first pause before a container is restarted; each next one is twice as long, up
	// to 30 times the first. Default: a second; a kubelet's is 10 s.
	Backoff time.Duration
}

// heartbeat is the time between renewals of a node's lease. A kubelet's is 10 s, and the lease
// expires after 40 s.
const heartbeat = 2 * time.Second

// Cluster has the nodes of one program.
type Cluster struct {
	Options
	api   client.Client
	cache cache.Cache
	// network is the third and second last byte of all addresses: 127.<network>.0.0/16.
	network int
	claim   net.Listener
	socket  net.Listener
	kubelet net.Listener
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
	o.SyncPeriod, o.Backoff = cmp.Or(o.SyncPeriod, time.Minute), cmp.Or(o.Backoff, time.Second)
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
	if c.network, c.claim, err = claimNetwork(); err != nil {
		return err
	}
	if err := c.serveKubelet(); err != nil {
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

// networks are the second bytes of addresses that clusters on one machine may take. Others, such as
// 127.0.0.0/16, are used by all kinds of programs.
const firstNetwork, lastNetwork, claimPort = 64, 250, 49151

// claimNetwork finds a network that no other cluster of this machine has. Its claim is an open port,
// which the kernel closes when this program ends in any way.
func claimNetwork() (int, net.Listener, error) {
	var last error
	for network := firstNetwork; network <= lastNetwork; network++ {
		claim, err := net.Listen("tcp", fmt.Sprintf("127.%d.0.1:%d", network, claimPort)) //nolint:noctx // on loopback nothing is waited for
		if err == nil {
			return network, claim, nil
		}
		last = err
	}
	return 0, nil, fmt.Errorf("no network of 127.0.0.0/8 is free for pods: %w", last)
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
	var errs []error
	for _, listener := range []net.Listener{c.socket, c.kubelet, c.claim} {
		if listener != nil {
			errs = append(errs, listener.Close())
		}
	}
	c.running.Wait()
	return errors.Join(errs...)
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
