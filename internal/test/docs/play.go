// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Established returns a command that waits for CRDs, which are named as for kubectl. `kubectl wait`
// alone fails while status.conditions of a new CRD is null.
func Established(definitions string) string {
	return "timeout 60 sh -c 'until kubectl wait --for=condition=Established " + definitions + "; do sleep 0.2; done'"
}

// Player runs the commands of pages.
type Player struct {
	// Folder is where files are saved and commands run.
	Folder string
	// Environment is added to that of the process, as in exec.Cmd.Env.
	Environment []string
	// Out receives commands and output.
	Out io.Writer
	// Names replaces names of the page that are in use elsewhere.
	Names *strings.Replacer
	// Judge checks the output of commands whose output the page does not show. Such commands run
	// only once.
	Judge func(command, answer string) error

	judged map[string]bool
}

// Play saves the page's files and runs its commands, in order, up to the first whose output differs
// from the page. A command may fail if the page shows its output.
func (p *Player) Play(ctx context.Context, page *Page) error {
	played := 0
	for _, block := range page.Blocks {
		if name := block.File(); name != "" {
			if err := os.WriteFile(filepath.Join(p.Folder, name), []byte(block.Text), 0o600); err != nil {
				return err
			}
		}
		if !block.Played() {
			continue
		}
		for _, command := range block.Commands() {
			if p.Names != nil {
				command = Command{Text: p.Names.Replace(command.Text), Answer: p.Names.Replace(command.Answer)}
			}
			if p.judged[command.Text] {
				continue
			}
			if err := p.do(ctx, command); err != nil {
				return fmt.Errorf("%s, line %d: %w", page.Path, block.Line, err)
			}
			played++
		}
	}
	if played == 0 {
		return fmt.Errorf("%s has no command to play", page.Path)
	}
	return nil
}

// podGone is part of the output of a command that lists pods and then reads each of them, such as
// kubectl describe, if one of them was deleted meanwhile. Tests that run in parallel delete theirs.
const podGone = `Error from server (NotFound): pods "`

// maxRepeats bounds how often such a command is repeated.
const maxRepeats = 5

func (p *Player) run(ctx context.Context, command Command) (answer []byte, err error) {
	fmt.Fprint(p.Out, prompt, command.Text)
	shell := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", command.Text) //nolint:gosec // the page's own words
	shell.Dir, shell.Env = p.Folder, append(os.Environ(), p.Environment...)
	answer, err = shell.CombinedOutput()
	fmt.Fprintf(p.Out, "%s", answer)
	return answer, err
}

func (p *Player) do(ctx context.Context, command Command) error {
	answer, err := p.run(ctx, command)
	for range maxRepeats {
		if err == nil || !strings.Contains(string(answer), podGone) {
			break
		}
		answer, err = p.run(ctx, command)
	}
	var failed *exec.ExitError
	if err != nil && (!errors.As(err, &failed) || command.Answer == "") {
		return fmt.Errorf("%s%w\n%s", command.Text, err, answer)
	}
	if command.Answer == "" && p.Judge != nil {
		if err := p.Judge(command.Text, string(answer)); err != nil {
			return fmt.Errorf("%s%w\n%s", command.Text, err, answer)
		}
		if p.judged == nil {
			p.judged = map[string]bool{}
		}
		p.judged[command.Text] = true
	}
	if command.Answer != "" && !Answers(command.Answer, string(answer)) {
		return fmt.Errorf("%sanswers\n%s\nand not\n%s", command.Text, answer, command.Answer)
	}
	return nil
}
