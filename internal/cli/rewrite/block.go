// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rewrite

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// block collects the new text of a block collection. Comments and blank lines between entries
// stay where they are.
type block struct {
	*editor
	n   *node
	out strings.Builder
	// at is the end of the original text that was used.
	at int
}

func (e *editor) newBlock(n *node) *block {
	return &block{editor: e, n: n, at: n.entries[0].start}
}

// keep writes the new text of an entry.
func (b *block) keep(each *entry, text string) {
	b.write(b.text[b.at:each.start])
	b.write(text)
	b.at = each.end
}

// remove leaves out an entry. Comments stay, unless they moved with a value.
func (b *block) remove(each *entry, from path) {
	b.write(b.text[b.at:each.start])
	b.at = each.end
	b.write(b.commentLines(b.comments(each, from), b.n.column))
}

// add writes the lines of a new entry.
func (b *block) add(text string) {
	if written := b.out.String(); written != "" && !strings.HasSuffix(written, "\n") {
		b.write(b.newline) // behind the last line of a file without a line break
	}
	b.write(text)
}

func (b *block) write(text string) { b.out.WriteString(text) }

// String returns the text from the start of the node to its end.
func (b *block) String() string {
	properties := b.text[b.n.start:b.n.entries[0].start]
	text := b.out.String()
	if !b.begins(b.n.entries[0].mark) {
		text = strings.TrimLeft(text, " ") // the first entry stands behind a dash
	}
	return properties + text
}

// comments returns the comments of an entry, and of those in it, that do not move with a value.
func (e *editor) comments(each *entry, from path) []string {
	if e.origins.to[from.key()] != nil {
		return nil
	}
	found := commentsIn(e.text[each.start:each.mark])
	found = append(found, e.commentsInside(each, from)...)
	if !each.value.isBlock() {
		found = append(found, commentsIn(e.text[each.value.end:each.end])...)
	}
	return found
}

// commentsInside returns the comments in the value of an entry that do not move with a value in it.
func (e *editor) commentsInside(each *entry, from path) []string {
	n := each.value
	if len(n.entries) == 0 {
		found := commentsIn(e.text[each.after:max(each.after, n.start)])
		if n.source.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
			found = append(found, commentsIn(e.text[n.body:e.end(n.body)])...)
		}
		return found
	}
	found := commentsIn(e.text[each.after:n.entries[0].start])
	at := n.entries[0].start
	for i, inner := range n.entries {
		found = append(found, commentsIn(e.text[at:inner.start])...)
		found = append(found, e.comments(inner, from.child(inner.segment(i)))...)
		at = inner.end
	}
	if n.flow {
		found = append(found, commentsIn(e.text[at:n.end])...)
	}
	return found
}

// commentsIn returns the comments in a text between values.
func commentsIn(text string) []string {
	var found []string
	for line := range strings.Lines(text) {
		if i := strings.IndexByte(line, '#'); i >= 0 {
			found = append(found, strings.TrimSpace(line[i:]))
		}
	}
	return found
}

// commentLines returns comments as lines.
func (e *editor) commentLines(comments []string, column int) string {
	var out strings.Builder
	for _, comment := range comments {
		out.WriteString(strings.Repeat(" ", column) + comment + e.newline)
	}
	return out.String()
}
