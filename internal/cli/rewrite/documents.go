// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rewrite

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
)

// rewriting is the work on one text.
type rewriting struct {
	*Rewriter
	lines
	// actions are those of a template, nil if the text is none.
	actions *template
	// unread is the error for a text that may be a template, but is also YAML.
	unread error
	// isPatch is true for strategic merge patches.
	isPatch bool
	// left are the documents in which nothing may change, by index.
	left map[int]bool

	objects []Object
	edits   []replacement
	// wanted is the JSON of each document afterwards, nil if it stays.
	wanted map[int]any
}

// replacement is the new text between two offsets.
type replacement struct {
	start, end int
	text       string
}

// replaced returns a text with all replacements.
func replaced(text string, edits []replacement) string {
	var out strings.Builder
	at := 0
	for _, edit := range slices.SortedFunc(slices.Values(edits), func(a, b replacement) int { return a.start - b.start }) {
		out.WriteString(text[at:edit.start])
		out.WriteString(edit.text)
		at = edit.end
	}
	return out.String() + text[at:]
}

// isDocument reports whether a text is a document with a value.
func isDocument(text string, value any) bool {
	documents, err := parse(text)
	return err == nil && len(documents) == 1 && reflect.DeepEqual(valueOf(documents[0]), value)
}

// unlike parses the new text, and returns the index of the first document that has not the values
// that it should have, or -1.
func (w *rewriting) unlike(before []*yaml.Node) int {
	if len(w.edits) == 0 {
		return -1
	}
	after, err := parse(replaced(w.text, w.edits))
	for i := range before {
		if w.wanted[i] == nil {
			continue
		}
		if err != nil || len(after) != len(before) || !reflect.DeepEqual(valueOf(after[i]), w.wanted[i]) {
			return i
		}
	}
	return -1
}

// valueOf decodes a document, nil if it cannot be decoded.
func valueOf(document *yaml.Node) any {
	text, err := manifest.ToJSON(document)
	if err != nil {
		return nil
	}
	value, err := preserved.Decode(text)
	if err != nil {
		return nil
	}
	return value
}

// documents rewrites all documents but those that are left.
func (w *rewriting) documents(documents []*yaml.Node) {
	w.objects, w.edits, w.wanted = nil, nil, map[int]any{}
	limit := 0
	for i, document := range documents {
		root := document
		if len(root.Content) > 0 {
			root = root.Content[0]
		}
		if root.Kind == yaml.MappingNode {
			w.document(i, root, limit)
		}
		if i+1 < len(documents) {
			limit = w.behindSeparator(documents[i+1])
		}
	}
}

// behindSeparator returns the offset behind the line --- before a document.
func (w *rewriting) behindSeparator(document *yaml.Node) int {
	start := w.offset(document.Line, document.Column)
	const separator = "---"
	if i := strings.LastIndex(w.text[:start], "\n"+separator); i >= 0 {
		return w.end(i + 1)
	}
	if strings.HasPrefix(w.text[:start], separator) {
		return w.end(0)
	}
	return 0
}

// document rewrites the object of a document, or the objects of its list.
func (w *rewriting) document(i int, root *yaml.Node, limit int) {
	whole := valueOf(root)
	members, _ := whole.(map[string]any)
	items, listed := itemsOf(root)
	if !listed {
		if after, ok := w.object(i, root, limit); ok {
			w.wanted[i] = after
		}
		return
	}
	elements, _ := members["items"].([]any)
	changed, all := false, true
	for j, item := range items {
		after, ok := w.object(i, item, w.offset(item.Line, item.Column))
		if ok && j < len(elements) {
			elements[j], changed = after, true
		}
		all = all && ok
	}
	if version, _ := members["apiVersion"].(string); changed && all && members["kind"] == w.kind+"List" && strings.HasPrefix(version, w.group+"/") {
		if value := member(root, "apiVersion"); value != nil && value.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
			w.setListVersion(value)
			members["apiVersion"] = w.group + "/" + w.to
		}
	}
	if changed {
		w.wanted[i] = whole
	}
}

// member returns the value of a member, nil if there is none.
func member(of *yaml.Node, name string) *yaml.Node {
	_, value := manifest.Child(of, name)
	return value
}

