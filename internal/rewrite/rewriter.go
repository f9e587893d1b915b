// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rewrite

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/crds"
	"github.com/conversion-operator/conversion-operator/internal/explain"
	"github.com/conversion-operator/conversion-operator/internal/manifest"
	"github.com/conversion-operator/conversion-operator/internal/preserved"
	"github.com/conversion-operator/conversion-operator/internal/verify"
)

// Options of a Rewriter.
type Options struct {
	// To is the version of the objects afterwards.
	To string
	// KeepPreserved writes values that the version cannot express into an annotation. Without it,
	// such an object stays.
	KeepPreserved bool
}

// Rewriter rewrites the objects of one kind.
type Rewriter struct {
	group, kind   string
	versions      []string
	resource      preserved.Resource
	to            string
	keepPreserved bool
	converter     *conversion.Converter
	explainer     *explain.Explainer
	defaults      verify.Defaults
	// samples has, by version, an object with a value in every field.
	samples map[string]any
}

// New returns a Rewriter for the compiled rules of a policy.
func New(policy *v1alpha1.ConversionPolicy, crd *apiextensionsv1.CustomResourceDefinition, result compile.Result, options Options) (*Rewriter, error) {
	ruleset := result.Ruleset
	if !slices.Contains(ruleset.Versions, options.To) {
		return nil, fmt.Errorf("version %q is not one of %s", options.To, strings.Join(ruleset.Versions, ", "))
	}
	r := &Rewriter{
		group: ruleset.Group, kind: ruleset.Kind, versions: ruleset.Versions, to: options.To, keepPreserved: options.KeepPreserved,
		samples: map[string]any{}, resource: preserved.Resource{Name: ruleset.CRD, Versions: ruleset.Versions},
	}
	var err error
	if r.converter, err = conversion.NewConverter(ruleset); err != nil {
		return nil, err
	}
	if r.explainer, err = explain.New(policy, result); err != nil {
		return nil, err
	}
	if r.defaults, err = verify.NewDefaults(crd); err != nil {
		return nil, err
	}
	for _, version := range r.versions {
		if r.samples[version], err = preserved.Decode(crds.FilledCanary(crd, version)); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// State of an object after a rewrite.
type State string

// The states.
const (
	// Rewritten objects are at the new version.
	Rewritten State = "Rewritten"
	// Current objects were at the new version before.
	Current State = "Current"
	// Left objects keep their old version, for the reason that their problems give.
	Left State = "Left"
)

// Result is what became of a text.
type Result struct {
	// Text is the new text. It is the original if no object was rewritten.
	Text []byte
	// Objects of the kind, in their order.
	Objects []Object
	// Problems of the text as a whole, which then has no objects.
	Problems []Problem
}

// Changed reports whether the text differs from the original.
func (r *Result) Changed() bool {
	return slices.ContainsFunc(r.Objects, func(o Object) bool { return o.State == Rewritten })
}

// Object is what became of an object.
type Object struct {
	// Line is that of the object's first field, from 1.
	Line  int    `json:"line"`
	Name  string `json:"name,omitempty"`
	From  string `json:"from"`
	State State  `json:"state"`
	// Problems are the reasons why the object was left.
	Problems []Problem `json:"problems,omitempty"`
	// Notes are about values that a rule drops, or that the new version writes in another way.
	Notes []Problem `json:"notes,omitempty"`
}

// Problem is something that users must change by hand.
type Problem struct {
	Line    int    `json:"line"`
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
}

// Mentions reports whether a text may have objects of the kind. It is quick.
func (r *Rewriter) Mentions(text []byte) bool {
	return bytes.Contains(text, []byte(r.group+"/")) && bytes.Contains(text, []byte(r.kind))
}

// byteOrderMark may be at the start of a file.
const byteOrderMark = "\ufeff"

// Text rewrites the objects in a text. It never fails: what cannot be rewritten stays, with a problem.
func (r *Rewriter) Text(original []byte) *Result { return r.rewrite(original, false) }

func (r *Rewriter) rewrite(original []byte, isPatch bool) *Result {
	text, marked := strings.CutPrefix(string(original), byteOrderMark)
	hidden, actions, err := hide(text)
	if err != nil {
		if _, plain := parse(text); plain != nil {
			return &Result{Text: original, Problems: []Problem{problemOf(err)}}
		}
		hidden, actions = text, nil // it is YAML, and perhaps no template
	}
	unread := err
	documents, err := parse(hidden)
	if err != nil {
		return &Result{Text: original, Problems: []Problem{problemOf(err)}}
	}
	w := &rewriting{Rewriter: r, lines: newLines(hidden), actions: actions, unread: unread, isPatch: isPatch, left: map[int]bool{}}
	for {
		w.documents(documents)
		wrong := w.unlike(documents)
		if wrong < 0 {
			break
		}
		w.left[wrong] = true
	}
	result := &Result{Text: original, Objects: w.objects}
	if result.Changed() {
		result.Text = []byte(w.text())
		if actions != nil {
			result.Text = []byte(actions.restore(w.text()))
		}
		if marked {
			result.Text = append([]byte(byteOrderMark), result.Text...)
		}
	}
	return result
}

func problemOf(err error) Problem {
	line := 1
	if at, ok := errors.AsType[*lineError](err); ok {
		line = at.line
	}
	return Problem{Line: line, Message: err.Error()}
}

// parse reads the documents of a text.
func parse(text string) ([]*yaml.Node, error) {
	var documents []*yaml.Node
	decoder := yaml.NewDecoder(strings.NewReader(text))
	for {
		document := &yaml.Node{}
		err := decoder.Decode(document)
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, parseError(err)
		}
		documents = append(documents, document)
	}
}

// parseError gives an error of the parser the line that its text names.
func parseError(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	if _, scanErr := fmt.Sscanf(text, "line %d:", &line); scanErr != nil {
		return errors.New("this is not YAML: " + text)
	}
	_, text, _ = strings.Cut(text, ": ")
	return &lineError{line, errors.New("this is not YAML: " + text)}
}

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

// text returns the text with all replacements.
func (w *rewriting) text() string {
	var out strings.Builder
	at := 0
	for _, edit := range w.edits {
		out.WriteString(w.lines.text[at:edit.start])
		out.WriteString(edit.text)
		at = edit.end
	}
	return out.String() + w.lines.text[at:]
}

// unlike parses the new text, and returns the index of the first document that has not the values
// that it should have, or -1.
func (w *rewriting) unlike(before []*yaml.Node) int {
	if len(w.edits) == 0 {
		return -1
	}
	after, err := parse(w.text())
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
	if i := strings.LastIndex("\n"+w.lines.text[:start], "\n---"); i >= 0 {
		return w.end(i)
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
	if changed && members["kind"] == w.kind+"List" && all {
		w.setListVersion(root)
		members["apiVersion"] = w.group + "/" + w.to
	}
	if changed {
		w.wanted[i] = whole
	}
}

// member returns the value of a member, nil if there is none.
func member(of *yaml.Node, name string) *yaml.Node {
	for i := 0; of.Kind == yaml.MappingNode && i+1 < len(of.Content); i += 2 {
		if of.Content[i].Value == name {
			return of.Content[i+1]
		}
	}
	return nil
}

// textIn returns the text of a member, empty if there is none.
func textIn(of *yaml.Node, name string) string {
	if value := member(of, name); value != nil && value.Kind == yaml.ScalarNode {
		return value.Value
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
func (w *rewriting) setListVersion(root *yaml.Node) {
	value := member(root, "apiVersion")
	start := w.offset(value.Line, value.Column)
	if at := strings.Index(w.lines.text[start:], value.Value); at >= 0 {
		w.edits = append(w.edits, replacement{start + at, start + at + len(value.Value), w.group + "/" + w.to})
	}
	slices.SortFunc(w.edits, func(a, b replacement) int { return a.start - b.start })
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
		found.leave(root.Line, "", err.Error())
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

func (o *Object) leave(line int, field, message string) {
	o.Problems = append(o.Problems, Problem{line, field, message})
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
		found.Notes = append(found.Notes, Problem{w.lineOf(tree, each.at), each.field, each.message})
	}
	if w.findProblems(found, c, tree); len(found.Problems) > 0 {
		return nil
	}
	text := edit(w.lines, tree, c.origins, c.after, nil, nil)
	if w.actions != nil && !w.safe(tree, text) {
		found.leave(root.Line, "", "lines of the template, or fields that are optional in it, would get another place or a default: rewrite it by hand")
		return nil
	}
	w.edits = append(w.edits, replacement{tree.start, tree.end, text})
	found.State = Rewritten
	return c.after
}

// findProblems adds what the version cannot express, and what depends on the values of a template.
func (w *rewriting) findProblems(found *Object, c *converted, tree *node) {
	if !w.keepPreserved || w.isPatch { // an annotation of a patch would replace that of the object
		for _, each := range c.lost {
			found.leave(w.lineOf(tree, each.at), each.field, each.message)
		}
	}
	if w.actions == nil {
		return
	}
	for _, each := range w.actions.unsafe(c) {
		found.leave(w.lineOf(tree, each.at), each.field, each.message)
	}
	for _, each := range w.actions.within(w.line(tree.start), w.line(tree.end-1), w.metadataOf(tree)) {
		found.leave(each.line, "", each.Error())
	}
}

// metadataOf returns the first line of an object's metadata, and that of the member behind it.
func (w *rewriting) metadataOf(n *node) [2]int {
	for i, e := range n.entries {
		if e.name != "metadata" {
			continue
		}
		if i+1 < len(n.entries) {
			return [2]int{w.line(e.start), w.line(n.entries[i+1].start)}
		}
		return [2]int{w.line(e.start), w.line(e.end)}
	}
	return [2]int{}
}

// safe reports whether the new text of an object is right for everything that a template may write.
func (w *rewriting) safe(n *node, text string) bool {
	old, text := belowHead(w.lines.text[n.start:n.end]), belowHead(text)
	before, after := w.actions.linesIn(old), w.actions.linesIn(text)
	if !slices.Equal(before, after) {
		return false
	}
	blocks, whole := w.actions.optionalIn(before)
	if len(blocks) == 0 {
		return whole
	}
	variants := [][][2]string{blocks}
	for _, block := range blocks {
		variants = append(variants, [][2]string{block})
	}
	for _, missing := range variants {
		if n.column > 0 || !w.same(withoutBlocks(old, missing), withoutBlocks(text, missing)) {
			return false
		}
	}
	return whole
}

// belowHead returns a text without the comments and blank lines at its start.
func belowHead(text string) string {
	for line := range strings.Lines(text) {
		if content := strings.TrimSpace(line); content != "" && content[0] != '#' {
			break
		}
		text = text[len(line):]
	}
	return text
}

// same reports whether an API server makes the same of an object converted, and of another text.
func (w *rewriting) same(before, after string) bool {
	var values []any
	for _, text := range []string{before, after} {
		documents, err := parse(text)
		if err != nil || len(documents) != 1 {
			return false
		}
		values = append(values, valueOf(documents[0]))
	}
	c, err := w.convert("", preserved.Encode(values[0]))
	if err != nil || len(c.lost) > 0 {
		return false
	}
	wanted, err := w.defaults.Fill(w.to, c.after)
	if err != nil {
		return false
	}
	has, err := w.defaults.Fill(w.to, values[1])
	return err == nil && reflect.DeepEqual(has, wanted)
}

// lineOf returns the line of a field, or that of the nearest object around it.
func (w *rewriting) lineOf(n *node, at path) int {
	line := w.line(n.start)
	for len(at) > 0 {
		i := slices.IndexFunc(n.entries, func(e *entry) bool { return e.name == at[0] && e.key != nil })
		if n.isSequence() {
			i = slices.Index(indexes(len(n.entries)), at[0])
		}
		if i < 0 {
			return line
		}
		line, n, at = w.line(n.entries[i].mark), n.entries[i].value, at[1:]
	}
	return line
}

func indexes(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = index(i)
	}
	return all
}
