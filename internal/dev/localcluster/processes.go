// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
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

// launch starts a program that writes to the log of that name.
func (v *supervisor) launch(logName string, cmd *exec.Cmd) (<-chan unix.WaitStatus, error) {
	log, err := os.OpenFile(logFile(v.spec.Dir, logName), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = v.spec.Home
	cmd.SysProcAttr = componentAttributes()
	exited, err := v.processes.start(cmd)
	if err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", logName, err)
	}
	return exited, nil
}

// environment returns the environment of programs in the cluster: the cluster's binaries come first
// in PATH, and there is no proxy.
func (s spec) environment(base []string) []string {
	env := slices.DeleteFunc(slices.Clone(base), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return name == "PATH" || strings.HasSuffix(strings.ToLower(name), "_proxy")
	})
	path := s.Bin
	for _, entry := range base {
		if hosts, found := strings.CutPrefix(entry, "PATH="); found {
			path = s.Bin + ":" + hosts
		}
	}
	return append(env,
		"PATH="+path,
		"KUBECONFIG="+kubeconfigFile(s.Dir),
		// kubectl caches discovery by address, and every cluster has the same address.
		"KUBECACHEDIR="+s.Dir+"/kubectl-cache",
		EtcdVariable+"="+s.etcdURL())
}

// logTail returns the end of a component's log.
func logTail(dir, logName string) string {
	path := logFile(dir, logName)
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Sprintf("its log cannot be read: %v", err)
	}
	if len(content) == 0 {
		return fmt.Sprintf("its log %s is empty", path)
	}
	return fmt.Sprintf("the last lines of %s:\n%s", path, lastLines(string(content), 15))
}
