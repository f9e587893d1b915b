// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rewrite

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
)

// IsKustomization reports whether a file of this name lists resources and patches for kustomize.
func IsKustomization(name string) bool {
	return slices.Contains(konfig.RecognizedKustomizationFileNames(), filepath.Base(name))
}

// Patches returns the patches that a kustomization applies from files, by the cleaned path of the
// file relative to that of the kustomization.
func (r *Rewriter) Patches(text []byte) map[string]*Target {
	found := map[string]*Target{}
	kustomization := &types.Kustomization{}
	if kustomization.Unmarshal(text) != nil {
		return found // it is no manifest of the kind either
	}
	//nolint:staticcheck // Repositories still have the deprecated fields.
	for _, patch := range slices.Concat(kustomization.Patches, kustomization.PatchesJson6902) {
		if patch.Path != "" {
			found[filepath.Clean(patch.Path)] = r.target(patch.Target)
		}
	}
	//nolint:staticcheck // Repositories still have the deprecated fields.
	for _, patch := range kustomization.PatchesStrategicMerge {
		found[filepath.Clean(string(patch))] = r.target(nil)
	}
	return found
}

// Target is what a patch is applied to, besides what it names itself.
type Target struct {
	// ours is false if it is another kind. version is empty if the target does not name it.
	ours    bool
	version string
}

func (r *Rewriter) target(selector *types.Selector) *Target {
	if selector == nil {
		return &Target{ours: true}
	}
	matches := func(pattern, text string) bool {
		anchored, err := regexp.Compile("^(?:" + pattern + ")$") // like kustomize
		return pattern == "" || err == nil && anchored.MatchString(text)
	}
	return &Target{ours: matches(selector.Group, r.group) && matches(selector.Kind, r.kind), version: selector.Version}
}

// Patch rewrites a patch in a file: a strategic merge patch, or a JSON patch for the target.
func (r *Rewriter) Patch(original []byte, target *Target) *Result {
	documents, err := parse(string(original))
	if err == nil && len(documents) == 1 && len(documents[0].Content) == 1 && documents[0].Content[0].Kind == yaml.SequenceNode {
		return r.jsonPatch(string(original), documents[0].Content[0], target)
	}
	return r.rewrite(original, true)
}

// jsonPatch rewrites a JSON patch.
func (r *Rewriter) jsonPatch(text string, root *yaml.Node, target *Target) *Result {
	result := &Result{Text: []byte(text)}
	if !target.ours || target.version == r.to {
		return result
	}
	var found *Object
	for _, from := range r.versions {
		if from == r.to || target.version != "" && target.version != from {
			continue
		}
		object, after := r.jsonPatchOf(text, root, from)
		switch {
		case found == nil:
			found, result.Text = object, after
		case object.State != found.State || !bytes.Equal(after, result.Text):
			found = &Object{Line: root.Line, Name: object.Name, State: Left}
			found.leave(root.Line, "", "the target of the patch names no version, and the versions differ here: add it")
			result.Text = []byte(text)
		}
	}
	if found == nil {
		found = &Object{Line: root.Line, Name: "a JSON patch", From: target.version, State: Left}
		found.leave(root.Line, "", fmt.Sprintf("the policy has no version %s: it converts %s", target.version, strings.Join(r.versions, ", ")))
	}
	result.Objects = []Object{*found}
	return result
}

// jsonPatchOf rewrites a JSON patch for objects of a version.
func (r *Rewriter) jsonPatchOf(original string, root *yaml.Node, from string) (found *Object, text []byte) {
	found = &Object{Line: root.Line, Name: "a JSON patch", From: from, State: Left}
	leave := func(line int, err error) { found.leave(line, "", err.Error()) }
	p := &placer{lines: newLines(original)}
	tree := p.node(root, p.offset(root.Line, root.Column), 0, -1)
	if p.err != nil {
		leave(problemOf(p.err).Line, p.err)
		return found, []byte(original)
	}
	var edits []replacement
	wanted, _ := valueOf(root).([]any)
	for i, operation := range tree.entries {
		more, err := (&jsonPatch{r, from}).operation(p.lines, operation.value, &wanted[i])
		if err != nil {
			leave(p.line(operation.mark), err)
		}
		edits = append(edits, more...)
	}
	if len(found.Problems) > 0 {
		return found, []byte(original)
	}
	after := replaced(original, edits)
	if !isDocument(after, wanted) {
		leave(root.Line, errUnclear)
		return found, []byte(original)
	}
	found.State = Current
	if after != original {
		found.State = Rewritten
	}
	return found, []byte(after)
}

