// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

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
// that moves or pairs values, fields have the same names.
func (s *step) sourcesOf(rule rule, found fieldValue) []Source {
	others := rule.hub
	if s.fromSpoke {
		others = rule.spoke
	}
	root := parse(found.leaf.Root)
	var sources []Source
	for _, other := range others {
		source := found.path.substitute(parse(string(other)).selected(s.before), root)
		if rule.pairsInside() && len(found.path) > len(root) {
			source = append(source, found.path[len(root):]...)
		}
		aligned, reshaped := s.aligned(source, found.path)
		one := s.source(aligned)
		one.Reshaped = reshaped
		sources = append(sources, one)
	}
	return sources
}

// aligned returns the path of a source where a list of one version is a map or one value in the other: with the name of an
// element instead of its index, or the reverse, which reshaped reports. own is the path in the converted object.
func (s *step) aligned(source, own path) (aligned path, reshaped bool) {
	aligned = path{}
	for _, segment := range source {
		held, _ := preserved.Find(s.before, aligned)
		_, isIndex := indexOf(segment)
		switch held := held.(type) {
		case []any:
			if !isIndex && segment != conversion.Each {
				index := slices.IndexFunc(held, func(element any) bool { return slices.Contains(s.namesOf(element), segment) })
				aligned = append(aligned, fmt.Sprintf("[%d]", max(index, 0)))
				if index < 0 {
					break // it is a field of the first element
				}
				reshaped = true
				continue
			}
		case map[string]any:
			if at := slices.Index(own, segment); isIndex && at >= 0 {
				element, _ := preserved.Find(s.after, own[:at+1])
				names := s.namesOf(element)
				if i := slices.IndexFunc(names, func(name string) bool { return held[name] != nil }); i >= 0 {
					segment, reshaped = names[i], true
				} else if held[segment] == nil {
					continue // it is one value
				}
			}
		}
		aligned = append(aligned, segment)
	}
	return aligned, reshaped
}

// namesOf returns the values of the fields of an element that may be its name in a map.
func (s *step) namesOf(element any) (names []string) {
	members, _ := element.(map[string]any)
	for _, key := range s.keys {
		if value := members[key]; value != nil {
			names = append(names, fmt.Sprint(value))
		}
	}
	return names
}

// indexOf returns the index of an element that a segment names.
func indexOf(segment string) (index int, is bool) {
	digits, isOpen := strings.CutPrefix(segment, "[")
	index, err := strconv.Atoi(strings.TrimSuffix(digits, "]"))
	return index, isOpen && err == nil
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
