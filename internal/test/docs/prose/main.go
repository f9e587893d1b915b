// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command prose finds phrases that confuse readers, in Markdown pages, and in comments and strings of
// Go files: those that match a pattern of rules.txt. It exits with 1 if it finds any. It does not read
// files of testdata, code in pages, and strings of one word, which are names.
//
//	go run ./internal/test/docs/prose PATH...
package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"go/scanner"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

//go:embed rules.txt
var rulesText string

// A rule forbids a phrase, unless the text there also matches another pattern.
type rule struct {
	phrase, unless *regexp.Regexp
	advice         string
	// examples are texts that are wrong, and texts that are right.
	examples map[string][]string
}

func main() {
	rules, found := parse(rulesText), 0
	for _, root := range os.Args[1:] {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() && entry.Name() == "testdata" {
				return filepath.SkipDir
			}
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".md" && filepath.Ext(path) != ".go" {
				return err
			}
			content, err := os.ReadFile(path)
			found += check(os.Stdout, path, content, rules)
			return err
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			os.Exit(2)
		}
	}
	os.Exit(min(found, 1))
}

// parse reads rules: lines of PHRASE => ADVICE, or PHRASE => ADVICE unless PATTERN, each followed by
// lines with examples.
func parse(text string) []rule {
	var rules []rule
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if phrase, advice, found := strings.Cut(line, " => "); found {
			advice, unless, limited := strings.Cut(advice, " unless ")
			made := rule{phrase: pattern(`\b(?:` + phrase + `)\b`), advice: advice, examples: map[string][]string{}}
			if limited {
				made.unless = pattern(unless)
			}
			rules = append(rules, made)
		} else if kind, example, found := strings.Cut(line, ": "); found && line[0] == ' ' {
			examples := rules[len(rules)-1].examples
			examples[kind] = append(examples[kind], example)
		}
	}
	return rules
}

// pattern compiles a pattern that ignores case. A space matches also the end of a line, with the start
// of the next one, in a comment too.
func pattern(text string) *regexp.Regexp {
	return regexp.MustCompile("(?i)" + strings.ReplaceAll(text, " ", `(?:[ \t]+|\n[ \t]*(?://[ \t]*)?)`))
}

// check prints what the rules find in a file, and returns the number of findings.
func check(to io.Writer, path string, content []byte, rules []rule) int {
	text, found := prose(path, content), 0
	for _, rule := range rules {
		for _, at := range rule.phrase.FindAllIndex(text, -1) {
			overlaps := func(span []int) bool { return span[0] < at[1] && at[0] < span[1] }
			if rule.unless != nil && slices.ContainsFunc(rule.unless.FindAllIndex(text, -1), overlaps) {
				continue
			}
			found++
			fmt.Fprintf(to, "%s:%d: instead of %q: %s\n", path, 1+bytes.Count(text[:at[0]], []byte("\n")), text[at[0]:at[1]], rule.advice)
		}
	}
	return found
}

// notProse matches code, comments, and the targets of links in Markdown.
var notProse = regexp.MustCompile("(?ms)^ *```.*?^ *```|``(?:[^`]|`[^`])+``|`[^`]+`|<!--.*?-->|\\]\\([^)\\s]*\\)")

// prose returns the content of a file with a backtick for everything else, on the same lines.
func prose(path string, content []byte) []byte {
	var text bytes.Buffer
	end := 0
	show := func(from, to int) {
		gap := content[end:from]
		if len(bytes.TrimSpace(gap)) > 0 {
			gap = []byte("`" + strings.Repeat("\n", bytes.Count(gap, []byte("\n"))))
		}
		text.Write(gap)
		text.Write(content[from:to])
		end = to
	}
	if filepath.Ext(path) == ".md" {
		from := 0
		for _, span := range notProse.FindAllIndex(content, -1) {
			show(from, span[0])
			from = span[1]
		}
		show(from, len(content))
		return text.Bytes()
	}
	var tokens scanner.Scanner
	file := token.NewFileSet().AddFile(path, -1, len(content))
	tokens.Init(file, content, nil, scanner.ScanComments)
	for {
		position, kind, literal := tokens.Scan()
		if kind == token.EOF {
			return text.Bytes()
		}
		if kind == token.COMMENT || kind == token.STRING && strings.Contains(literal, " ") {
			from := file.Offset(position)
			show(from, from+len(literal))
		}
	}
}
