// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"regexp"
	"strings"
)

// Command is a command on a page, with its documented output.
type Command struct {
	// Text is the command, of one or more lines.
	Text string
	// Answer is the documented output; empty if the page shows none.
	Answer string
}

const prompt = "$ "

var hereDocument = regexp.MustCompile(`<<-?'?"?([A-Za-z]+)`)

// languages are the languages of blocks with commands. The value is true if commands follow a
// prompt, with their output.
var languages = map[string]bool{"console": true, "sh": false}

// HasCommands reports whether the block has commands.
func (b Block) HasCommands() bool {
	_, found := languages[b.Language]
	return found
}

// Commands returns the commands of the block; none for other languages.
func (b Block) Commands() []Command {
	prompted, found := languages[b.Language]
	if !found {
		return nil
	}
	var commands []Command
	// until is the last line of a here-document. continued is set after a backslash at the end of a
	// line.
	until, continued := "", false
	for line := range strings.Lines(b.Text) {
		text, typed := strings.CutPrefix(line, prompt)
		if !prompted {
			text, typed = line, strings.TrimSpace(line) != ""
		}
		last := len(commands) - 1
		switch {
		case until != "":
			commands[last].Text += line
			if strings.TrimSpace(line) == until {
				until = ""
			}
		case continued:
			commands[last].Text += line
			continued = strings.HasSuffix(line, "\\\n")
		case typed:
			commands = append(commands, Command{Text: text})
			continued = strings.HasSuffix(line, "\\\n")
			if found := hereDocument.FindStringSubmatch(text); found != nil {
				until = found[1]
			}
		case prompted && last >= 0:
			commands[last].Answer += line
		}
	}
	return commands
}

// podCharacters are the characters in the random part of pod names.
const podCharacters = "bcdfghjklmnpqrstvwxz2456789"

// masks replace text that differs each time, in order.
var masks = []struct {
	pattern *regexp.Regexp
	mask    string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`), "<time>"},
	{regexp.MustCompile(`\b(until) \d{4}-\d\d-\d\d\b`), "$1 <date>"},
	{regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "<uid>"},
	{regexp.MustCompile(`\brun [0-9a-f]{8}\b`), "run <id>"},
	{regexp.MustCompile(`-migrate-[0-9a-f]{8}\b`), "-migrate-<id>"},
	{regexp.MustCompile(`-[` + podCharacters + `]{8,10}-[` + podCharacters + `]{5}\b`), "-<pod>"},
	{regexp.MustCompile(`\b[0-9a-f]{16}\b`), "<hash>"},
	{regexp.MustCompile(`\b[\d.]+(ns|µs|ms)\b`), "<moment>"},
	{regexp.MustCompile(`\b(\d+d)?(\d+h)?(\d+m)?\d+s\b`), "<age>"},
	{regexp.MustCompile(`\b\d+d\d*h?\b|\b\d+h\d*m?\b|\b\d+m\b`), "<age>"},
	{regexp.MustCompile(`\b(dial|read|write) tcp [^ ]+( ?->[^ ]+)?: `), "$1 tcp <address>: "},
	{regexp.MustCompile(`(\.svc|localhost):\d+`), "$1:<port>"},
	{regexp.MustCompile(`\brevision=\d+`), "revision=<n>"},
	{regexp.MustCompile(`[ \t]+`), " "},
}

// Stable returns output without what differs each time: ages, times, hashes, addresses, and the
// width of columns.
func Stable(answer string) []string {
	var lines []string
	for line := range strings.Lines(answer) {
		line = strings.TrimSpace(line)
		for _, m := range masks {
			line = m.pattern.ReplaceAllString(line, m.mask)
		}
		if line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// anyLines matches lines that a page does not show.
const anyLines = "..."

// Answers reports whether output matches what the page shows.
func Answers(shown, answer string) bool {
	return fits(Stable(shown), Stable(answer))
}

func fits(shown, answer []string) bool {
	if len(shown) == 0 {
		return len(answer) == 0
	}
	if shown[0] == anyLines {
		for skipped := range len(answer) + 1 {
			if fits(shown[1:], answer[skipped:]) {
				return true
			}
		}
		return false
	}
	return len(answer) > 0 && lineFits(shown[0], answer[0]) && fits(shown[1:], answer[1:])
}

// anyText matches a part of a line that a page does not show.
const anyText = "…"

func lineFits(shown, answer string) bool {
	parts := strings.Split(shown, anyText)
	first, last := strings.TrimSpace(parts[0]), strings.TrimSpace(parts[len(parts)-1])
	if len(parts) == 1 {
		return shown == answer
	}
	if !strings.HasPrefix(answer, first) || !strings.HasSuffix(answer[len(first):], last) {
		return false
	}
	answer = answer[len(first) : len(answer)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		_, rest, found := strings.Cut(answer, strings.TrimSpace(part))
		if !found {
			return false
		}
		answer = rest
	}
	return true
}
