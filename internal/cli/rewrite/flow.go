// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rewrite

import "strings"

// flow returns the new text of a collection in brackets. Entries keep the white space and the
// comments around them.
func (e *editor) flow(n *node, at, from path) string {
	var items []string
	if n.isMapping() {
		items = e.flowMembers(n, at, from)
	} else {
		items = e.flowElements(n, at, from)
	}
	last := n.entries[len(n.entries)-1]
	closing := e.text[last.end : n.end-1] // perhaps a comma behind the last entry
	if len(items) == 0 {
		closing = ""
	} else if first := e.text[n.entries[0].start:n.entries[0].mark]; strings.TrimSpace(first) == "" {
		items[0] = first + strings.TrimLeft(items[0], " \t\r\n") // perhaps another entry was the first
	}
	return e.text[n.start:n.body+1] + strings.Join(items, ",") + closing + e.text[n.end-1:n.end]
}

func (e *editor) flowMembers(n *node, at, from path) []string {
	var items []string
	kept, added := e.names(n, at, from)
	for _, each := range n.entries {
		if name, keeps := kept[each]; keeps {
			head := e.text[each.start:each.mark] + e.renamed(each, name) + e.text[each.key.end:each.after]
			items = append(items, head+e.behindFlowMark(each, at.child(name), from.child(each.name)))
		} else if each.isMerge() {
			items = append(items, e.text[each.start:each.end])
		}
	}
	margin, tail := e.flowMargin(n)
	for _, name := range added {
		items = e.appendFlow(items, margin, tail, e.inline(name, "")+e.colon(n)+e.inline(e.valueAfter(at.child(name)), margin))
	}
	return items
}

func (e *editor) flowElements(n *node, at, from path) []string {
	var items []string
	margin, tail := e.flowMargin(n)
	for i, source := range e.elements(n, at, from) {
		if source < 0 {
			items = e.appendFlow(items, margin, tail, e.inline(e.valueAfter(at.child(index(i))), margin))
			continue
		}
		each := n.entries[source]
		items = append(items, e.text[each.start:each.mark]+e.behindFlowMark(each, at.child(index(i)), from.child(index(source))))
	}
	return items
}

// behindFlowMark returns the new text of an entry behind its colon or, in a list, before it.
func (e *editor) behindFlowMark(each *entry, at, from path) string {
	n := each.value
	var text string
	switch after := e.valueAfter(at); {
	case e.keeps(n, at, from):
		text = e.value(n, at, from)
	case isLarge(after):
		text = e.inline(after, e.text[each.start:each.mark])
	default:
		text = e.scalar(after, n)
		if strings.Contains(text, "\n") {
			text = e.inline(after, "")
		}
	}
	space := e.text[each.after:n.start]
	if space == "" && each.key != nil && !e.json {
		space = " "
	}
	return space + text + e.text[n.end:each.end]
}

// colon returns what is between a key and a value: JSON may have no space there.
func (e *editor) colon(n *node) string {
	if first := n.entries[0]; e.json && first.after == first.value.start {
		return ":"
	}
	return ": "
}

// flowMargin returns the white space before each entry but the first, and that behind the last.
func (e *editor) flowMargin(n *node) (margin, tail string) {
	first, last := n.entries[0], n.entries[len(n.entries)-1]
	margin = e.text[first.start:first.mark]
	if strings.TrimSpace(margin) != "" { // a comment
		margin = ""
	}
	if len(n.entries) > 1 || margin == "" {
		margin = " "
		if len(n.entries) > 1 {
			margin = e.text[n.entries[1].start:n.entries[1].mark]
		}
	}
	if strings.TrimSpace(margin) != "" {
		margin = " "
	}
	tail = e.text[last.value.end:last.end]
	return margin, tail
}

// appendFlow adds an entry behind the others. The white space behind the last one moves.
func (e *editor) appendFlow(items []string, margin, tail, text string) []string {
	if len(items) == 0 {
		return []string{strings.TrimLeft(margin+text, " ") + tail}
	}
	last := len(items) - 1
	if tail != "" && strings.TrimSpace(tail) == "" {
		items[last] = strings.TrimSuffix(items[last], tail)
		text += tail
	}
	return append(items, margin+text)
}
