// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// startTimeout bounds a start on a very busy machine. An idle one takes seconds.
	startTimeout = 3 * time.Minute
	// restartPause avoids a busy loop if a component ends immediately.
	restartPause = time.Second
	// reportFD is the pipe on which the supervisor reports progress to Up.
	reportFD = 3
)

var errStopped = errors.New("the cluster was stopped")

// report is one message of a starting supervisor.
type report struct {
	Progress string `json:",omitempty"`
	Ready    bool   `json:",omitempty"`
	Error    string `json:",omitempty"`
}

// supervisor is the process whose end stops the cluster.
type supervisor struct {
	spec      spec
	processes *processes
	reports   *os.File
	// stop ends the cluster for the given reason.
	stop context.CancelCauseFunc
	// up is set once everything was started: components that end afterwards may be restarted.
	up atomic.Bool
	// ended receives the components to restart.
	ended chan component
}

// supervise runs the cluster of a directory until a signal, or until a component ends. It returns
// the exit code of the process.
func supervise(dir string) int {
	// The kernel kills a component when the thread that started it ends.
	runtime.LockOSThread()
	// The usual umask of services: containers read folders of containerd and the kubelet as any
	// user.
	syscall.Umask(0o022)
	syscall.CloseOnExec(reportFD)
	ctx, stop := context.WithCancelCause(context.Background())
	v := &supervisor{processes: newProcesses(), reports: os.NewFile(reportFD, "reports"), stop: stop, ended: make(chan component)}
	v.stopOnSignal()

	var err error
	if v.spec, err = readSpec(dir); err == nil {
		err = v.run(ctx)
	}
	v.processes.killAll()
	if cleanErr := removeCgroups(dir, cgroupRoot); cleanErr != nil {
		_, _ = fmt.Fprintln(os.Stderr, cleanErr)
	}
	_, _ = fmt.Fprintln(os.Stderr, err)
	if errors.Is(err, errStopped) {
		return 0
	}
	v.tell(report{Error: err.Error()})
	return 1
}

func (v *supervisor) stopOnSignal() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-signals
		v.stop(errStopped)
	}()
}

// run starts everything, and then waits. It also restarts components, because the thread that
// starts a component must live as long as the component.
func (v *supervisor) run(ctx context.Context) error {
	starting, cancel := context.WithTimeoutCause(ctx, startTimeout,
		fmt.Errorf("gave up after %s", startTimeout))
	defer cancel()
	if err := v.startAll(starting); err != nil {
		return err
	}
	v.up.Store(v.spec.Restart)
	v.tell(report{Ready: true})
	_ = v.reports.Close()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case c := <-v.ended:
			if err := v.startComponents(c); err != nil {
				return err
			}
		}
	}
}

// startAll starts the components in the order of their dependencies. Slow components without
// dependencies start first.
func (v *supervisor) startAll(ctx context.Context) error {
	if v.spec.Node > 1 {
		return v.startWorker(ctx)
	}
	if !v.spec.onLoopback() {
		if err := v.enterNode(ctx); err != nil {
			return err
		}
	}
	api, err := newAPIClient(v.spec)
	if err != nil {
		return err
	}
	if err := v.startComponents(v.spec.etcd(), v.spec.apiServer()); err != nil {
		return err
	}
	if !v.spec.onLoopback() {
		if err := v.startContainerd(ctx); err != nil {
			return err
		}
	}
	if err := v.await(ctx, "kube-apiserver", api.ready); err != nil {
		return err
	}
	if err := v.startComponents(v.spec.controllerManager()); err != nil {
		return err
	}
	if v.spec.onLoopback() {
		err = v.startProcessNodes(ctx, api)
	} else {
		err = v.startNode(ctx, api, v.spec.scheduler())
	}
	if err != nil {
		return err
	}
	return v.await(ctx, "the default ServiceAccount", api.serviceAccountReady)
}