// unaliased returns the node that an alias stands for, or the node itself.
func unaliased(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// textIn returns the text of a member, also of one that a merge provides, empty if there is none.
func textIn(of *yaml.Node, name string) string { return textWithin(of, name, 10) }

// textWithin follows merges to a depth: a mapping may merge itself in.
func textWithin(of *yaml.Node, name string, depth int) string {
	if of = unaliased(of); of == nil {
		return ""
	}
	if value := unaliased(member(of, name)); value != nil {
		if value.Kind == yaml.ScalarNode {
			return value.Value
		}
		return ""
	}
	for i := 0; depth > 0 && of.Kind == yaml.MappingNode && i+1 < len(of.Content); i += 2 {
		if of.Content[i].ShortTag() != "!!merge" {
			continue
		}
		sources := []*yaml.Node{of.Content[i+1]}
		if sources[0].Kind == yaml.SequenceNode {
			sources = sources[0].Content
		}
		for _, source := range sources {
			if text := textWithin(source, name, depth-1); text != "" {
				return text
			}
		}
	}
	return ""
}

// itemsOf returns the objects of a list.
func itemsOf(root *yaml.Node) (items []*yaml.Node, listed bool) {
	all := member(root, "items")
	if all == nil || all.Kind != yaml.SequenceNode || !strings.HasSuffix(textIn(root, "kind"), "List") {
		return nil, false
	}
	return all.Content, true
}

// setListVersion replaces the version of a list of the kind.
func (w *rewriting) setListVersion(value *yaml.Node) {
	p := &placer{lines: w.lines}
	n := p.node(value, p.offset(value.Line, value.Column), 0, -1)
	if p.err == nil {
		text := (&editor{lines: w.lines}).scalar(w.group+"/"+w.to, n)
		w.edits = append(w.edits, replacement{n.body, n.end, text})
	}
}

// object rewrites an object of the kind. It returns its new value.
func (w *rewriting) object(document int, root *yaml.Node, limit int) (after any, ok bool) {
	version, ours := strings.CutPrefix(textIn(root, "apiVersion"), w.group+"/")
	if !ours || textIn(root, "kind") != w.kind {
		return nil, false
	}
	text, err := manifest.ToJSON(root)
	object := manifest.NewObject("", text)
	found := Object{Line: root.Line, Name: object.FullName(), From: version, State: Left}
	if w.actions != nil {
		found.Name = w.actions.restore(found.Name)
	}
	defer func() { w.objects = append(w.objects, found) }()
	switch {
	case version == w.to:
		found.State = Current
		return nil, false
	case err != nil:
		found.Name = textIn(member(root, "metadata"), "name")
		problem := problemOf(lineOfError(err))
		found.leave(max(problem.Line, root.Line), "", problem.Message)
	case !slices.Contains(w.versions, version):
		found.leave(root.Line, ".apiVersion", fmt.Sprintf("the policy has no version %s: it converts %s", version, strings.Join(w.versions, ", ")))
	case w.left[document]:
		found.leave(root.Line, "", errUnclear.Error())
	case w.unread != nil && bytes.Contains(text, []byte("{{")):
		found.leave(problemOf(w.unread).Line, "", w.unread.Error())
	default:
		after = w.convertAndEdit(&found, root, limit, object)
	}
	return after, found.State == Rewritten
}

// convertAndEdit converts an object, and writes its new text unless it finds a problem.
func (w *rewriting) convertAndEdit(found *Object, root *yaml.Node, limit int, object manifest.Object) any {
	convert := w.convert
	if w.isPatch {
		convert = w.convertPatch
	}
	c, err := convert(object.String(), object.JSON)
	if err != nil {
		found.leave(root.Line, "", err.Error())
		return nil
	}
	p := &placer{lines: w.lines}
	tree, err := p.root(root, limit)
	if err != nil {
		found.leave(problemOf(err).Line, "", err.Error())
		return nil
	}
	for _, each := range c.notes {
		found.Notes = append(found.Notes, Problem{w.lineOf(tree, each.at), each.field(), each.message})
	}
	if w.findProblems(found, c, tree); len(found.Problems) > 0 {
		return nil
	}
	text := edit(w.lines, tree, c.origins, c.after, nil, nil)
	if w.actions != nil && !w.safe(tree, text) {
		found.leave(root.Line, "", "lines of the template, or fields that are optional in it, would get another place or a default: rewrite it by hand")
		return nil
	}
	found.Notes = append(found.Notes, w.commentsLost(tree, text)...)
	w.edits = append(w.edits, replacement{tree.start, tree.end, text})
	found.State = Rewritten
	return c.after
}

// commentsLost returns a note for each comment of an object that its new text has not: those in
// brackets that other brackets replace.
func (w *rewriting) commentsLost(tree *node, text string) (notes []Problem) {
	e := &editor{lines: w.lines, origins: &origins{}}
	for _, comment := range e.commentsInside(&entry{value: tree, after: tree.start}, nil) {
		if !strings.Contains(text, comment) {
			line := w.line(tree.start + strings.Index(w.text[tree.start:tree.end], comment))
			notes = append(notes, Problem{Line: line, Message: "this comment has no place in the new text, and is left out: " + comment})
		}
	}
	return notes
}

// findProblems adds what the version cannot express, and what depends on the values of a template.
func (w *rewriting) findProblems(found *Object, c *converted, tree *node) {
	if !w.keepPreserved || w.isPatch { // an annotation of a patch would replace that of the object
		for _, each := range c.lost {
			found.leave(w.lineOf(tree, each.at), each.field(), each.message)
		}
	}
	if w.actions == nil {
		return
	}
	for _, each := range w.actions.unsafe(c) {
		found.leave(w.lineOf(tree, each.at), each.field(), each.message)
	}
	for _, each := range w.actions.within(w.line(tree.start), w.line(tree.end-1), w.metadataOf(tree)) {
		found.leave(each.line, "", each.Error())
	}
}

// lineOf returns the line of a field, or that of the nearest object around it.
func (w *rewriting) lineOf(n *node, at path) int {
	line := w.line(n.start)
	for _, segment := range at {
		i := 0
		for i < len(n.entries) && n.entries[i].segment(i) != segment {
			i++
		}
		if i == len(n.entries) {
			break
		}
		line, n = w.line(n.entries[i].mark), n.entries[i].value
	}
	return line
}
