// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/cli/cmd"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/rbac"
)

// contributing returns the page for contributors.
func contributing(t *testing.T) *Page {
	t.Helper()
	t.Chdir(filepath.Join("..", "..", ".."))
	page, err := Read(".", "internal/README.md")
	expect.NoError(t, err)
	return page
}

// TestContributorsCommands: commands for contributors name existing targets, variables, packages
// and files. Those of the operator itself are run.
func TestContributorsCommands(t *testing.T) {
	page := contributing(t)
	knows := makeKnows(t, ".")
	var lines []string
	for _, block := range page.Blocks {
		if block.Language == "sh" {
			lines = append(lines, strings.Split(block.Text, "\n")...)
		}
	}
	for _, span := range page.CodeSpans() {
		lines = append(lines, span.Text)
	}
	found := map[string]int{}
	for _, line := range lines {
		line, _, _ = strings.Cut(line, " #")
		words := strings.Fields(quoted.ReplaceAllString(line, ""))
		for len(words) > 1 && strings.Contains(words[0], "=") {
			words = words[1:] // the environment
		}
		if len(words) < 2 {
			continue
		}
		found[words[0]]++
		switch words[0] {
		case "make":
			for _, word := range words[1:] {
				if !knows(word) {
					t.Errorf("%s: make knows no %s", line, word)
				}
			}
		case "go":
			checkGo(t, words[1:])
		case "bin/conversion-operator":
			typeCommand(t, words)
		case "bin/localcluster":
			expect.Contains(t, "the commands of bin/localcluster", read(t, "internal/dev/localcluster/cmd/main.go"), `"`+words[1])
		}
	}
	for _, program := range []string{"make", "go", "bin/conversion-operator", "bin/localcluster"} {
		expect.Equal(t, "a command of "+program+" was found", true, found[program] > 0)
	}
}

// quoted matches the value of a variable with spaces.
var quoted = regexp.MustCompile(`'[^']*'`)

// checkGo checks that the packages in arguments of go exist.
func checkGo(t *testing.T, words []string) {
	t.Helper()
	for _, word := range words {
		if folder, ok := strings.CutPrefix(word, "./"); ok {
			if sources, _ := filepath.Glob(filepath.Join(strings.TrimSuffix(folder, "/..."), "*.go")); len(sources) == 0 {
				t.Errorf("go %s: there is no package %s", strings.Join(words, " "), word)
			}
		}
	}
}

// typeCommand runs a command of the operator.
func typeCommand(t *testing.T, words []string) {
	t.Helper()
	var out bytes.Buffer
	command := cmd.NewCommand(words)
	command.SetOut(&out)
	command.SetErr(&out)
	if err := command.ExecuteContext(t.Context()); err != nil {
		t.Errorf("%s: %v\n%s", strings.Join(words, " "), err, out.String())
	}
}

var (
	// chosen matches the name of a test, or the end of the name of a fuzzer.
	chosen = regexp.MustCompile(`-run (Test\w+)|FUZZ='(\w+)\$'`)
	// tests matches the declarations of tests and fuzzers.
	tests = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
)

// anyTest is a placeholder for the name of a test.
const anyTest = "TestName"

// TestContributorsTests: tests that are named in commands for contributors exist.
func TestContributorsTests(t *testing.T) {
	text, names, found := read(t, filepath.Join(root, "internal/README.md")), slices.Collect(maps.Keys(declared(t))), 0
	for _, match := range chosen.FindAllStringSubmatch(text, -1) {
		if match[1] == anyTest {
			continue
		}
		found++
		// Like go test: any test whose name contains the text.
		if !regexp.MustCompile(`(?m)` + match[1] + match[2]).MatchString(strings.Join(names, "\n")) {
			t.Errorf("%s: there is no such test", match[0])
		}
	}
	if found < 4 {
		t.Errorf("found %d names only", found)
	}
}

// TestStages: the help text of make lists the stages of make test-ci and make test-release, in order.
func TestStages(t *testing.T) {
	makefile, script := read(t, filepath.Join(root, "Makefile")), read(t, filepath.Join(root, "internal/dev/tools/test.sh"))
	for target, list := range map[string]string{"test-ci": "ci", "test-release": "release"} {
		told := regexp.MustCompile(`(?m)^` + target + `: ## Run [^:]*: (.*)$`).FindStringSubmatch(makefile)
		run := regexp.MustCompile(`(?m)^` + list + `=\(([a-z0-9@. -]+)\)$`).FindStringSubmatch(script)
		if told == nil || run == nil {
			t.Fatalf("the stages of make %s are not found", target)
		}
		expect.Equal(t, "stages of make "+target, strings.Fields(run[1]), strings.Split(told[1], ", "))
	}
}

// releaseOnly matches the line that skips a test in make test, with the tests that prove its
// behaviour there.
var releaseOnly = regexp.MustCompile(`\trelease\.Only\(t, (.*)\)\n`)

