// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"syscall"
)

// become replaces this process by the command, so that signals, exit code and
// terminal are the command's own. It returns only if that fails.
func become(cmd *exec.Cmd) error {
	if cmd.Err != nil {
		return cmd.Err
	}
	return syscall.Exec(cmd.Path, cmd.Args, cmd.Env)
}
