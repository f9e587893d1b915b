// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// process is a running program. It dies with this program, even if that is killed.
type process struct {
	pid int
	// ended is closed when the process has ended, with the status.
	ended  chan struct{}
	status syscall.WaitStatus
}

// The kernel kills a process when the thread that started it ends, so one thread, which lives as long
// as this program, starts all.
var (
	startThread sync.Once
	starts      = make(chan func())
)

func onStartThread(do func() error) error {
	startThread.Do(func() {
		go func() {
			runtime.LockOSThread()
			for start := range starts {
				start()
			}
		}()
	})
	result := make(chan error)
	starts <- func() { result <- do() }
	return <-result
}

// start starts a program, whose output goes to a file.
func start(p program, log string) (*process, error) {
	if err := os.MkdirAll(filepath.Dir(log), 0o755); err != nil {
		return nil, err
	}
	file, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	command := exec.Command(p.path, p.args...) //nolint:noctx // stop and kill end it
	command.Env, command.Stdout, command.Stderr, command.Dir, command.SysProcAttr = p.env, file, file, "/", attributes()
	if err := onStartThread(command.Start); err != nil {
		return nil, err
	}
	running := &process{pid: command.Process.Pid, ended: make(chan struct{})}
	go func() {
		_ = command.Wait() // the status has it
		running.status, _ = command.ProcessState.Sys().(syscall.WaitStatus)
		close(running.ended)
	}()
	return running, nil
}

// stop asks the process to end, and returns when it has, or when it had enough time.
func (p *process) stop(alive context.Context, grace time.Duration) {
	_ = syscall.Kill(p.pid, syscall.SIGTERM) // it may have ended
	select {
	case <-p.ended:
	case <-alive.Done():
	case <-time.After(grace):
	}
}

// kill ends the process and those that it started.
func (p *process) kill() {
	_ = syscall.Kill(-p.pid, syscall.SIGKILL) // it may have ended
	<-p.ended
}

func (p *process) terminated(begun metav1.Time, message string) corev1.ContainerStateTerminated {
	t := corev1.ContainerStateTerminated{ExitCode: int32(p.status.ExitStatus()), Reason: "Completed", Message: message, StartedAt: begun} //nolint:gosec // at most 255
	if p.status.Signaled() {
		t.ExitCode = 128 + int32(p.status.Signal()) //nolint:gosec // as above
	}
	if t.ExitCode != 0 {
		t.Reason = "Error"
	}
	return t
}

// probe runs the probes of a running container until ctx ends. If the container fails its liveness probe,
// that probe is sent to unhealthy.
func (c *container) probe(ctx context.Context, unhealthy chan<- *corev1.Probe) {
	readiness, liveness := c.spec.ReadinessProbe, c.spec.LivenessProbe
	c.setReady(readiness == nil)
	if readiness != nil {
		go c.repeat(ctx, readiness, func(healthy bool) bool {
			c.setReady(healthy)
			return false
		})
	}
	if liveness != nil && !c.repeat(ctx, liveness, func(healthy bool) bool { return !healthy }) {
		unhealthy <- liveness
	}
}

// repeat runs a probe periodically until a result, which enough probes in a row agree on, is the last
// one. It returns that result, or true when ctx ends.
func (c *container) repeat(ctx context.Context, probe *corev1.Probe, last func(healthy bool) bool) bool {
	enough := map[bool]int32{true: max(1, probe.SuccessThreshold), false: max(1, probe.FailureThreshold)}
	previous, row := false, int32(0)
	pause := time.Duration(probe.InitialDelaySeconds) * time.Second
	for {
		select {
		case <-ctx.Done():
			return true
		case <-time.After(pause):
		}
		healthy := c.check(ctx, probe) == nil
		if ctx.Err() != nil {
			return true
		}
		if healthy != previous {
			previous, row = healthy, 0
		}
		if row++; row >= enough[healthy] && last(healthy) {
			return healthy
		}
		pause = time.Duration(max(1, probe.PeriodSeconds)) * time.Second
	}
}

// check runs a probe once.
func (c *container) check(ctx context.Context, probe *corev1.Probe) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(max(1, probe.TimeoutSeconds))*time.Second)
	defer cancel()
	switch {
	case probe.HTTPGet != nil:
		return c.get(ctx, probe.HTTPGet)
	case probe.TCPSocket != nil:
		connection, err := new(net.Dialer).DialContext(ctx, "tcp", c.at(probe.TCPSocket.Port))
		if err == nil {
			err = connection.Close()
		}
		return err
	}
	return fmt.Errorf("nodes of processes have no probes of this kind")
}

// prober does not verify certificates, as a kubelet does not, and opens a connection for each probe.
var prober = &http.Client{
	Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see above
	},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func (c *container) get(ctx context.Context, action *corev1.HTTPGetAction) error {
	scheme := "http"
	if action.Scheme == corev1.URISchemeHTTPS {
		scheme = "https"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+c.at(action.Port)+action.Path, http.NoBody)
	if err != nil {
		return err
	}
	response, err := prober.Do(request)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	if response.StatusCode < http.StatusOK || response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("the probe got %s", response.Status)
	}
	return nil
}

// at returns the address of a port of the container, by number or by name.
func (c *container) at(port intstr.IntOrString) string {
	return net.JoinHostPort(c.pod.ip, strconv.Itoa(int(portOf(&c.spec, port))))
}

func portOf(spec *corev1.Container, port intstr.IntOrString) int32 {
	for _, each := range spec.Ports {
		if port.Type == intstr.String && each.Name == port.StrVal {
			return each.ContainerPort
		}
	}
	return port.IntVal
}
