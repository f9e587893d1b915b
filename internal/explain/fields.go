// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bytes"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion/compile"
)

// step is a conversion that was done, and is to be explained.
type step struct {
	*Explainer
	from, to string
	// fromSpoke tells the way to the hub from the way back.
	fromSpoke                 bool
	before, after             any
	leavesBefore, leavesAfter leaves
	// restorable is what was preserved for the version that the object goes to.
	restorable []entry
}

// fields says of each field of the converted object where it comes from.
func (h *step) fields() []Field {
	fields := []Field{}
	for _, found := range h.leavesAfter.fieldsOf(h.after) {
		field := Field{Path: found.path.String(), Value: encode(found.value), Owner: compile.OwnerExact, How: Copied}
		h.explain(&field, found)
		fields = append(fields, field)
	}
	return fields
}

// absent are the fields that the version has, and the object has not.
func (h *step) absent() []Field {
	there := h.leavesAfter.fieldsOf(h.after)
	var fields []Field
	for i := range h.leavesAfter {
		leaf := &h.leavesAfter[i]
		taken := false
		for _, found := range there {
			taken = taken || found.leaf == leaf
		}
		if taken {
			continue
		}
		field := Field{Path: leaf.Path, Owner: leaf.Owner}
		h.explain(&field, found{leaf.path, nil, leaf})
		field.How = Absent
		fields = append(fields, field)
	}
	return fields
}

func (h *step) explain(field *Field, found found) {
	restored := h.restored(found.path, field.Value)
	if found.leaf != nil {
		field.Owner, field.Rule = found.leaf.Owner, found.leaf.Rule
	}
	rule, ruled := h.rules[field.Rule]
	if ruled {
		field.RuleText = rule.String()
	}
	switch {
	case restored:
		field.How = Restored
	case ruled && rule.kind == "default":
		field.How = Filled
	case ruled && field.Owner == compile.OwnerExact:
		field.How = Computed
		field.Sources = h.sourcesOf(rule, found)
	case field.Owner == compile.OwnerExact:
		field.Sources = []Source{h.source(found.path)}
	default:
		// Only the annotation can have had it.
		field.How = Restored
	}
}

// sourcesOf are the fields that a rule made a field of. Below the field of a rule
// that moves a subtree, fields have the same names.
func (h *step) sourcesOf(rule rule, found found) []Source {
	others := rule.hub
	if h.fromSpoke {
		others = rule.spoke
	}
	root := parse(found.leaf.Root)
	var sources []Source
	for _, other := range others {
		at := found.path.at(parse(string(other)), root)
		if rule.kind == "move" && len(found.path) > len(root) {
			at = append(at, found.path[len(root):]...)
		}
		sources = append(sources, h.source(at))
	}
	return sources
}

func (h *step) source(at path) Source {
	source := Source{Path: at.String()}
	if value, there := at.in(h.before); there {
		source.Value = encode(value)
	}
	return source
}

// restored reports whether a value is one that was preserved.
func (h *step) restored(at path, value []byte) bool {
	for _, entry := range h.restorable {
		if !entry.absent && at.begins(entry.path) && len(at) == len(entry.path) && bytes.Equal(encode(entry.value), value) {
			return true
		}
		if inside, ok := at.inside(entry.path); ok && !entry.absent {
			if kept, there := inside.in(entry.value); there && bytes.Equal(encode(kept), value) {
				return true
			}
		}
	}
	return false
}

// inside returns the rest of a path after its prefix.
func (p path) inside(of path) (path, bool) {
	if len(p) <= len(of) || !p.begins(of) {
		return nil, false
	}
	return p[len(of):], true
}

// dropped returns the values of the object that are lost.
func (h *step) dropped() []Kept {
	dropped := []Kept{}
	for _, found := range h.leavesBefore.fieldsOf(h.before) {
		if found.leaf == nil || found.leaf.Owner != compile.OwnerDropped {
			continue
		}
		dropped = append(dropped, Kept{
			Version: h.from, Path: found.path.String(), Value: encode(found.value), Rule: found.leaf.Rule, Why: "a rule drops it",
		})
	}
	for _, name := range h.overflowIn(h.after, h.from) {
		dropped = append(dropped, Kept{
			Version: h.from, Path: name, Why: "there was no room for it in the annotation, and overflow is " + string(v1alpha1.OverflowDrop),
		})
	}
	return dropped
}
