// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lockRetry is the time between two tries to lock: waiting for flock cannot be cancelled.
const lockRetry = 100 * time.Millisecond

// lockFile locks a file. If another process or goroutine holds the lock, it calls busy once and
// waits. The kernel releases the lock when its holder dies.
func lockFile(ctx context.Context, path string, busy func()) (unlock func(), err error) {
	for waited := false; ; waited = true {
		file, err := tryLock(path)
		if err != nil {
			return nil, fmt.Errorf("cannot lock %s: %w", path, err)
		}
		if file != nil {
			return func() { _ = file.Close() }, nil
		}
		if !waited {
			busy()
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("gave up waiting for the lock %s: %w", path, ctx.Err())
		case <-time.After(lockRetry):
		}
	}
}

// tryLock returns the locked file, or nil if another process holds the lock. A holder may remove
// the file, so the lock is valid only if the file still has the name.
func tryLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil && stillNamed(file, path) {
		return file, nil
	}
	_ = file.Close()
	if err == nil || errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
		return nil, nil
	}
	return nil, err
}

func stillNamed(file *os.File, path string) bool {
	opened, err := file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(opened, named)
}
