// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// runGo runs the go command in a directory and returns its output. It ignores the user's workspace
// and flags: the module sets are complete.
func runGo(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOOS=", "GOARCH=")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// An interrupt lets the go command stop its compilers; a kill would not.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return nil, fmt.Errorf("the local cluster is built from source and needs the go command on PATH: %w", err)
	}
	if err != nil {
		// With -json, the output has the error.
		said := firstOf(stderr.String(), stdout.String())
		return nil, fmt.Errorf("go %s in %s: %w\n%s", args[0], dir, err, lastLines(said, 20))
	}
	return stdout.Bytes(), nil
}

// lastLines returns the last lines of a text, at most n.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
