// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package node

import "syscall"

// attributes: other systems than Linux do not end processes with this one.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