// errUnclear is the error for a text whose parsed result is not what it should be.
var errUnclear = errors.New("this text cannot be changed without changing its meaning: rewrite it by hand")

// operation translates an operation, and returns the changes of its text.
func (j *jsonPatch) operation(l lines, n *node, wanted *any) ([]replacement, error) {
	members, _ := (*wanted).(map[string]any)
	op, _ := members["op"].(string)
	var edits []replacement
	for _, name := range []string{"path", "from"} {
		pointer, exists := members[name].(string)
		place := n.entry(name)
		if !exists || place == nil {
			continue
		}
		value, hasValue := members["value"]
		hasValue = hasValue && name == "path" && value != nil
		if j.isCurrent(pointer) {
			continue
		}
		adds := name == "path" && slices.Contains([]string{"add", "copy", "move"}, op)
		moved, err := j.translate(pointer, value, hasValue, adds)
		if err != nil {
			return nil, err
		}
		e := &editor{lines: l, style: styleOf(l.text, n)}
		if moved.pointer != pointer {
			members[name] = moved.pointer
			edits = append(edits, replacement{place.value.start, place.value.end, e.scalar(moved.pointer, place.value)})
		}
		if hasValue && moved.c != nil {
			after, _ := preserved.Find(moved.c.after, moved.at)
			members["value"] = after
			v := n.entry("value").value
			edits = append(edits, replacement{v.start, v.end, edit(l, v, moved.c.origins, moved.c.after, moved.at, moved.from)})
		}
	}
	return edits, nil
}

// isCurrent reports whether a pointer leads to a field of the new version that the old one lacks:
// then the patch was rewritten before, although its target names no version.
func (j *jsonPatch) isCurrent(pointer string) bool {
	at := preserved.Split(pointer)
	_, now := find(j.samples[j.to], at)
	_, before := find(j.samples[j.from], at)
	return now && !before
}

// Kustomization rewrites the patches that a kustomization has in itself, and the versions of targets.
// stays reports whether the patch in a file, relative to that of the kustomization, keeps its version.
func (r *Rewriter) Kustomization(original []byte, stays func(path string) bool) *Result {
	result := &Result{Text: original}
	text := string(original)
	if !strings.Contains(text, r.kind) && !strings.Contains(text, r.group) {
		return result
	}
	documents, err := parse(text)
	if err != nil || len(documents) != 1 || len(documents[0].Content) != 1 {
		if err != nil {
			result.Problems = []Problem{problemOf(err)}
		}
		return result
	}
	root := documents[0].Content[0]
	k := &kustomizing{Rewriter: r, lines: newLines(text), result: result, values: map[*yaml.Node]string{}, stays: stays}
	for _, name := range []string{"patches", "patchesJson6902"} {
		for _, patch := range elementsOf(root, name) {
			k.patch(patch)
		}
	}
	for _, patch := range elementsOf(root, "patchesStrategicMerge") {
		if text := strings.TrimSpace(patch.Value); strings.ContainsAny(text, "\n{[") { // not the path of a file
			k.inline(patch, &Target{ours: true})
		}
	}
	if len(k.edits) > 0 {
		after := replaced(text, k.edits)
		if !isDocument(after, k.wanted(root)) {
			result.Problems = append(result.Problems, Problem{Line: root.Line, Message: errUnclear.Error()})
			result.Objects = nil
			return result
		}
		result.Text = []byte(after)
	}
	return result
}

func elementsOf(root *yaml.Node, name string) []*yaml.Node {
	if list := member(root, name); list != nil && list.Kind == yaml.SequenceNode {
		return list.Content
	}
	return nil
}

// kustomizing is the work on one kustomization.
type kustomizing struct {
	*Rewriter
	lines
	result *Result
	edits  []replacement
	// values has the new text of scalars.
	values map[*yaml.Node]string
	stays  func(path string) bool
}

