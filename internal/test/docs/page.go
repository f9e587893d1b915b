// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Folder has the pages, relative to the root of the checkout.
const Folder = "api/docs"

// Page is one page.
type Page struct {
	// Path is relative to the root of the checkout.
	Path string
	// Blocks are its code blocks, in order.
	Blocks []Block
	// Prose has the lines outside of code blocks. Lines of code blocks are empty, so that the index
	// is the line number minus one.
	Prose []string
}

// Block is a code block.
type Block struct {
	// Language is the first word of the info string: yaml, console, sh.
	Language string
	// Info has the other words of the info string.
	Info []string
	// Text is the code, without the fences.
	Text string
	// Line is the line number of the opening fence.
	Line int
	// Heading is the heading above the block; empty above the first one.
	Heading string
}

// Read reads one page.
func Read(root, path string) (*Page, error) {
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		return nil, err
	}
	page, err := parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	page.Path = path
	return page, nil
}

func parse(text string) (*Page, error) {
	page := &Page{}
	var open *Block
	under := ""
	for i, line := range strings.Split(text, "\n") {
		info, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		prose := ""
		switch {
		case fence && open == nil:
			open = newBlock(info, i+1)
			open.Heading = under
		case fence:
			page.Blocks = append(page.Blocks, *open)
			open = nil
		case open != nil:
			open.Text += line + "\n"
		default:
			prose = line
			if found := heading.FindStringSubmatch(line); found != nil {
				under = found[1]
			}
		}
		page.Prose = append(page.Prose, prose)
	}
	if open != nil {
		return nil, fmt.Errorf("the code block of line %d has no end", open.Line)
	}
	return page, nil
}

func newBlock(info string, line int) *Block {
	block := &Block{Line: line}
	if words := strings.Fields(info); len(words) > 0 {
		block.Language, block.Info = words[0], words[1:]
	}
	return block
}

// File returns the name under which readers save the block, if any.
func (b Block) File() string { return b.value("file") }

// symptom returns the name of the trouble in which the block's commands print what is shown, if
// any.
func (b Block) symptom() string { return b.value("symptom") }

// value returns the value of name=value in the block's info.
func (b Block) value(name string) string {
	for _, word := range b.Info {
		if value, found := strings.CutPrefix(word, name+"="); found {
			return value
		}
	}
	return ""
}

// Played reports whether tests run the block's commands.
func (b Block) Played() bool {
	return slices.Contains(b.Info, "play") || b.value("play") != ""
}

// under returns the name that the block is played by: by default, its heading.
func (b Block) under() string {
	if name := b.value("play"); name != "" {
		return name
	}
	return b.Heading
}

var (
	heading  = regexp.MustCompile(`^#{1,6} +(.*)$`)
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	codeSpan = regexp.MustCompile("`([^`]+)`")
	// notInAnchors matches what GitHub omits in the anchor of a heading.
	notInAnchors = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// Section returns the blocks under a heading, or with play=name.
func (p *Page) Section(name string) *Page {
	section := &Page{Path: p.Path}
	for _, block := range p.Blocks {
		if block.under() == name {
			section.Blocks = append(section.Blocks, block)
		}
	}
	return section
}

// Anchors returns the anchors of the page's headings, as on GitHub.
func (p *Page) Anchors() map[string]bool {
	anchors := map[string]bool{}
	for _, line := range p.Prose {
		found := heading.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		name := strings.ReplaceAll(notInAnchors.ReplaceAllString(strings.ToLower(found[1]), ""), " ", "-")
		anchor := name
		for i := 1; anchors[anchor]; i++ {
			anchor = fmt.Sprintf("%s-%d", name, i)
		}
		anchors[anchor] = true
	}
	return anchors
}

// Mention is a text on a page, and its line number.
type Mention struct {
	Text string
	Line int
}

// Links returns the targets of the page's links.
func (p *Page) Links() []Mention { return p.find(link) }

// CodeSpans returns the inline code of the page.
func (p *Page) CodeSpans() []Mention { return p.find(codeSpan) }

func (p *Page) find(pattern *regexp.Regexp) []Mention {
	var found []Mention
	for i, line := range p.Prose {
		for _, match := range pattern.FindAllStringSubmatch(line, -1) {
			found = append(found, Mention{Text: match[1], Line: i + 1})
		}
	}
	return found
}

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
