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
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// Part selects blocks of one page.
type Part struct {
	// Page is the name in the folder of pages, or the path of another page.
	Page string
	// Under is a heading, or the name in play=NAME; empty for all blocks of the page.
	Under string
}

// scenes are the parts that a test runs in order, by the name of the scene.
var scenes = map[string][]Part{
	"getting started": {{Page: "getting-started.md"}},
	"retiring":        {{Page: "retiring.md"}, {"runbooks.md", "deprecated"}, {"runbooks.md", "audit-log"}},
	"migrating": {
		{"kubectl.md", "Install it"},
		{"migrating.md", "Before"},
		{"migrating.md", "During"},
		{"migrating.md", "When something fails"},
		{"kubectl.md", "status"},
		{"kubectl.md", "explain"},
		{"kubectl.md", "diff"},
		{"runbooks.md", "failed"},
		{"migrating.md", "Fix, and try again"},
		{"kubectl.md", "mended"},
		{"../../README.md", "What to watch"},
		{"migrating.md", "After"},
		{"migrating.md", "Rolling back"},
	},
	"mistakes":       {{"runbooks.md", "mistakes"}},
	"replacing":      {{"certificates.md", "SelfManaged"}},
	"blocked":        {{"leaving.md", "Uninstall the operator"}, {"leaving.md", "blocked"}},
	"installing":     {{"installing.md", "In four ways"}},
	"downgrading":    {{"upgrading.md", "Downgrade"}},
	"upgrading":      {{"upgrading.md", "Upgrade"}},
	"keeping":        {{"gitops.md", "keep-conversion"}},
	"granting none":  {{"rights.md", "Who grants migrations their rights"}},
	"uninstalling":   {{"leaving.md", "Uninstall the operator"}, {"leaving.md", "nothing-converts"}, {"installing.md", "Remove"}},
	"removing":       {{"leaving.md", "nothing-converts"}, {"installing.md", "Remove"}},
	"all is well":    {{"auditing.md", "Auditing a cluster"}, {"commands.md", "conversion-operator audit"}},
	"problems found": {{"auditing.md", "An example"}},
	"dependents":     {{"dependents.md", "An example"}},
	"no dependents":  {{"commands.md", "conversion-operator dependents"}},
	"rules": {
		{"writing-rules.md", "Try rules before you apply them"},
		{Page: "drafting.md"},
		{Page: "planning.md"},
		{Page: "rewriting.md"},
		{Page: "backups.md"},
		{Page: "report.md"},
		{Page: "exporting.md"},
		{"kubectl.md", "pipeline"},
		{"auditing.md", "An upgrade by OLM"},
		{"commands.md", "conversion-operator archive"},
		{"commands.md", "conversion-operator convert"},
		{"commands.md", "conversion-operator diff"},
		{"commands.md", "conversion-operator draft"},
		{"commands.md", "conversion-operator explain"},
		{"commands.md", "conversion-operator export"},
		{"commands.md", "conversion-operator plan"},
		{"commands.md", "conversion-operator report"},
		{"commands.md", "conversion-operator rewrite"},
		{"commands.md", "conversion-operator verify"},
	},
	"pipelines":       {{Page: "pipelines.md"}},
	"other languages": {{Page: "other-languages.md"}},
	"a policy": {
		{"commands.md", "conversion-operator pause"},
		{"commands.md", "conversion-operator resume"},
		{"commands.md", "conversion-operator trigger"},
	},
	"without the operator": {{Page: "migrating-without-operator.md"}},
	"a conflict":           {{"kubectl.md", "conflict"}},
}

func (p Part) path() string { return path.Join(Folder, p.Page) }

// Scene returns the parts of a scene, each as a page with its blocks.
func Scene(root, name string) ([]*Page, error) {
	parts, found := scenes[name]
	if !found {
		return nil, fmt.Errorf("there is no scene %q", name)
	}
	var played []*Page
	for _, part := range parts {
		page, err := Read(root, part.path())
		if err != nil {
			return nil, err
		}
		if part.Under != "" {
			page = page.Section(part.Under)
		}
		played = append(played, page)
	}
	return played, nil
}

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

// logged matches the lines that kubectl logs, and then goes on: on a slow machine, about watches that begin late, and about
// versions of APIs that are deleted while it lists them, by tests that run in parallel.
var logged = regexp.MustCompile(`(?m)^[IWE]\d{4} \d\d:\d\d:\d\d\.\d+ .*\n`)

// somethingOpen is the end of a draft that a user has to decide about. Its exit code is 1.
const somethingOpen = "Error: something is open; see the comments in the policy"

// maxRepeats bounds how often such a command is repeated.
const maxRepeats = 5

func (p *Player) run(ctx context.Context, command Command) (answer []byte, err error) {
	fmt.Fprint(p.Out, prompt, command.Text)
	shell := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", command.Text) //nolint:gosec // the page's own words
	shell.Dir, shell.Env = p.Folder, append(os.Environ(), p.Environment...)
	answer, err = shell.CombinedOutput()
	fmt.Fprintf(p.Out, "%s", answer)
	return logged.ReplaceAll(answer, nil), err
}

func (p *Player) do(ctx context.Context, command Command) error {
	answer, err := p.run(ctx, command)
	for range maxRepeats {
		if err == nil || !strings.Contains(string(answer), podGone) {
			break
		}
		answer, err = p.run(ctx, command)
	}
	if strings.Contains(string(answer), somethingOpen) {
		err = nil
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
		return fmt.Errorf("%sshould answer\n%s\nand answers\n%s", command.Text, command.Answer, answer)
	}
	return nil
}
