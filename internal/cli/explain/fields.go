// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bytes"
	"slices"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserve"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
)

// step is a finished conversion between a spoke and the hub.
type step struct {
	*Explainer
	from, to string
	// fromSpoke is true on the way to the hub.
	fromSpoke                 bool
	before, after             any
	leavesBefore, leavesAfter leaves
	// restorable are the entries for the version that the object is converted to.
	restorable []entry
	// kept are the entries after the conversion.
	kept []conversion.Kept
}

// fields returns each field of the converted object with its origin.
func (s *step) fields() []Field {
	fields := []Field{}
	for _, found := range s.leavesAfter.fieldsOf(s.after) {
		if found.leaf == nil {
			found.leaf = s.leavesAfter.movedAs(found.path) // nothing is in it
		}
		fields = append(fields, s.explain(Field{
			Path: found.path.String(), Value: preserved.Encode(found.value), Owner: compile.OwnerExact, How: Copied,
		}, found))
	}
	return fields
}

// absent returns the fields that the version has, but not the object.
func (s *step) absent() []Field {
	present := s.leavesAfter.fieldsOf(s.after)
	var fields []Field
	for i := range s.leavesAfter {
		leaf := &s.leavesAfter[i]
		if slices.ContainsFunc(present, func(found fieldValue) bool { return found.leaf == leaf }) {
			continue
		}
		field := s.explain(Field{Path: leaf.Path, Owner: leaf.Owner}, fieldValue{leaf.path, nil, leaf})
		field.How = Absent
		fields = append(fields, field)
	}
	return fields
}

// explain adds the origin of a field.
func (s *step) explain(field Field, found fieldValue) Field {
	restored := s.isRestored(found.path, field.Value)
	if found.leaf != nil {
		field.Owner, field.Rule = found.leaf.Owner, found.leaf.Rule
	}
	rule, hasRule := s.rules[field.Rule]
	if hasRule {
		field.RuleText = rule.String()
	}
	switch {
	case restored:
		field.How = Restored
	case hasRule && rule.kind == "default":
		field.How = Filled
	case hasRule && (field.Owner == compile.OwnerExact || rule.kind == "cel"):
		field.How = Computed
		field.Sources = s.sourcesOf(rule, found)
		hasValue := func(source Source) bool { return source.Value != nil }
		if rule.kind == "cel" && !slices.ContainsFunc(field.Sources, hasValue) {
			field.How, field.Sources = Filled, nil
		}
	case field.Owner == compile.OwnerExact:
		field.Sources = []Source{s.source(found.path)}
	default:
		// Only the annotation can have had it.
		field.How = Restored
	}
	return field
}

// sourcesOf returns the fields from which a rule made a field. Below the field of a rule
// that moves a subtree, fields have the same names.
func (s *step) sourcesOf(rule rule, found fieldValue) []Source {
	others := rule.hub
	if s.fromSpoke {
		others = rule.spoke
	}
	root := parse(found.leaf.Root)
	var sources []Source
	for _, other := range others {
		source := found.path.substitute(parse(string(other)), root)
		if rule.kind == "move" && len(found.path) > len(root) {
			source = append(source, found.path[len(root):]...)
		}
		sources = append(sources, s.source(source))
	}
	return sources
}

func (s *step) source(p path) Source {
	source := Source{Path: p.String()}
	if value, ok := preserved.Find(s.before, p); ok {
		source.Value = preserved.Encode(value)
	}
	return source
}

// isRestored reports whether a value at a path is an entry, or a part of one.
func (s *step) isRestored(p path, value []byte) bool {
	return slices.ContainsFunc(s.restorable, func(e entry) bool {
		if e.Kind == preserve.Absent || !p.matches(e.path) {
			return false
		}
		inside, ok := preserved.Find(e.value, p[len(e.path):])
		return ok && bytes.Equal(preserved.Encode(inside), value)
	})
}

// dropped returns the values of the object that are lost.
func (s *step) dropped() []Preserved {
	dropped := []Preserved{}
	for _, found := range s.leavesBefore.fieldsOf(s.before) {
		if found.leaf == nil || found.leaf.Owner != compile.OwnerDropped {
			continue
		}
		dropped = append(dropped, Preserved{
			Version: s.from, Path: found.path.String(), Value: preserved.Encode(found.value), Rule: found.leaf.Rule, Why: "a rule drops it",
		})
	}
	for _, path := range s.overflow(s.after, s.from) {
		dropped = append(dropped, Preserved{
			Version: s.from, Path: path, Why: "there was no room for it in the annotation, and overflow is " + string(v1alpha1.OverflowDrop),
		})
	}
	return dropped
}
