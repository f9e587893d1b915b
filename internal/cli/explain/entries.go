// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
)

// entry of an annotation with preserved data.
type entry struct {
	conversion.Entry
	// path has [*] for each element; exactPath has its index or keys.
	path      path
	exactPath string
	value     any
	// absent means that the field was absent.
	absent bool
}

// entries returns what an object preserves of a version, without values that are not JSON.
func (e *Explainer) entries(object any, version string) []entry {
	var entries []entry
	found, _ := conversion.Entries(preserved.Annotations(object), e.result.Ruleset.CRD, version)
	for _, one := range found {
		entry := entry{
			Entry: one, path: parse(preserved.Path(one.Pointer)), exactPath: preserved.ExactPath(one.Pointer), absent: one.Kind == conversion.EntryAbsence,
		}
		if !entry.absent {
			var err error
			if entry.value, err = preserved.Decode(one.Value); err != nil {
				continue
			}
		}
		entries = append(entries, entry)
	}
	return entries
}

// overflow returns the paths of values that an object has lost, because the annotation
// had no room for them.
func (e *Explainer) overflow(object any, version string) []string {
	var paths []string
	for _, pointer := range conversion.Dropped(preserved.Annotations(object), e.result.Ruleset.CRD, version) {
		paths = append(paths, preserved.Path(pointer))
	}
	return paths
}

// preservedValues returns what is preserved of the version that the object was converted from.
func (s *step) preservedValues() []Preserved {
	values := []Preserved{}
	before := s.entries(s.before, s.from)
	for _, e := range s.entries(s.after, s.from) {
		one := e.describe(s.from)
		if slices.ContainsFunc(before, func(other entry) bool { return other.Pointer == e.Pointer && other.Kind == e.Kind }) {
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
	one := Preserved{Version: version, Path: e.exactPath}
	if !e.absent {
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
	if leaf != nil {
		rule = leaf.Rule
	}
	switch {
	case e.Kind == conversion.EntryExcluded:
		return "a rule excludes the element, or what it would convert to", s.excluding(e.path)
	case e.absent && s.rules[rule].kind == "cel":
		return "the field was absent: an expression would compute a value on the way back", rule
	case e.absent:
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

// excluding returns the rule of the step's spoke that excludes elements of the version that the object was
// converted from, empty if it is for those of the other version.
func (s *step) excluding(elements path) string {
	spoke := s.to
	if s.fromSpoke {
		spoke = s.from
	}
	return s.exclusions[exclusion{spoke, !s.fromSpoke, v1alpha1.Path(elements.String())}]
}
