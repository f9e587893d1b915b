// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
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

// kernelSettings are the values below /proc/sys that the kubelet requires. It would set them for
// the whole machine: kernel.panic, for example, would make a developer's machine reboot. So it sees
// files that already have these values. Source: setupKernelTunables in
// k8s.io/kubernetes/pkg/kubelet/cm.
var kernelSettings = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// hardCoded are directories of the host that the kubelet and libcni use whatever their
// configuration. Each cluster gets empty ones.
var hardCoded = []string{"/var/lib/cni", "/var/lib/kubelet"}

// supervisorAttributes makes the supervisor of a full node process 1 of new namespaces.
func supervisorAttributes(namespaces bool) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setsid: true}
	if namespaces {
		attributes.Cloneflags = unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID
	}
	return attributes
}

// componentAttributes makes a component die with the supervisor even without a PID namespace.
func componentAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// mountNode sets up the mount namespace of the node, before any other process runs in it.
func (s spec) mountNode() error {
	// From here on, mounts do not reach the host.
	if err := mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE); err != nil {
		return err
	}
	if err := mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC); err != nil {
		return err
	}
	if err := mountEmpty("/run"); err != nil {
		return err
	}
	if err := mountOver(s.Dir, s.Home); err != nil {
		return err
	}
	// Pod logs go beside those of the components.
	if err := mount(s.home("log"), "/var/log", "", unix.MS_BIND); err != nil {
		return err
	}
	for _, dir := range hardCoded {
		if err := mountEmpty(dir); err != nil {
			return err
		}
	}
	return s.hideKernelSettings()
}

func mountEmpty(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV)
}

func mountOver(source, target string) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	return mount(source, target, "", unix.MS_BIND)
}

func (s spec) hideKernelSettings() error {
	for setting, value := range kernelSettings {
		file := s.home("kernel-settings", strings.ReplaceAll(setting, "/", "."))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := mount(file, filepath.Join("/proc/sys", setting), "", unix.MS_BIND); err != nil {
			return err
		}
	}
	return nil
}

func mount(source, target, kind string, flags uintptr) error {
	if err := unix.Mount(source, target, kind, flags, ""); err != nil {
		return fmt.Errorf("cannot mount %s: %w", target, err)
	}
	return nil
}

// process identifies a process uniquely until the next boot. A PID alone is reused.
type process struct {
	PID     int
	Started uint64 // clock ticks since boot
}

var errGone = errors.New("the process has ended")

// identify returns the identity of a running process.
func identify(pid int) (process, error) {
	proc, err := procfs.NewProc(pid)
	if err != nil {
		return process{}, errGone
	}
	stat, err := proc.Stat()
	if err != nil || stat.State == "Z" || stat.State == "X" { // it has ended, but its parent does not know that
		return process{}, errGone
	}
	return process{PID: pid, Started: stat.Starttime}, nil
}

// open returns a descriptor that refers to this process even after its PID is reused. The caller
// closes it.
func (p process) open() (int, error) {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return -1, errGone
	}
	if err != nil {
		return -1, fmt.Errorf("cannot open process %d: %w", p.PID, err)
	}
	if now, err := identify(p.PID); err != nil || now != p {
		_ = unix.Close(fd)
		return -1, errGone
	}
	return fd, nil
}

// end signals the process and waits until it is gone. For process 1 of a PID namespace, every
// process of the namespace is gone then.
func (p process) end(ctx context.Context, with unix.Signal) error {
	fd, err := p.open()
	if errors.Is(err, errGone) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.PidfdSendSignal(fd, with, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("cannot stop process %d: %w", p.PID, err)
	}
	return waitReadable(ctx, fd)
}

// waitReadable waits for the end of the process behind the descriptor.
func waitReadable(ctx context.Context, fd int) error {
	const slice = 100 * time.Millisecond
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(slice.Milliseconds()))
		if n > 0 {
			return nil
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}
