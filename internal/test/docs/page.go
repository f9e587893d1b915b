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

// Folder is where the pages are, below the root of the checkout.
const Folder = "api/docs"

// Page is one page.
type Page struct {
	// Path is relative to the root of the checkout.
	Path string
	// Blocks are its code blocks, in order.
	Blocks []Block
	// Prose is what is outside of code blocks, one string for each line; lines
	// inside of blocks are empty, so that an index is a line number less one.
	Prose []string
}

// Block is a code block.
type Block struct {
	// Language is the first word of the info string: yaml, console, sh.
	Language string
	// Info is the rest of it, word by word.
	Info []string
	// Text is the code, without the fences.
	Text string
	// Line is the line number of the opening fence.
	Line int
	// Heading is the one that the block stands under, empty above the first.
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

// All reads every page of the folder, and the README that leads to them.
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

// File is the name under which a reader is to save the block, if any.
func (b Block) File() string { return b.value("file") }

// symptom is the name of the trouble in which the block's commands answer what
// is shown, if any.
func (b Block) symptom() string { return b.value("symptom") }

// value is that of a name=value in the block's info.
func (b Block) value(name string) string {
	for _, word := range b.Info {
		if value, found := strings.CutPrefix(word, name+"="); found {
			return value
		}
	}
	return ""
}

// Played reports whether the block's commands are to be typed.
func (b Block) Played() bool {
	return slices.Contains(b.Info, "play") || b.value("play") != ""
}

// under is the name of what the block is typed with: a heading, where the page
// gives no other.
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
	// notInAnchors is what GitHub leaves out of the anchor of a heading.
	notInAnchors = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// Section is what stands under one of the page's headings, up to the next one, or is
// played by that name: its blocks alone.
func (p *Page) Section(name string) *Page {
	section := &Page{Path: p.Path}
	for _, block := range p.Blocks {
		if block.under() == name {
			section.Blocks = append(section.Blocks, block)
		}
	}
	return section
}

// Anchors are those of the page's headings, as GitHub makes them.
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

// Mention is a word of a page, and its line number.
type Mention struct {
	Text string
	Line int
}

// Links are the targets of the page's links.
func (p *Page) Links() []Mention { return p.find(link) }

// CodeSpans are the words and phrases that are set as code within text.
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
