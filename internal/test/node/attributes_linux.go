// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import "syscall"

// attributes: the process has a group of its own, and dies with the thread that started it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
