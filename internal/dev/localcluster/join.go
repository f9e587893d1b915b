// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// workersFolder is the folder of the directories of all nodes but the first, in that of the cluster.
const workersFolder = "nodes"

// Worker is a node without a control plane.
type Worker struct {
	spec     spec
	first    spec // of the first node
	progress io.Writer
	node     *Cluster // nil while it is off
}

// Join adds a node to the cluster that the calling program runs in, as root (see Command), and
// returns when pods can run on it. Its number is from 2 to 254. It has the images of the first node.
// Its processes are in namespaces of their own, below those of the cluster, and end with the cluster.
func Join(ctx context.Context, number int, progress io.Writer) (*Worker, error) {
	if !canPlayRoles {
		return nil, errNoRoles
	}
	first, err := readSpec(nodeHome)
	if err != nil {
		return nil, fmt.Errorf("this program does not run inside a cluster with a full node: %w", err)
	}
	w := &Worker{spec: first, first: first, progress: progress}
	w.spec.Node = number
	w.spec.Dir = filepath.Join(first.Dir, workersFolder, w.Name())
	if err := w.prepare(); err != nil {
		return nil, err
	}
	if err := w.Start(ctx); err != nil {
		return nil, err
	}
	return w, w.copyImages(ctx)
}

// Name is the name of the node in the API.
func (w *Worker) Name() string { return w.spec.nodeName() }

// prepare writes the files of the node's directory.
func (w *Worker) prepare() error {
	for _, dir := range []string{"log", "cni"} {
		if err := os.MkdirAll(filepath.Join(w.spec.Dir, dir), 0o700); err != nil {
			return err
		}
	}
	content, err := os.ReadFile(w.first.home("kubeconfig"))
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(kubeconfigFile(w.spec.Dir), content, 0o600), w.spec.writeFiles(w.spec.nodeFiles()), w.spec.write())
}

// Start starts a node that was killed, like a machine that is switched on again, and returns when
// pods can run on it.
func (w *Worker) Start(ctx context.Context) error {
	node, reports, err := startSupervisor(w.spec)
	if err != nil {
		return err
	}
	defer func() { _ = reports.Close() }()
	w.node = node
	if err = w.connect(ctx); err == nil {
		err = awaitReady(ctx, reports, w.progress)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%s did not start: %w", w.Name(), err), w.Kill(context.WithoutCancel(ctx)))
	}
	return nil
}

// Kill ends all processes of the node at once, those of its pods too, and returns when they are
// gone. The first node keeps the route to the node and its pods, and so gets no answer from there,
// not even that they are unreachable: as from a machine that lost its power.
func (w *Worker) Kill(ctx context.Context) error {
	if w.node == nil {
		return nil
	}
	err := w.node.supervisor.end(ctx, unix.SIGKILL)
	w.node = nil
	if _, left := net.InterfaceByName(w.Name()); err == nil && left == nil { // the kernel removes it some time later
		err = ip(ctx, "link delete "+w.Name())
	}
	return err
}

// connect links the node with the bridge of the first node. The neighbour entry keeps that node from
// noticing that the link is gone. It stays because the bridge has an address of its own: a bridge
// without one takes those of its links, and forgets its neighbours with each change.
func (w *Worker) connect(ctx context.Context) error {
	link, hardware := w.Name(), fmt.Sprintf("02:00:0a:f0:00:%02x", w.spec.Node)
	for _, line := range []string{
		fmt.Sprintf("link add %s type veth peer name %s address %s netns %d", link, workerLink, hardware, w.node.SupervisorPID()),
		fmt.Sprintf("link set %s master node0 up", link),
		fmt.Sprintf("neigh replace %s lladdr %s dev node0 nud permanent", w.spec.NodeAddress(), hardware),
		fmt.Sprintf("route replace %s via %s", w.spec.PodRange(), w.spec.NodeAddress()),
	} {
		if err := ip(ctx, line); err != nil {
			return err
		}
	}
	return nil
}

func ip(ctx context.Context, line string) error {
	if out, err := exec.CommandContext(ctx, "ip", strings.Fields(line)...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", line, err, bytes.TrimSpace(out))
	}
	return nil
}

// workerLink is the network interface of a worker.
const workerLink = "eth0"

// connected returns an error until Join has connected the network of this node.
func connected(context.Context) error {
	_, err := net.InterfaceByName(workerLink)
	return err
}

// copyImages copies the named images of the first node.
func (w *Worker) copyImages(ctx context.Context) error {
	list := w.first.ctr("images", "list", "--quiet")
	out, err := exec.CommandContext(ctx, list[0], list[1:]...).Output()
	if err != nil {
		return fmt.Errorf("listing images: %w", err)
	}
	images := slices.DeleteFunc(strings.Fields(string(out)), func(name string) bool { return strings.HasPrefix(name, "sha256:") })
	archive := filepath.Join(w.spec.Dir, "images.tar")
	defer func() { _ = os.Remove(archive) }()
	export := w.first.ctr(append([]string{"images", "export", archive}, images...)...)
	load := w.spec.ctr("images", "import", archive)
	load[2] = fmt.Sprintf("/proc/%d/root%s", w.node.SupervisorPID(), containerdSocket) // in its mount namespace
	for _, command := range [][]string{export, load} {
		if out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("copying images to %s: %w: %s", w.Name(), err, lastLines(string(out), 10))
		}
	}
	return nil
}
