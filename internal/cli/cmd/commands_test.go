// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/golden"
)

// TestCommands runs the commands in the files of testdata/commands, and compares what they print, and their
// exit codes; TestLive does so for those in the folder live. Read these files: they show users what to do
// after each mistake. Their lines begin with
//
//	#   a comment
//	+   a file in $TMP to create: its name, and the files that it joins
//	~   a file in $TMP to create: its name, a file, and pairs of a text in it and its replacement
//	$   a command; "| head N", "| grep TEXT" or "| tee NAME" may follow, as in a shell
//	<   a line of its input, or of the file
//	>   a line that it prints, and ! one to stderr
//	=   its exit code, unless it is 0
//
// go test -update rewrites the lines of the last two.
func TestCommands(t *testing.T) {
	t.Setenv("KUBECONFIG", "nowhere")
	files, err := filepath.Glob("testdata/commands/*.txt")
	expect.NoError(t, err)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { runCommands(t, file, nil) })
	}
}

// outputLine matches a line of a file that a command prints.
var outputLine = regexp.MustCompile(`(?m)^[>!=].*\n`)

// runCommands runs the commands of a file, in which $NAME may stand for more paths.
func runCommands(t *testing.T, file string, paths map[string]string) {
	t.Helper()
	s := &script{T: t, paths: map[string]string{
		"SAMPLES": "../../../config/samples", "SAMPLE": "../../../config/samples/crontab-hostport", "VERIFY": "../../operator/verify/testdata", "DIFF": "../diff/testdata", "REWRITE": "../rewrite/testdata", "TMP": t.TempDir(),
	}}
	maps.Copy(s.paths, paths)
	var text strings.Builder
	given := strings.SplitAfter(outputLine.ReplaceAllString(readFile(t, file), ""), "\n")
	for i := 0; i < len(given); i++ {
		line, input := given[i], ""
		text.WriteString(line)
		for ; i+1 < len(given) && strings.HasPrefix(given[i+1], "<"); i++ {
			text.WriteString(given[i+1])
			input += strings.TrimPrefix(strings.TrimPrefix(given[i+1], "<"), " ")
		}
		text.WriteString(s.do(line, input))
	}
	golden.Check(t, text.String(), strings.Split(strings.TrimPrefix(file, "testdata/"), "/")...)
}

// script runs the lines of a file.
type script struct {
	*testing.T
	// paths are what $NAME stands for.
	paths map[string]string
}

// do does what a line says, and returns the lines that a command prints.
func (s *script) do(line, input string) (printed string) {
	s.Helper()
	words := s.wordsOf(line)
	if len(words) == 0 {
		return ""
	}
	switch words[0] {
	case "+":
		for i, file := range words[2:] {
			input += strings.Repeat("---\n", min(i, 1)) + readFile(s.T, file)
		}
		s.write(words[1], input)
	case "~":
		s.write(words[1], strings.NewReplacer(words[3:]...).Replace(readFile(s.T, words[2])))
	case "$":
		return s.run(words[1:], input)
	}
	return ""
}

func (s *script) write(name, text string) {
	s.Helper()
	expect.NoError(s, os.WriteFile(filepath.Join(s.paths["TMP"], name), []byte(text), 0o600))
}

// word matches a word, which may have quotes.
var word = regexp.MustCompile(`"(?:\\.|[^"\\])*"|\S+`)

func (s *script) wordsOf(line string) []string {
	words := word.FindAllString(line, -1)
	for i, each := range words {
		words[i] = os.Expand(each, func(name string) string { return s.paths[name] })
		if unquoted, err := strconv.Unquote(words[i]); err == nil {
			words[i] = unquoted
		}
	}
	return words
}

func (s *script) run(words []string, input string) (printed string) {
	s.Helper()
	words, filter, _ := cut(words, "|")
	stdout, stderr, err := runWith(input, words...)
	lines := strings.SplitAfter(stdout, "\n")
	switch {
	case len(filter) == 0:
	case filter[0] == "head":
		count, err := strconv.Atoi(filter[1])
		expect.NoError(s, err)
		stdout = strings.Join(lines[:min(count, len(lines))], "")
	case filter[0] == "grep":
		stdout = strings.Join(slices.DeleteFunc(lines, func(line string) bool { return !strings.Contains(line, filter[1]) }), "")
	case filter[0] == "tee":
		s.write(filter[1], stdout)
	}
	printed = s.marked("> ", stdout) + s.marked("! ", stderr)
	if code := ExitCode(err); code != 0 {
		printed += fmt.Sprintf("= %d\n", code)
	}
	return printed
}

// cut returns the words before and after a word.
func cut(words []string, at string) (before, after []string, found bool) {
	if i := slices.Index(words, at); i >= 0 {
		return words[:i], words[i+1:], true
	}
	return words, nil, false
}

// varying matches what differs between builds and runs: hashes of rulesets, what a command had to do, and times.
var varying = regexp.MustCompile("(-ruleset: \"?|ruleset `|compile to |-migrate-)[0-9a-f]{8,16}|(its hash was |conversions, |objects read in )[0-9].*|[0-9-]{10}T[0-9:]{8}Z")

// marked marks each line, with the names of folders and without what differs between runs.
func (s *script) marked(mark, text string) string {
	text = varying.ReplaceAllString(text, "$1$2…")
	for _, name := range slices.Sorted(maps.Keys(s.paths)) { // SAMPLE, which is longer, before SAMPLES
		text = strings.ReplaceAll(text, s.paths[name], "$"+name)
	}
	var marked strings.Builder
	for line := range strings.Lines(text) {
		marked.WriteString(strings.TrimRight(mark+strings.TrimSuffix(line, "\n"), " ") + "\n")
	}
	return marked.String()
}