// patch rewrites an element of patches: the version of its target, and the patch.
func (k *kustomizing) patch(patch *yaml.Node) {
	target := k.target(nil)
	selector := unaliased(member(patch, "target"))
	if selector != nil {
		read := &types.Selector{}
		read.Group, read.Version, read.Kind = textIn(selector, "group"), textIn(selector, "version"), textIn(selector, "kind")
		target = k.target(read)
	}
	if !target.ours {
		return
	}
	targeted := len(k.result.Objects)
	stays := false
	if inline := unaliased(member(patch, "patch")); inline != nil {
		stays = k.inline(inline, target)
	} else if path := textIn(patch, "path"); path != "" && k.stays != nil {
		stays = k.stays(path)
	}
	named := selector != nil && (textIn(selector, "kind") == k.kind || textIn(selector, "group") == k.group)
	if named && target.version != k.to && slices.Contains(k.versions, target.version) {
		found := k.selector(unaliased(member(selector, "version")), target.version, stays)
		k.result.Objects = slices.Insert(k.result.Objects, targeted, found...)
	}
}

// selector rewrites the version of a target, unless its patch stays: at the other version, the
// patch would be applied to fields that it does not mean.
func (k *kustomizing) selector(version *yaml.Node, from string, stays bool) []Object {
	if _, replaced := k.values[version]; version == nil || replaced {
		return nil // an alias stands for it, too
	}
	found := Object{Line: version.Line, Name: "the target of a patch", From: from, State: Rewritten}
	if stays {
		found.State = Left
		found.leave(version.Line, "", "its patch stays, too")
	} else {
		k.replace(version, k.to)
	}
	return []Object{found}
}

// inline rewrites a patch in a scalar, and reports whether it stays.
func (k *kustomizing) inline(scalar *yaml.Node, target *Target) (stays bool) {
	if scalar.Kind != yaml.ScalarNode {
		return false
	}
	if _, replaced := k.values[scalar]; replaced {
		return false // an alias stands for it, too
	}
	inner := k.Patch([]byte(scalar.Value), target)
	shift := scalar.Line
	if scalar.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
		shift--
	}
	for _, object := range inner.Objects {
		object.Line += shift
		for _, problems := range [][]Problem{object.Problems, object.Notes} {
			for i := range problems {
				problems[i].Line += shift
			}
		}
		k.result.Objects = append(k.result.Objects, object)
		stays = stays || object.State == Left
	}
	for _, problem := range inner.Problems {
		problem.Line += shift
		k.result.Problems = append(k.result.Problems, problem)
	}
	if inner.Changed() {
		k.replace(scalar, string(inner.Text))
	}
	return stays || len(inner.Problems) > 0
}

// replace replaces a scalar. Lines of a block keep their indentation, and its end.
func (k *kustomizing) replace(scalar *yaml.Node, text string) {
	p := &placer{lines: k.lines}
	start := p.offset(scalar.Line, scalar.Column)
	e := &editor{lines: k.lines, style: style{newline: newlineOf(k.text), step: 2}}
	if !strings.HasSuffix(scalar.Value, "\n") {
		text = strings.TrimSuffix(text, "\n")
	}
	k.values[scalar] = text
	if scalar.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
		n := p.node(scalar, start, start, p.indent(start))
		k.edits = append(k.edits, replacement{n.body, n.end, e.line(text, n)})
		return
	}
	content := p.end(start)
	first := content
	for p.content(first) == "" && p.end(first) < len(p.text) {
		first = p.end(first)
	}
	margin := p.indent(first)
	end := p.behindIndented(start, margin-1, strings.Contains(p.text[start:content], "+"))
	if scalar.Style&yaml.FoldedStyle != 0 {
		k.edits = append(k.edits, replacement{p.behindProperties(start), end, e.line(text, nil) + p.breakBefore(end)})
		return
	}
	lines := strings.ReplaceAll(e.shifted(strings.TrimSuffix(text, "\n"), margin), "\n", e.newline)
	k.edits = append(k.edits, replacement{content, end, lines + p.breakBefore(end)})
}

// line returns a text in one line, with the quotes of the scalar that it replaces.
func (e *editor) line(text string, old *node) string {
	written := e.scalar(text, old)
	if strings.Contains(written, "\n") {
		return string(preserved.Encode(text))
	}
	return written
}

// wanted returns the value of the kustomization with all new texts.
func (k *kustomizing) wanted(root *yaml.Node) any {
	for scalar, text := range k.values {
		scalar.Value = text
	}
	return valueOf(root)
}
