// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// process identifies a process uniquely until the next boot. A PID alone is reused.
type process struct {
	PID     int
	Started uint64 // clock ticks since boot
}

var errGone = errors.New("the process has ended")

// identify returns the identity of a running process.
func identify(pid int) (process, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, errGone
	}
	started, state, err := parseStat(string(stat))
	if err != nil {
		return process{}, err
	}
	if state == "Z" || state == "X" {
		return process{}, errGone
	}
	return process{PID: pid, Started: started}, nil
}

// parseStat returns fields 22 (start time) and 3 (state) of proc_pid_stat(5). Field 2, the name,
// may have spaces, and ends at the last ")".
func parseStat(stat string) (started uint64, state string, err error) {
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	if len(fields) < 20 {
		return 0, "", fmt.Errorf("unexpected process status %q", stat)
	}
	started, err = strconv.ParseUint(fields[19], 10, 64)
	return started, fields[0], err
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
func (p process) end(ctx context.Context, signal unix.Signal) error {
	fd, err := p.open()
	if errors.Is(err, errGone) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.PidfdSendSignal(fd, signal, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
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
