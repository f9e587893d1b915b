// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rewrite

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
)

// editor writes the text of an object again, at another version. A value that does not change
// keeps its bytes, also where its name or its place changes.
type editor struct {
	lines
	style
	origins *origins
	after   any
	// places has the entry of each value before the conversion.
	places map[string]*entry
	// anchored has the new value of each anchor that the editor has passed.
	anchored map[*yaml.Node]any
}

// edit returns the new text of the value at a path of an object, which becomes the value at another
// path: from the start to the end of its node.
func edit(l lines, n *node, origins *origins, after any, at, from path) string {
	e := &editor{lines: l, origins: origins, after: after, places: map[string]*entry{}, anchored: map[*yaml.Node]any{}}
	e.place(n, from)
	e.style = styleOf(l.text, n)
	if e.keeps(n, at, from) {
		return e.value(n, at, from)
	}
	if isLarge(e.valueAfter(at)) {
		return e.inline(e.valueAfter(at), "")
	}
	return e.scalar(e.valueAfter(at), n)
}

// place records the entries of the values in a node.
func (e *editor) place(n *node, at path) {
	for i, each := range n.entries {
		p := at.child(each.segment(i))
		e.places[p.key()] = each
		e.place(each.value, p)
	}
}

// segment returns the name of a member, or the index of an element.
func (e *entry) segment(i int) string {
	if e.key == nil {
		return index(i)
	}
	return e.name
}

func index(i int) string { return "[" + strconv.Itoa(i) + "]" }

func (e *editor) valueBefore(at path) any {
	value, _ := preserved.Find(e.origins.before, at)
	return value
}

func (e *editor) valueAfter(at path) any {
	value, _ := preserved.Find(e.after, at)
	return value
}

// keeps reports whether a value after the conversion can be written by changing the text of a
// node: both are mappings, both are lists, or the value stays.
func (e *editor) keeps(n *node, at, from path) bool {
	after := e.valueAfter(at)
	switch after := after.(type) {
	case map[string]any:
		return len(after) > 0 && len(n.entries) > 0 && n.isMapping() || e.stays(n, at, from)
	case []any:
		return len(after) > 0 && len(n.entries) > 0 && n.isSequence() || e.stays(n, at, from)
	}
	return e.stays(n, at, from)
}

// stays reports whether a node keeps its text.
func (e *editor) stays(n *node, at, from path) bool {
	if n.source.Kind == yaml.AliasNode {
		if after, passed := e.anchored[n.source.Alias]; passed {
			return reflect.DeepEqual(after, e.valueAfter(at))
		}
	}
	return reflect.DeepEqual(e.valueBefore(from), e.valueAfter(at)) && !n.hasAlias()
}

// hasAlias reports whether a node has an alias, whose value the text elsewhere defines.
func (n *node) hasAlias() bool {
	return slices.ContainsFunc(n.entries, func(e *entry) bool {
		return e.value.source.Kind == yaml.AliasNode || e.value.hasAlias()
	})
}

// value returns the new text of a node that keeps its form.
func (e *editor) value(n *node, at, from path) string {
	if n.source.Anchor != "" {
		e.anchored[n.source] = e.valueAfter(at)
	}
	switch {
	case e.stays(n, at, from):
		return e.text[n.start:n.end]
	case n.flow:
		return e.flow(n, at, from)
	case n.isMapping():
		return e.mapping(n, at, from)
	}
	return e.sequence(n, at, from)
}

// names returns the members that a mapping will have: by entry those that stay in it, and those
// that are added. Members that a merge provides need no text.
func (e *editor) names(n *node, at, from path) (kept map[*entry]string, added []string) {
	kept, merged := map[*entry]string{}, e.merged(n)
	after, _ := e.valueAfter(at).(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(after)) {
		source := e.origins.from(at.child(name))
		if value, provided := merged[name]; provided && n.entry(name) == nil && reflect.DeepEqual(value, after[name]) {
			continue
		}
		if source == nil || !slices.Equal(source.parent(), from) {
			added = append(added, name)
			continue
		}
		if known := n.entry(source.last()); known != nil {
			kept[known] = name
		} else {
			added = append(added, name)
		}
	}
	return kept, added
}

// merged returns the members that a mapping gets from others, as these are after the conversion.
func (e *editor) merged(n *node) map[string]any {
	all := map[string]any{}
	for _, each := range n.entries {
		if !each.isMerge() {
			continue
		}
		sources := []*yaml.Node{each.value.source}
		if each.value.isSequence() {
			sources = each.value.source.Content
		}
		for _, source := range slices.Backward(sources) {
			members, _ := e.anchored[source.Alias].(map[string]any)
			maps.Copy(all, members)
		}
	}
	return all
}

