// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
