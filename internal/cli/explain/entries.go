// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserve"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
)

// entry of an annotation with preserved data.
type entry struct {
	preserve.Entry
	// path has [*] for each element.
	path  path
	value any
}

// entries returns what an object preserves of a version.
func (e *Explainer) entries(object any, version string) []entry {
	found, _ := conversion.Entries(preserved.Annotations(object), e.result.Ruleset.CRD, version)
	var entries []entry
	for _, one := range found {
		entries = append(entries, newEntry(one))
	}
	return entries
}

func newEntry(of preserve.Entry) entry {
	e := entry{Entry: of, path: parse(preserved.Path(of.Place()))}
	switch {
	case of.HasValue():
		e.value, _ = preserved.Decode(of.Value.JSON()) // it was read from JSON
	case of.Kind == preserve.Order:
		var elements []any
		for _, name := range of.Order {
			elements = append(elements, shortName(name))
		}
		e.value = elements
	}
	return e
}

// shortName returns the name of an element without its key, if it has one.
func shortName(name string) any {
	if _, text, found := strings.Cut(name, "="); found {
		if key, err := preserved.Decode([]byte(text)); err == nil {
			return key
		}
	}
	return name
}

// overflow returns the paths of values that an object has lost, because the annotation
// had no room for them.
func (e *Explainer) overflow(object any, version string) []string {
	var paths []string
	for _, pointer := range conversion.Dropped(preserved.Annotations(object), e.result.Ruleset.CRD, version) {
		at, _ := preserve.ParsePointer(pointer)
		paths = append(paths, preserved.Path(at))
	}
	return paths
}

// preservedValues returns what is preserved of the version that the object was converted from.
func (s *step) preservedValues() []Preserved {
	values := []Preserved{}
	before := s.entries(s.before, s.from)
	for _, kept := range s.kept {
		if kept.Version != s.from {
			continue
		}
		e := newEntry(kept.Entry)
		one := e.describe(s.from)
		if slices.ContainsFunc(before, func(other entry) bool { return other.Is(&e.Entry) }) {
			one.Why = s.obstacle(e, s.from, s.before)
		} else {
			one.Why, one.Rule = s.why(e)
		}
		values = append(values, one)
	}
	return values
}

// carried returns what stays in the annotation of the version that the object was converted to.
func (s *step) carried() []Preserved {
	var carried []Preserved
	for _, e := range s.entries(s.after, s.to) {
		one := e.describe(s.to)
		one.Why = s.obstacle(e, s.to, s.after)
		carried = append(carried, one)
	}
	return carried
}

// obstacle says why an entry stays in the annotation of an object of its version.
func (s *step) obstacle(e entry, version string, object any) string {
	return preserved.Obstacle(s.result.Ruleset, version, e.Entry, object)
}

func (e entry) describe(version string) Preserved {
	one := Preserved{Version: version, Path: preserved.ExactPath(e.Entry)}
	if e.Kind != preserve.Absent {
		one.Value = preserved.Encode(e.value)
	}
	return one
}

// why says why a value is preserved, and by which rule.
func (s *step) why(e entry) (text, rule string) {
	leaf := s.leavesBefore.containing(e.path)
	if leaf == nil {
		leaf = s.leavesBefore.ruledAs(e.path)
	}
	if leaf == nil && e.Kind != preserve.Value {
		leaf = s.leavesBefore.ruledIn(e.path)
	}
	if leaf != nil {
		rule = leaf.Rule
	}
	switch {
	case e.Kind == preserve.Insert && s.rules[rule].kind == "each":
		return "the other version cannot have the element", rule
	case e.Kind == preserve.Insert && leaf != nil && slices.ContainsFunc(parse(leaf.Path), conversion.IsSelector):
		return s.to + " has only the fields that rules select", ""
	case e.Kind == preserve.Absent && s.rules[rule].kind == "cel":
		return "the field was absent: an expression would compute a value on the way back", rule
	case e.Kind == preserve.Absent:
		return "the field was absent: " + s.from + " would get a default on the way back", rule
	case rule != "":
		return s.rules[rule].whyPreserved, rule
	case e.value == nil && s.leavesAfter.has(e.path):
		return s.to + " allows no null there", ""
	case leaf != nil && leaf.Owner == compile.OwnerPreserved && s.leavesAfter.has(e.path):
		return s.to + " has another field of that name", ""
	case leaf == nil || leaf.Owner == compile.OwnerPreserved:
		return s.to + " has no such field", ""
	}
	return s.to + " cannot store the value unchanged", ""
}
