// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync"

	"golang.org/x/sys/unix"
)

// processes starts the supervisor's children and collects every exit status. Process 1 of a
// namespace inherits orphans, and has to collect their statuses too. So nothing here calls
// Cmd.Wait, which would compete for them.
type processes struct {
	mu      sync.Mutex // held while starting, so that no exit precedes its entry
	waiting map[int]chan unix.WaitStatus
}

func newProcesses() *processes {
	p := &processes{waiting: map[int]chan unix.WaitStatus{}}
	exits := make(chan os.Signal, 1)
	signal.Notify(exits, unix.SIGCHLD)
	go func() {
		for range exits {
			p.reap(unix.WNOHANG)
		}
	}()
	return p
}

// start runs the command, whose input and output must be files, and returns a channel that yields
// its status once.
func (p *processes) start(cmd *exec.Cmd) (<-chan unix.WaitStatus, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	exited := make(chan unix.WaitStatus, 1)
	p.waiting[cmd.Process.Pid] = exited
	return exited, cmd.Process.Release()
}

// reap collects the children that have ended. Without WNOHANG it waits until no child remains.
func (p *processes) reap(options int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, options, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil || pid == 0:
			return
		}
		if exited, ours := p.waiting[pid]; ours {
			exited <- status
			delete(p.waiting, pid)
		}
	}
}

// killAll kills every child and, as process 1, every process of the namespace, and waits until they
// are gone.
func (p *processes) killAll() {
	if os.Getpid() == 1 {
		_ = unix.Kill(-1, unix.SIGKILL)
	}
	p.mu.Lock()
	for pid := range p.waiting {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	p.mu.Unlock()
	p.reap(0)
}

func describe(status unix.WaitStatus) string {
	if status.Signaled() {
		return fmt.Sprintf("was killed by signal %d (%s)", int(status.Signal()), status.Signal())
	}
	return fmt.Sprintf("ended with exit code %d", status.ExitStatus())
}
