// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rewrite

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// node is a value in a YAML text, with its place. The parser gives the start of a value; its end
// is where the text shows it.
type node struct {
	source *yaml.Node
	// flow is true for collections in brackets.
	flow bool
	// start and end are the bytes of the value, and body starts behind its anchor and tag. A
	// block collection starts with the line of its first entry, or in a line behind a dash, and
	// ends with the line break of its last line.
	start, body, end int
	// column is that of the keys or dashes of a block collection, from 0.
	column  int
	entries []*entry
}

// entry is a member of a mapping or an element of a sequence. Its bytes include the comment lines
// directly above it, and the comment behind it.
type entry struct {
	name string
	// key is nil for elements. mark is where the key or the dash is, and after is behind the
	// colon or the dash.
	key         *node
	mark, after int
	value       *node
	start, end  int
}

// isMerge reports whether the entry merges other mappings in.
func (e *entry) isMerge() bool { return e.key != nil && e.key.source.ShortTag() == "!!merge" }

func (n *node) isMapping() bool  { return n.source.Kind == yaml.MappingNode }
func (n *node) isSequence() bool { return n.source.Kind == yaml.SequenceNode }
func (n *node) isBlock() bool    { return !n.flow && len(n.entries) > 0 }

// entry returns the member of a name, nil if there is none.
func (n *node) entry(name string) *entry {
	for _, e := range n.entries {
		if e.name == name && !e.isMerge() {
			return e
		}
	}
	return nil
}

// placer finds the places of the nodes of a document.
type placer struct {
	lines
	err error
}

// fail records the first construct whose place is not clear.
func (p *placer) fail(at int, format string, args ...any) {
	if p.err == nil {
		p.err = &lineError{p.line(at), fmt.Errorf(format, args...)}
	}
}

// root finds the places in an object, which is a mapping. Its comments start at limit or later.
func (p *placer) root(source *yaml.Node, limit int) (*node, error) {
	n := p.node(source, p.offset(source.Line, source.Column), limit, -1)
	return n, p.err
}

// node finds the place of a value that starts at an offset. The comments of its first entry start
// at limit or later; lines that are indented deeper than parent belong to it.
func (p *placer) node(source *yaml.Node, at, limit, parent int) *node {
	n := &node{source: source, start: at, body: at}
	if source.Anchor != "" || source.Style&yaml.TaggedStyle != 0 {
		n.body = p.behindProperties(at)
		limit = max(limit, n.body)
	}
	switch source.Kind {
	case yaml.ScalarNode:
		n.end = p.endOfScalar(source, n.body, parent)
	case yaml.AliasNode:
		n.end = n.body + 1 + len(source.Value)
	case yaml.MappingNode, yaml.SequenceNode:
		if n.body < len(p.text) && (p.text[n.body] == '{' || p.text[n.body] == '[') {
			n.flow = true
			p.flowEntries(n)
		} else {
			p.blockEntries(n, limit)
		}
	default:
		p.fail(at, "this value is neither a mapping, a list nor a scalar")
	}
	return n
}

// behindProperties returns the offset behind an anchor and a tag.
func (p *placer) behindProperties(at int) int {
	for at < len(p.text) {
		switch p.text[at] {
		case '&', '!':
			at += len(p.text[at:]) - len(strings.TrimLeft(p.text[at:], "&!"))
			for at < len(p.text) && !strings.ContainsRune(" \t\r\n", rune(p.text[at])) {
				at++
			}
		case ' ', '\t':
			at++
		default:
			return at
		}
	}
	return at
}

func (p *placer) endOfScalar(source *yaml.Node, at, parent int) int {
	switch {
	case source.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		return p.behindQuoted(at)
	case source.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		keepsBlank := strings.Contains(strings.SplitN(p.text[at:p.end(at)], "#", 2)[0], "+")
		return p.behindIndented(at, parent, keepsBlank)
	case strings.HasPrefix(p.text[at:], source.Value):
		return at + len(source.Value)
	}
	return p.behindPlain(source.Value, at)
}

// behindPlain returns the offset behind a plain scalar over several lines, from whose text its value
// differs only in white space. In brackets, the indentation of lines says nothing about its end.
func (p *placer) behindPlain(value string, at int) int {
	end := at
	for _, want := range strings.Join(strings.Fields(value), "") {
		end += len(p.text[end:]) - len(strings.TrimLeftFunc(p.text[end:], unicode.IsSpace))
		if !strings.HasPrefix(p.text[end:], string(want)) {
			p.fail(at, "the end of this text was not found")
			return at
		}
		end += utf8.RuneLen(want)
	}
	return end
}

// behindQuoted returns the offset behind the quoted scalar at an offset.
func (p *placer) behindQuoted(at int) int {
	quote := p.text[at]
	for i := at + 1; i < len(p.text); i++ {
		switch {
		case p.text[i] == '\\' && quote == '"':
			i++
		case p.text[i] == quote && quote == '\'' && strings.HasPrefix(p.text[i+1:], "'"):
			i++
		case p.text[i] == quote:
			return i + 1
		}
	}
	p.fail(at, "this quote has no end")
	return len(p.text)
}

// behindIndented returns the offset behind the lines that follow the line of at and are indented
// deeper than parent. Blank lines at the end count if keepsBlank.
func (p *placer) behindIndented(at, parent int, keepsBlank bool) int {
	end := p.end(at)
	for next := end; next < len(p.text); next = p.end(next) {
		switch blank := p.content(next) == ""; {
		case blank && !keepsBlank:
			continue
		case !blank && p.indent(next) <= parent:
			return end
		}
		end = p.end(next)
	}
	return end
}