// mapping returns the new text of a block mapping.
func (e *editor) mapping(n *node, at, from path) string {
	kept, added := e.names(n, at, from)
	out := e.newBlock(n)
	addBeside := func(source path) {
		added = slices.DeleteFunc(added, func(name string) bool {
			if source != nil && !slices.Equal(e.origins.beside[at.child(name).key()], source) {
				return false
			}
			out.add(e.added(name, at.child(name), n.column))
			return true
		})
	}
	for _, each := range n.entries {
		name, keeps := kept[each]
		switch {
		case each.isMerge():
			out.keep(each, e.text[each.start:each.end])
		case keeps:
			out.keep(each, e.member(each, name, at.child(name), from.child(each.name)))
		default:
			out.remove(each, from.child(each.name))
		}
		addBeside(from.child(each.name))
	}
	addBeside(nil)
	return out.String()
}

// member returns the new text of an entry that stays in its mapping.
func (e *editor) member(each *entry, name string, at, from path) string {
	head := e.text[each.start:each.mark] + e.above(each, at, from) + e.renamed(each, name) + e.text[each.key.end:each.after]
	return head + e.behindMark(each, at, from, each.column(e.lines))
}

// above returns the comments in a value that does not keep its form, as lines above its key or dash.
func (e *editor) above(each *entry, at, from path) string {
	if e.keeps(each.value, at, from) {
		return ""
	}
	column := each.column(e.lines)
	if lines := e.commentLines(e.commentsInside(each, from), column); lines != "" {
		return lines[column:] + strings.Repeat(" ", column)
	}
	return ""
}

func (e *entry) column(l lines) int { return l.column(e.mark) }

// renamed returns the text of a key.
func (e *editor) renamed(each *entry, name string) string {
	if name == each.name {
		return e.text[each.key.start:each.key.end]
	}
	return e.scalar(name, each.key)
}

// behindMark returns the new text behind the colon or the dash of an entry, with its line break.
func (e *editor) behindMark(each *entry, at, from path, column int) string {
	n := each.value
	if e.keeps(n, at, from) {
		return e.text[each.after:n.start] + e.value(n, at, from) + e.text[n.end:each.end]
	}
	after := e.valueAfter(at)
	if n.source.Anchor != "" {
		e.anchored[n.source] = after
	}
	comment := ""
	if !n.isBlock() {
		comment = strings.TrimRight(e.text[n.end:each.end], "\r\n")
	}
	if isLarge(after) {
		return comment + e.newline + e.children(at, column+e.deeper(after))
	}
	space := " "
	if n.start > each.after && !n.isBlock() {
		space = e.text[each.after:n.start]
	}
	if strings.Contains(space, "\n") {
		space = " "
	}
	return space + e.indented(e.scalar(after, n), column) + comment + e.newline
}

// isLarge reports whether a value is written in lines of its own.
func isLarge(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return len(value) > 0
	case []any:
		return len(value) > 0
	}
	return false
}

// sequence returns the new text of a block sequence.
func (e *editor) sequence(n *node, at, from path) string {
	after, _ := e.valueAfter(at).([]any)
	out := e.newBlock(n)
	sources := e.elements(n, at, from)
	if !slices.IsSortedFunc(sources, func(a, b int) int { return a - b }) || slices.Contains(sources, -1) {
		return e.rewritten(n, at, from, sources)
	}
	next := 0
	for i, each := range n.entries {
		if next < len(after) && sources[next] == i {
			out.keep(each, e.element(each, at.child(index(next)), from.child(index(i))))
			next++
			continue
		}
		out.remove(each, from.child(index(i)))
	}
	return out.String()
}

// element returns the new text of an entry that stays in its sequence.
func (e *editor) element(each *entry, at, from path) string {
	return e.text[each.start:each.mark] + e.above(each, at, from) + e.text[each.mark:each.after] + e.behindMark(each, at, from, each.column(e.lines))
}

// rewritten returns the text of a block sequence whose elements changed places, or that has new ones.
func (e *editor) rewritten(n *node, at, from path, sources []int) string {
	out := e.newBlock(n)
	for i, each := range n.entries {
		if !slices.Contains(sources, i) {
			out.remove(each, from.child(index(i)))
		}
	}
	out.at = n.end
	for i, source := range sources {
		if source < 0 {
			out.add(e.added("", at.child(index(i)), n.column))
			continue
		}
		each := n.entries[source]
		text := e.element(each, at.child(index(i)), from.child(index(source)))
		out.add(strings.Repeat(" ", n.column) + strings.TrimLeft(text, " "))
	}
	return out.String()
}

