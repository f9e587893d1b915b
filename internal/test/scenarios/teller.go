// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// Teller prints a story, and runs its commands. After a failure it prints nothing more, and shows no
// command, until Failure is called.
type Teller struct {
	// Out receives the story.
	Out io.Writer
	// Dir is the root of the checkout, in which the commands run.
	Dir string

	claims int
	start  time.Time
	failed error
}

// NewTeller returns a Teller whose clock starts now.
func NewTeller(out io.Writer, dir string) *Teller {
	return &Teller{Out: out, Dir: dir, start: time.Now()}
}

// Claims returns the number of verified claims.
func (t *Teller) Claims() int { return t.claims }

// Elapsed is the time since the story began.
func (t *Teller) Elapsed() time.Duration { return time.Since(t.start) }

// Fail ends the story. A nil error does not.
func (t *Teller) Fail(err error) { t.failed = errors.Join(t.failed, err) }

// Failure returns why the story ended, and allows another one.
func (t *Teller) Failure() error {
	failed := t.failed
	t.failed = nil
	return failed
}

func (t *Teller) print(format string, args ...any) {
	if t.failed == nil {
		fmt.Fprintf(t.Out, format+"\n", args...)
	}
}

// Title begins a story.
func (t *Teller) Title(text string) { t.print("\n%s\n%s", text, strings.Repeat("=", len(text))) }

// Chapter begins a part of a story.
func (t *Teller) Chapter(text string) {
	t.print("\n--- %s  (%s)", text, t.Elapsed().Round(time.Second))
}

// Say prints an explanation.
func (t *Teller) Say(format string, args ...any) { t.print("# "+format, args...) }

// Claim prints and counts a statement that was verified.
func (t *Teller) Claim(format string, args ...any) {
	if t.failed == nil {
		t.claims++
	}
	t.print("# ✓ "+format, args...)
}

// Show runs a command, prints it with its output, and returns the output.
func (t *Teller) Show(ctx context.Context, words ...string) string {
	t.print("$ %s", quote(words))
	answer := t.Must(ctx, words...)
	for line := range strings.Lines(answer) {
		fmt.Fprint(t.Out, "  "+line)
	}
	return answer
}

// Must runs a command without printing it, and fails the story if the command fails.
func (t *Teller) Must(ctx context.Context, words ...string) string {
	if t.failed != nil {
		return ""
	}
	answer, err := t.Run(ctx, words...)
	t.Fail(err)
	return answer
}

// Run runs a command without printing it, whatever happened before.
func (t *Teller) Run(ctx context.Context, words ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(ctx, words[0], words[1:]...) //nolint:gosec // the words are the story's own
	command.Dir, command.Stdout, command.Stderr = t.Dir, &stdout, &stderr
	if err := command.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s: %w: %s", quote(words), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// quote returns words as a person would type them in a shell.
func quote(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = word
		if strings.ContainsAny(word, " {}\"*[]()$?|&;<>") {
			quoted[i] = "'" + word + "'"
		}
	}
	return strings.Join(quoted, " ")
}
