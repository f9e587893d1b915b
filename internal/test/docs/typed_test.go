// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// untyped are the reasons why no test runs a block: untyped=REASON in its info string.
var untyped = map[string]string{
	"builds":         "It builds the program or an image, for a minute; make test does so by the same targets.",
	"pushes":         "It pushes to a registry.",
	"follows":        "It ends when it is told to.",
	"cert-manager":   "It takes the kinds of cert-manager.",
	"metrics-server": "It takes metrics-server.",
	"velero":         "It takes Velero, and a backup.",
	"converter":      "It takes a conversion webhook of another project; TestDraftProbe asks one.",
	"exported":       "It takes pods of an exported converter; TestExport in internal/test/manager and TestExportedChart in internal/test/chart do so.",
	"helm":           "It takes Helm, and an image; make helm installs the chart.",
	"migrates":       "It rewrites all objects of a cluster, each time after minutes; TestMigrate in internal/cli/cmd does so with a short delay.",
	"krew":           "It takes krew, and archives that are published.",
}

// otherLanguages are the languages of blocks without commands.
var otherLanguages = []string{"", "csharp", "java", "json", "lua", "mermaid", "rust", "text", "yaml"}

// TestEveryCommandIsRun: each block with commands is part of a scene or a symptom, or has a reason
// why not.
func TestEveryCommandIsRun(t *testing.T) {
	reasons, parts := map[string]bool{}, map[Part]bool{}
	for _, page := range all(t) {
		for _, block := range page.Blocks {
			reason, part := block.value("untyped"), part(page, block)
			reasons[reason] = true
			marks := 0
			for _, marked := range []bool{block.Played(), block.symptom() != "", reason != ""} {
				if marked {
					marks++
				}
			}
			switch {
			case block.HasCommands() && marks != 1:
				t.Errorf("%s:%d: mark the block with one of play, symptom=NAME and untyped=REASON; it has %v", page.Path, block.Line, block.Info)
			case !block.HasCommands() && marks != 0:
				t.Errorf("%s:%d: a block of %q has no commands, and is marked %v", page.Path, block.Line, block.Language, block.Info)
			case !block.HasCommands() && !slices.Contains(otherLanguages, block.Language):
				t.Errorf("%s:%d: commands are in blocks of console or sh, and not of %s", page.Path, block.Line, block.Language)
			case reason != "" && untyped[reason] == "":
				t.Errorf("%s:%d: there is no reason %s", page.Path, block.Line, reason)
			case block.Played() && part == nil:
				t.Errorf("%s:%d: no scene has what is played under %q", page.Path, block.Line, block.under())
			case block.Played():
				parts[*part] = true
			}
		}
	}
	delete(reasons, "")
	expect.Equal(t, "reasons in pages", slices.Sorted(maps.Keys(untyped)), slices.Sorted(maps.Keys(reasons)))
	for name, wanted := range scenes {
		for _, part := range wanted {
			if !parts[part] {
				t.Errorf("scene %q: %s has nothing to play under %q", name, part.Page, part.Under)
			}
		}
	}
}

// part returns the part of a scene that has the block, or nil.
func part(page *Page, block Block) *Part {
	for _, parts := range scenes {
		for _, part := range parts {
			if part.path() == page.Path && (part.Under == "" && block.value("play") == "" || part.Under == block.under()) {
				return &part
			}
		}
	}
	return nil
}

// TestScenesArePlayed: a test names each scene.
func TestScenesArePlayed(t *testing.T) {
	folders, err := filepath.Glob("../*/*_test.go")
	expect.NoError(t, err)
	var tests []byte
	for _, file := range folders {
		text, err := os.ReadFile(file)
		expect.NoError(t, err)
		if !strings.HasSuffix(file, "/typed_test.go") {
			tests = append(tests, text...)
		}
	}
	for name := range scenes {
		if !bytes.Contains(tests, []byte(strconv.Quote(name))) {
			t.Errorf("no test plays the scene %q", name)
		}
	}
}

// TestCommandSyntax: a shell can parse every command.
func TestCommandSyntax(t *testing.T) {
	script := &strings.Builder{}
	for _, page := range all(t) {
		for _, command := range typed(page) {
			fmt.Fprintf(script, "# %s:%d\n%s", page.Path, command.Line, command.Text)
		}
	}
	shell := exec.CommandContext(t.Context(), "bash", "-n")
	shell.Stdin = strings.NewReader(script.String())
	if answer, err := shell.CombinedOutput(); err != nil {
		t.Errorf("%v: %s\n%s", err, answer, script)
	}
}

var (
	makeCommand = regexp.MustCompile(`\bmake( [a-z][a-z0-9-]*)+( [A-Z_]+=)?`)
	configPath  = regexp.MustCompile(`(?:^|[ =])(config/[a-z0-9/._-]+)`)
)

// ofKubebuilder is a folder of Kubebuilder's scaffold, not of this project.
const ofKubebuilder = "config/crd/patches"

// TestMake: targets and variables of make exist, and so do files of config/.
func TestMake(t *testing.T) {
	knows := makeKnows(t, root)
	words, files := 0, 0
	for _, page := range all(t) {
		for _, code := range append(page.CodeSpans(), typed(page)...) {
			for _, command := range makeCommand.FindAllString(code.Text, -1) {
				for word := range strings.FieldsSeq(strings.TrimPrefix(command, "make")) {
					if words++; !knows(word) {
						t.Errorf("%s:%d: make knows no %s", page.Path, code.Line, word)
					}
				}
			}
			for _, found := range configPath.FindAllStringSubmatch(code.Text, -1) {
				files++
				if _, err := os.Stat(filepath.Join(root, found[1])); err != nil && found[1] != ofKubebuilder {
					t.Errorf("%s:%d: %v", page.Path, code.Line, err)
				}
			}
		}
	}
	if words < 10 || files < 10 {
		t.Errorf("only %d words for make and %d files were found", words, files)
	}
}

// makeKnows returns a function that reports whether the Makefile in a folder has a target, or, with
// = at the end, whether a variable exists: with a default there, read but not set there, or read by
// the script that starts clusters.
func makeKnows(t *testing.T, folder string) func(word string) bool {
	t.Helper()
	makefile := read(t, filepath.Join(folder, "Makefile"))
	script := read(t, filepath.Join(folder, "internal/dev/tools/with-cluster.sh"))
	return func(word string) bool {
		name, _, isVariable := strings.Cut(word, "=")
		has := func(text, before, after string) bool {
			return regexp.MustCompile(before + regexp.QuoteMeta(name) + after).MatchString(text)
		}
		if !isVariable {
			return has(makefile, `(?m)^`, `:`)
		}
		return has(makefile, `(?m)^(export )?`, ` +\?=`) || has(script, `\$\{`, `:-`) ||
			has(makefile, `\$\(`, `\)`) && !has(makefile, `(?m)^(export )?`, ` +:?=`)
	}
}

// typed returns the commands of a page, with the lines of their blocks.
func typed(page *Page) []Mention {
	var commands []Mention
	for _, block := range page.Blocks {
		for _, command := range block.Commands() {
			commands = append(commands, Mention{command.Text, block.Line})
		}
	}
	return commands
}
