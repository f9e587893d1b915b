// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Exit codes for programs that could not be run, as in shells.
const (
	exitCannotEnter = 125
	exitCannotRun   = 126
	exitNotFound    = 127
)

// enter runs a program in the namespaces of a supervisor. It remains as the program's parent
// outside, because only a child can be in another PID namespace, passes signals on, and returns the
// program's exit code. Arguments: the supervisor's PID and start time, the program, its arguments.
func enter(args []string) int {
	if len(args) < 3 {
		return complain(exitCannotEnter, errors.New("too few arguments"))
	}
	// A thread joins namespaces, and the same thread must start the program.
	runtime.LockOSThread()
	signals := make(chan os.Signal, 16)
	signal.Notify(signals)
	wd, err := os.Getwd()
	if err != nil {
		return complain(exitCannotEnter, err)
	}
	if err := joinNamespaces(args[0], args[1]); err != nil {
		return complain(exitCannotEnter, err)
	}
	cmd := &exec.Cmd{
		Path:   self,
		Args:   append([]string{insideName}, args[2:]...),
		Dir:    wd,
		Stdin:  os.Stdin,
		Stdout: os.Stdout,
		Stderr: os.Stderr,
	}
	if err := cmd.Start(); err != nil {
		return complain(exitCannotEnter, err)
	}
	go passSignals(signals, cmd.Process)
	_ = cmd.Wait() // the state below has the result
	return exitCode(cmd.ProcessState)
}

// joinNamespaces moves the calling thread into the supervisor's namespaces and
// its future children into the PID namespace.
func joinNamespaces(pid, started string) error {
	var p process
	var err error
	if p.PID, err = strconv.Atoi(pid); err != nil {
		return err
	}
	if p.Started, err = strconv.ParseUint(started, 10, 64); err != nil {
		return err
	}
	fd, err := p.open()
	if err != nil {
		return fmt.Errorf("the cluster is not running: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	// A thread that shares its working directory with others must not change its mount namespace.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("cannot enter the cluster: %w", err)
	}
	if err := unix.Setns(fd, unix.CLONE_NEWNS|unix.CLONE_NEWNET|unix.CLONE_NEWPID); err != nil {
		return fmt.Errorf("cannot enter the cluster's namespaces: %w", err)
	}
	return nil
}

// passSignals passes signals on, except in the foreground of a terminal, where the program would
// get them twice.
func passSignals(signals <-chan os.Signal, program *os.Process) {
	for s := range signals {
		switch s {
		case unix.SIGCHLD, unix.SIGURG, unix.SIGPIPE:
			continue
		case unix.SIGINT, unix.SIGQUIT, unix.SIGTSTP, unix.SIGCONT, unix.SIGWINCH, unix.SIGTTIN, unix.SIGTTOU:
			if inForeground() {
				continue
			}
		}
		_ = program.Signal(s)
	}
}

func inForeground() bool {
	terminal, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer func() { _ = terminal.Close() }()
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

func exitCode(state *os.ProcessState) int {
	status, ok := state.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// becomeProgram runs inside the namespaces: it sets its parent-death signal, which the parent
// cannot do for a child in another PID namespace, and executes the program. It returns only on
// failure.
func becomeProgram(args []string) int {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return complain(exitCannotEnter, err)
	}
	// A parent outside the namespace has PID 0 here. Process 1 means that the parent has died.
	if os.Getppid() == 1 {
		return exitCannotEnter
	}
	path, err := exec.LookPath(args[0])
	if err != nil {
		return complain(exitNotFound, err)
	}
	return complain(exitCannotRun, syscall.Exec(path, args, os.Environ()))
}

func complain(code int, err error) int {
	_, _ = fmt.Fprintln(os.Stderr, "localcluster:", err)
	return code
}
