// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package localcluster

import (
	"context"
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// On other systems than Linux only Build works. The check of the host rejects the rest early, or no
// cluster can be running.

var (
	errGone     = errors.New("the process has ended")
	errNotLinux = errors.New("the local cluster needs Linux")
)

type process struct {
	PID     int
	Started uint64
}

func identify(int) (process, error)                    { return process{}, errNotLinux }
func (process) end(context.Context, unix.Signal) error { return errNotLinux }
func (spec) mountNode() error                          { return errNotLinux }
func supervisorAttributes(bool) *syscall.SysProcAttr   { return nil }
func componentAttributes() *syscall.SysProcAttr        { return nil }
func enter([]string) int                               { return 1 }
func becomeProgram([]string) int                       { return 1 }
