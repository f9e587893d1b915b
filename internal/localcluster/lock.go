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

// lockRetry is how often a busy lock is tried again: flock cannot be waited for
// and given up at the same time.
const lockRetry = 100 * time.Millisecond

// lockFile takes the lock on a file, waiting while another process or
// goroutine holds it, and calls busy once if it has to. The kernel releases the
// lock when its holder dies.
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

// tryLock returns the locked file, or nil if another holds it. A holder may
// remove the file, so a lock counts only on the file that still has the name.
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
