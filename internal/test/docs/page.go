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

// All reads the README and every page of the folder.
func All(root string) ([]*Page, error) {
	paths, err := filepath.Glob(filepath.Join(root, Folder, "*.md"))
	if err != nil {
		return nil, err
	}
	pages := []*Page{}
	for _, path := range append([]string{filepath.Join(root, "README.md")}, paths...) {
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return nil, err
		}
		page, err := Read(root, filepath.ToSlash(relative))
		if err != nil {
			return nil, err
		}
		pages = append(pages, page)
	}
	return pages, nil
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