// elements returns for each element of a list the index of the element that it was, or -1.
func (e *editor) elements(n *node, at, from path) []int {
	after, _ := e.valueAfter(at).([]any)
	before, _ := e.valueBefore(from).([]any)
	sources, used := make([]int, len(after)), map[int]bool{}
	for i := range after {
		sources[i] = -1
		source := e.origins.of[at.child(index(i)).key()]
		if source != nil && slices.Equal(source.parent(), from) {
			if was, err := strconv.Atoi(strings.Trim(source.last(), "[]")); err == nil && was < len(n.entries) {
				sources[i], used[was] = was, true
			}
		}
	}
	for i := range after {
		for j := range before {
			if sources[i] < 0 && !used[j] && j < len(n.entries) && reflect.DeepEqual(after[i], before[j]) {
				sources[i], used[j] = j, true
			}
		}
		if sources[i] < 0 && len(after) == len(before) && !used[i] && e.origins.of[at.child(index(i)).key()] == nil {
			sources[i], used[i] = i, true
		}
	}
	return sources
}

// added returns the lines of a new member, or of a new element if name is empty. If its value
// comes from elsewhere in the object, that text moves with its comments.
func (e *editor) added(name string, at path, column int) string {
	mark := "-"
	if name != "" {
		mark = e.scalar(name, nil) + ":"
	}
	margin := strings.Repeat(" ", column)
	if source := e.origins.from(at); source != nil && e.places[source.key()] != nil {
		return e.moved(e.places[source.key()], mark, at, source, column)
	}
	after := e.valueAfter(at)
	if !isLarge(after) {
		return margin + mark + " " + e.indented(e.scalar(after, nil), column) + e.newline
	}
	if name == "" {
		return margin + "- " + strings.TrimLeft(e.children(at, column+len("- ")), " ")
	}
	return margin + mark + e.newline + e.children(at, column+e.deeper(after))
}

// deeper returns the indentation of members or elements below the name of their parent.
func (e *editor) deeper(value any) int {
	if _, isList := value.([]any); isList {
		return e.dashes
	}
	return e.step
}

// children returns the lines of all members or elements of a value, in a column.
func (e *editor) children(at path, column int) string {
	var out strings.Builder
	switch after := e.valueAfter(at).(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(after)) {
			out.WriteString(e.added(name, at.child(name), column))
		}
	case []any:
		for i := range after {
			out.WriteString(e.added("", at.child(index(i)), column))
		}
	}
	return out.String()
}

// moved returns the lines of an entry from elsewhere in the object, with its comments.
func (e *editor) moved(each *entry, mark string, at, from path, column int) string {
	n, old := each.value, each.column(e.lines)
	margin := strings.Repeat(" ", column)
	comments := ""
	if start := e.start(each.mark); each.start < start {
		comments = e.shifted(e.text[each.start:start], column-old)
	}
	if !e.keeps(n, at, from) {
		comments += e.commentLines(e.commentsInside(each, from), column)
	}
	if !n.isBlock() || !e.keeps(n, at, from) {
		text := e.behindMark(each, at, from, old)
		if !strings.HasSuffix(text, e.newline) { // in brackets, or in the last line of the file
			text = strings.TrimRight(text, " \r\n") + e.newline
		}
		if text != "" && text[0] != ' ' && text[0] != '\n' && text[0] != '\r' {
			text = " " + text
		}
		first, rest, _ := strings.Cut(text, "\n")
		if mark == "-" && strings.TrimSpace(first) == "" {
			return comments + margin + "- " + strings.TrimLeft(e.shifted(rest, column-old), " ")
		}
		return comments + margin + mark + first + "\n" + e.shifted(rest, column-old)
	}
	properties := e.text[n.start:n.entries[0].start] // an anchor, a tag
	body := strings.TrimPrefix(e.value(n, at, from), properties)
	if properties == "" && !e.begins(n.start) {
		body = strings.Repeat(" ", n.column) + body // it stood behind a dash
	}
	if !strings.HasSuffix(body, "\n") {
		body += e.newline
	}
	behind := strings.TrimRight(e.text[each.after:n.start]+properties, " \r\n")
	if mark == "-" && properties == "" {
		return comments + margin + "- " + strings.TrimLeft(e.shifted(body, column+len("- ")-n.column), " ")
	}
	return comments + margin + mark + behind + e.newline + e.shifted(body, column+e.deeper(e.valueAfter(at))-n.column)
}