// indent returns the number of spaces at the start of the line of an offset.
func (l lines) indent(at int) int {
	line := l.text[l.start(at):l.end(at)]
	return len(line) - len(strings.TrimLeft(line, " "))
}

func (p *placer) blockEntries(n *node, limit int) {
	step := 1
	if n.isMapping() {
		step = 2
	}
	for i := 0; i+step <= len(n.source.Content) && p.err == nil; i += step {
		e := p.blockEntry(n, i, limit)
		if p.err == nil {
			n.entries = append(n.entries, e)
			limit, n.end = e.end, e.end
		}
	}
	if p.err == nil && len(n.entries) == 0 {
		p.fail(n.body, "a collection without brackets must have entries")
		return
	}
	if p.err == nil {
		if n.body == n.start {
			n.start = n.entries[0].start
		}
		n.body = n.entries[0].start
	}
}

func (p *placer) blockEntry(n *node, i, limit int) *entry {
	e, first := &entry{}, n.source.Content[i]
	value := first
	if n.isMapping() {
		value = n.source.Content[i+1]
		e.mark = p.offset(first.Line, first.Column)
		e.key = p.node(first, e.mark, e.mark, -1)
		e.name = first.Value
		e.after = p.behind(e.key.end, ':')
	} else {
		e.mark = p.dash(n, first, limit)
		e.after = e.mark + 1
	}
	if p.err != nil {
		return nil
	}
	column := p.column(e.mark)
	if i == 0 {
		n.column = column
	}
	e.start = p.behindHead(e.mark, column, limit)
	at := p.offset(value.Line, value.Column)
	if isEmpty(value) {
		at = e.after
	}
	if e.value = p.node(value, at, p.end(e.after), column); p.err != nil {
		return nil
	}
	e.end = e.value.end
	if !e.value.isBlock() && (e.end == 0 || breakAt(p.text, e.end-1) == 0) {
		e.end = p.end(e.value.end)
		if rest := strings.TrimSpace(p.text[e.value.end:e.end]); rest != "" && rest[0] != '#' {
			p.fail(e.value.end, "there is more in the line than a value")
		}
	}
	return e
}

// isEmpty reports whether a value has no text.
func isEmpty(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Style == 0 && n.Value == "" && n.Anchor == ""
}

// behind returns the offset behind a character that follows white space.
func (p *placer) behind(at int, want byte) int {
	for i := at; i < len(p.text); i++ {
		switch p.text[i] {
		case want:
			return i + 1
		case ' ', '\t', '\r', '\n':
		default:
			p.fail(at, "expected %q behind the key", want)
			return at
		}
	}
	p.fail(at, "expected %q behind the key", want)
	return at
}

// dash finds the dash of an element, which is before it in its line, or in one of the lines above.
// All dashes of a sequence have the same column.
func (p *placer) dash(n *node, element *yaml.Node, limit int) int {
	if len(n.entries) == 0 {
		n.column = p.column(p.separator(n.body))
	}
	at := p.offset(element.Line, element.Column)
	for start := p.start(at); ; start = p.start(start - 1) {
		if dash := start + n.column; dash < len(p.text) && dash >= min(limit, at) && p.text[dash] == '-' && dash <= at {
			return dash
		}
		if start <= limit || start == 0 {
			p.fail(at, "the dash of this element was not found")
			return at
		}
	}
}

// column returns the number of bytes between the start of a line and an offset.
func (l lines) column(at int) int { return at - l.start(at) }

// behindHead returns the offset at which an entry starts: that of its mark, or that of its line
// if nothing else is before the mark, or that of the comment lines directly above with the same
// indentation.
func (p *placer) behindHead(mark, column, limit int) int {
	start := p.start(mark)
	if !p.begins(mark) {
		return mark
	}
	for start > limit {
		above := p.start(start - 1)
		if above < limit || p.indent(above) != column || !strings.HasPrefix(p.content(above), "#") {
			break
		}
		start = above
	}
	return start
}

func (p *placer) flowEntries(n *node) {
	at := n.body + 1
	step := 1
	if n.isMapping() {
		step = 2
	}
	for i := 0; i+step <= len(n.source.Content) && p.err == nil; i += step {
		e := &entry{start: at}
		first := n.source.Content[i]
		value, mark := first, p.offset(first.Line, first.Column)
		if e.mark, e.after = mark, mark; step == 2 {
			value = n.source.Content[i+1]
			e.key, e.name = p.node(first, mark, mark, -1), first.Value
			if p.err == nil {
				e.after = p.behind(e.key.end, ':')
			}
		}
		if p.err != nil {
			return
		}
		start := p.offset(value.Line, value.Column)
		if isEmpty(value) {
			start = e.after
		}
		e.value = p.node(value, start, start, -1)
		if p.err != nil {
			return
		}
		e.end = p.separator(e.value.end)
		at = e.end
		if at < len(p.text) && p.text[at] == ',' {
			at++
		}
		n.entries = append(n.entries, e)
	}
	closing := p.separator(at)
	if closing >= len(p.text) || p.text[closing] != '}' && p.text[closing] != ']' {
		p.fail(n.body, "the end of this collection was not found")
		return
	}
	n.end = closing + 1
}

// separator returns the offset of the next comma or closing bracket, behind white space and
// comments.
func (p *placer) separator(at int) int {
	for ; at < len(p.text); at++ {
		switch p.text[at] {
		case '#':
			at = p.end(at) - 1
		case ' ', '\t', '\r', '\n':
		default:
			return at
		}
	}
	return at
}

// lineError is an error about a line.
type lineError struct {
	line int
	error
}

func (e *lineError) Unwrap() error { return e.error }