func (v *supervisor) enterNode(ctx context.Context) error {
	if err := v.spec.mountNode(); err != nil {
		return err
	}
	if err := v.command(ctx, "network", "ip", "-batch", v.spec.home("network")); err != nil {
		return err
	}
	return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644)
}

// startContainerd also imports the pause image, which every pod needs.
func (v *supervisor) startContainerd(ctx context.Context) error {
	if err := v.startComponents(v.spec.containerd()); err != nil {
		return err
	}
	if err := v.await(ctx, "containerd", listening(containerdSocket)); err != nil {
		return err
	}
	return poll(ctx, "the import of the pause image", func(ctx context.Context) error {
		args := v.spec.ctr("images", "import", filepath.Join(v.spec.Bin, "pause.tar"))
		return v.command(ctx, "pause-import", args[0], args[1:]...)
	})
}

// startNode starts the kubelet, with other components that need no order.
func (v *supervisor) startNode(ctx context.Context, api apiClient, others ...component) error {
	if err := v.startComponents(append(others, v.spec.kubelet())...); err != nil {
		return err
	}
	return v.await(ctx, "the node", api.nodeReady(v.spec.nodeName()))
}

// startProcessNodes waits until each of the nodes is ready.
func (v *supervisor) startProcessNodes(ctx context.Context, api apiClient) error {
	if err := v.startComponents(v.spec.scheduler(), v.spec.processNodes()); err != nil {
		return err
	}
	for number := range v.spec.ProcessNodes {
		name := processNode(number)
		if err := v.await(ctx, name, api.nodeReady(name)); err != nil {
			return err
		}
	}
	return nil
}

// startWorker starts a node without a control plane, once Join has connected its network.
func (v *supervisor) startWorker(ctx context.Context) error {
	if err := poll(ctx, "the network", connected); err != nil {
		return err
	}
	if err := v.enterNode(ctx); err != nil {
		return err
	}
	api, err := newAPIClient(v.spec)
	if err != nil {
		return err
	}
	if err := v.startContainerd(ctx); err != nil {
		return err
	}
	return v.startNode(ctx, api)
}

// await waits until a component is ready, and reports that.
func (v *supervisor) await(ctx context.Context, what string, check func(context.Context) error) error {
	if err := poll(ctx, what, check); err != nil {
		return err
	}
	v.tell(report{Progress: what + " is ready"})
	return nil
}

// startComponents starts components that run as long as the cluster: if one ends, the cluster
// stops, or restarts it.
func (v *supervisor) startComponents(components ...component) error {
	for _, c := range components {
		cmd := exec.Command(c.name, c.args...) //nolint:noctx // it runs as long as the cluster
		if c.name == nodesName {
			cmd.Path, cmd.Err = self, nil
		}
		exited, err := v.launch(c.name, cmd)
		if err != nil {
			return err
		}
		go func() {
			status := <-exited
			if !v.up.Load() {
				v.stop(fmt.Errorf("%s %s; %s", c.name, describe(status), logTail(v.spec.Dir, c.name)))
				return
			}
			_, _ = fmt.Fprintf(os.Stderr, "%s %s; it is started again\n", c.name, describe(status))
			<-time.After(restartPause)
			v.ended <- c
		}()
	}
	return nil
}

// command runs a program to its end, and returns an error if it fails.
func (v *supervisor) command(ctx context.Context, logName, program string, args ...string) error {
	exited, err := v.launch(logName, exec.Command(program, args...)) //nolint:noctx // launch waits for it, and all processes end with ours
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case status := <-exited:
		if status != 0 {
			return fmt.Errorf("%s %s; %s", program, describe(status), logTail(v.spec.Dir, logName))
		}
		return nil
	}
}

// tell reports to the process that started the supervisor, if it still runs.
func (v *supervisor) tell(r report) {
	_ = json.NewEncoder(v.reports).Encode(r)
}