// declared returns the names of all tests and fuzzers, with any build tags, and whether make test runs them.
func declared(t *testing.T) map[string]bool {
	t.Helper()
	run := map[string]bool{}
	for _, text := range sources(t, "_test.go") {
		for _, found := range tests.FindAllStringSubmatch(text, -1) {
			run[found[1]] = run[found[1]] || !strings.HasPrefix(text, "//go:build e2e\n")
		}
	}
	return run
}

// TestReleaseOnly: tests that are named as a proof exist, and make test runs them.
func TestReleaseOnly(t *testing.T) {
	var only []string
	for _, text := range sources(t, "_test.go") {
		only = append(only, releaseOnly.FindAllString(text, -1)...)
	}
	run := declared(t)
	if len(only) < 10 {
		t.Errorf("found %d lines only", len(only))
	}
	for _, line := range only {
		for _, name := range regexp.MustCompile(`Test\w+`).FindAllString(line, -1) {
			if !run[name] {
				t.Errorf("%s: make test runs no %s", strings.TrimSpace(line), name)
			}
		}
	}
}

// TestProofs: tests that are named as the proof of a right exist.
func TestProofs(t *testing.T) {
	roles, err := rbac.Reasons()
	expect.NoError(t, err)
	run := declared(t)
	for _, role := range roles {
		for _, reason := range role.Rules {
			if _, exists := run[reason.Proof]; reason.Proof != "" && !exists {
				t.Errorf("%s: %s: there is no test %s", role.Role, reason.On, reason.Proof)
			}
		}
	}
}

// TestThreats: each threat names existing tests, or states its limit.
func TestThreats(t *testing.T) {
	run := declared(t)
	threats := strings.Split(read(t, filepath.Join(root, Folder, "threat-model.md")), "\n### ")[1:]
	if len(threats) < 15 {
		t.Errorf("the page has %d threats", len(threats))
	}
	for _, threat := range threats {
		title, text, _ := strings.Cut(threat, "\n")
		named := regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(text, -1)
		if len(named) == 0 && !strings.Contains(text, "\nLimit: ") {
			t.Errorf("%s: names no test and no limit", title)
		}
		for _, name := range named {
			if _, exists := run[name]; !exists {
				t.Errorf("%s: there is no test %q", title, name)
			}
		}
	}
}

// aPath matches text that can only be a path in the repository.
var aPath = regexp.MustCompile(`^[\w.*-]+(/[\w.*-]+)*(\.(go|md|yaml|txt|json|sh)|/[\w*-]+)$`)

// TestContributorsPaths: files and folders on the page for contributors exist. A name without a
// folder is relative to a folder named before in the same line.
func TestContributorsPaths(t *testing.T) {
	page := contributing(t)
	found, line, folders := 0, 0, []string{}
	for _, span := range page.CodeSpans() {
		if span.Line != line {
			line, folders = span.Line, []string{"."}
		}
		if !aPath.MatchString(span.Text) || span.Text == "doc.go" { // of which each package has one
			continue
		}
		found++
		at := slices.IndexFunc(folders, func(folder string) bool {
			files, _ := filepath.Glob(filepath.Join(folder, span.Text))
			return len(files) > 0
		})
		if at < 0 {
			t.Errorf("%s:%d: there is no %s", page.Path, span.Line, span.Text)
			continue
		}
		path := filepath.Join(folders[at], span.Text)
		folders = append(folders, path, filepath.Dir(path))
	}
	if found < 100 {
		t.Errorf("found %d paths only", found)
	}
}

// aFile matches the name of a file in a package comment. A path that begins with pkg is another project's.
var aFile = regexp.MustCompile(`(?:^|[\s(])([\w-][\w./-]*\w\.(?:go|md|yaml|sh))\b`)

// TestPackageComments: files that package comments name exist, in the package or below it, or in the
// repository or its folder internal.
func TestPackageComments(t *testing.T) {
	found := 0
	for path, text := range sources(t, "/doc.go") {
		folder := filepath.Dir(path)
		for _, match := range aFile.FindAllStringSubmatch(text, -1) {
			name := match[1]
			if strings.HasPrefix(name, "pkg") {
				continue
			}
			found++
			if !slices.ContainsFunc([]string{folder, filepath.Join(folder, "*"), root, filepath.Join(root, "internal")}, func(in string) bool {
				files, _ := filepath.Glob(filepath.Join(in, name))
				return len(files) > 0
			}) {
				t.Errorf("%s: there is no %s", path, name)
			}
		}
	}
	if found < 300 {
		t.Errorf("found %d names only", found)
	}
}

// sources returns the texts of all files in the repository whose path ends so, by path.
func sources(t *testing.T, end string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	expect.NoError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, end) {
			texts[path] = read(t, path)
		}
		return err
	}))
	return texts
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	expect.NoError(t, err)
	return string(text)
}
