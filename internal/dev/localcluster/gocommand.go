// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// buildFlags are those of every build of this repository, so that all share one build cache: the
// Makefile has the same. Without debug information, which nothing here needs, compiling takes a
// tenth less.
const buildFlags = "-trimpath -buildvcs=false -gcflags=all=-dwarf=false"

// runGo runs the go command in a directory and returns its output. It ignores the user's workspace
// and flags: the module sets are complete.
func runGo(ctx context.Context, dir string, args ...string) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	// With -json, the output has the error.
	err := goCommand(ctx, dir, &stdout, &stderr, args, func() string { return cmp.Or(stderr.String(), stdout.String()) })
	return stdout.Bytes(), err
}

// runGoWithProgress runs go build -v, which prints each package that it compiles, and counts them
// in a line every 20 seconds.
func runGoWithProgress(ctx context.Context, dir string, progress io.Writer, args ...string) error {
	counter := &packageCounter{progress: progress, next: progressPeriod, start: time.Now()}
	return goCommand(ctx, dir, nil, counter, args, func() string { return string(counter.other) })
}

// goCommand runs the go command. said returns what it printed, for its error.
func goCommand(ctx context.Context, dir string, stdout, stderr io.Writer, args []string, said func() string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS="+buildFlags, "GOWORK=off", "GOOS=", "GOARCH=")
	if os.Getenv("GOGC") == "" {
		// The compiler has memory, and less to do.
		cmd.Env = append(cmd.Env, "GOGC=400")
	}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	// An interrupt lets the go command stop its compilers; a kill would not.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("the local cluster is built from source and needs the go command on PATH: %w", err)
	}
	if err != nil {
		return fmt.Errorf("go %s in %s: %w%s", args[0], dir, err, failure(said()))
	}
	return nil
}

// causes are those of failures that no change of the code fixes, by their text in the output of the go
// command, and what to do.
var causes = []struct{ text, advice string }{
	{"no space left on device", "free some space, or set GOCACHE, TMPDIR and " + CacheVariable + " to folders with 5 GiB"},
	{"module lookup disabled by GOPROXY", "allow the download of Go modules by GOPROXY"},
	{"dial tcp", "Go modules cannot be downloaded: check the network, or GOPROXY"},
}

// failure returns the cause in the output of a failed go command in one line, or else its last lines.
func failure(said string) string {
	for line := range strings.Lines(said) {
		for _, cause := range causes {
			if strings.Contains(line, cause.text) {
				return ": " + strings.TrimSpace(line) + ": " + cause.advice
			}
		}
	}
	return "\n" + lastLines(said, 20)
}

// progressPeriod is the time between two lines of progress.
const progressPeriod = 20 * time.Second

// packageCounter reads what go build -v prints: paths of packages, downloads, and errors.
type packageCounter struct {
	progress io.Writer
	start    time.Time
	next     time.Duration // when the next line is due
	compiled int
	partial  []byte // the beginning of a line
	other    []byte // lines that are neither packages nor downloads
}

func (c *packageCounter) Write(text []byte) (int, error) {
	lines := bytes.SplitAfter(append(c.partial, text...), []byte("\n"))
	c.partial = lines[len(lines)-1]
	for _, line := range lines[:len(lines)-1] {
		switch {
		case bytes.HasPrefix(line, []byte("go: downloading ")):
		case bytes.ContainsAny(line, " :#"):
			c.other = append(c.other, line...)
		default:
			c.compiled++
		}
	}
	if since := time.Since(c.start); since >= c.next {
		c.next = since + progressPeriod
		_, _ = fmt.Fprintf(c.progress, "  %d packages compiled after %.0f s\n", c.compiled, since.Seconds())
	}
	return len(text), nil
}

// lastLines returns the last lines of a text, at most n.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
