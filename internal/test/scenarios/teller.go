// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// Teller writes a story and runs its commands.
type Teller struct {
	// Out is where the story goes.
	Out io.Writer
	// Dir is the root of the checkout, where the commands run.
	Dir string

	claims int
	start  time.Time
}

// NewTeller returns a Teller whose clock starts now.
func NewTeller(out io.Writer, dir string) *Teller {
	return &Teller{Out: out, Dir: dir, start: time.Now()}
}

// Claims is the number of claims that held so far.
func (t *Teller) Claims() int { return t.claims }

// Elapsed is the time since the story began.
func (t *Teller) Elapsed() time.Duration { return time.Since(t.start) }

// Title begins a story.
func (t *Teller) Title(text string) {
	fmt.Fprintf(t.Out, "\n%s\n%s\n", text, strings.Repeat("=", len(text)))
}

// Chapter begins a part of a story.
func (t *Teller) Chapter(text string) {
	fmt.Fprintf(t.Out, "\n--- %s  (%s)\n", text, t.Elapsed().Round(time.Second))
}

// Say explains.
func (t *Teller) Say(format string, args ...any) { fmt.Fprintf(t.Out, "# "+format+"\n", args...) }

// Claim counts something that has been checked.
func (t *Teller) Claim(format string, args ...any) {
	t.claims++
	fmt.Fprintf(t.Out, "# ✓ "+format+"\n", args...)
}

// Show runs a command, tells it with its answer, and returns the answer.
func (t *Teller) Show(ctx context.Context, words ...string) (string, error) {
	fmt.Fprintf(t.Out, "$ %s\n", quote(words))
	answer, err := t.Run(ctx, words...)
	for line := range strings.Lines(answer) {
		fmt.Fprint(t.Out, "  "+line)
	}
	return answer, err
}

// Run runs a command without telling it.
func (t *Teller) Run(ctx context.Context, words ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(ctx, words[0], words[1:]...) //nolint:gosec // the words are the story's own
	command.Dir, command.Stdout, command.Stderr = t.Dir, &stdout, &stderr
	if err := command.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s: %w: %s", quote(words), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// quote writes words as a person would type them.
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
