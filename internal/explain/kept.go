// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/preserved"
)

// entry of an annotation in which values are preserved.
type entry struct {
	conversion.Entry
	// path has [*] for each element, and shown is as the annotation names it.
	path  path
	shown string
	value any
	// absent tells that nothing was there.
	absent bool
}

// keptIn are the values that an object preserves for a version, by their places.
func (e *Explainer) keptIn(tree any, version string) []entry {
	var entries []entry
	found, _ := conversion.Entries(preserved.Annotations(tree), e.result.Ruleset.CRD, version)
	for _, each := range found {
		one := entry{
			Entry: each, path: parse(preserved.Path(each.Pointer)), shown: preserved.Place(each.Pointer), absent: each.Kind == conversion.EntryAbsence,
		}
		if !one.absent {
			var err error
			if one.value, err = decode(each.Value); err != nil {
				continue
			}
		}
		entries = append(entries, one)
	}
	return entries
}

// overflowIn are the places of values that an object has lost for want of room.
func (e *Explainer) overflowIn(tree any, version string) []string {
	var paths []string
	for _, pointer := range conversion.Dropped(preserved.Annotations(tree), e.result.Ruleset.CRD, version) {
		paths = append(paths, preserved.Path(pointer))
	}
	return paths
}

// kept says of all that is preserved of the version that the object left why.
func (h *step) kept() []Kept {
	kept := []Kept{}
	before := h.keptIn(h.before, h.from)
	for _, e := range h.keptIn(h.after, h.from) {
		one := e.kept(h.from)
		if one.Why, one.Rule = h.why(e); e.among(before) {
			one.Why, one.Rule = h.obstacle(e, h.from, h.before), ""
		}
		kept = append(kept, one)
	}
	return kept
}

func (e entry) among(others []entry) bool {
	return slices.ContainsFunc(others, func(other entry) bool { return other.Pointer == e.Pointer && other.Kind == e.Kind })
}

// carried says of all that stays in the annotation of the version that the object
// has reached why it is no data there.
func (h *step) carried() []Kept {
	var carried []Kept
	for _, e := range h.keptIn(h.after, h.to) {
		one := e.kept(h.to)
		one.Why = h.obstacle(e, h.to, h.after)
		carried = append(carried, one)
	}
	return carried
}

// obstacle says why an entry is no data in an object of its version.
func (h *step) obstacle(e entry, version string, object any) string {
	return preserved.Obstacle(h.result.Ruleset, version, e.Entry, object)
}

func (e entry) kept(version string) Kept {
	one := Kept{Version: version, Path: e.shown, Value: encode(e.value)}
	if e.absent {
		one.Value = nil
	}
	return one
}

// why says why a value is preserved, and by which rule.
func (h *step) why(entry entry) (text, rule string) {
	leaf := h.leavesBefore.about(entry.path)
	if entry.absent {
		return "the field was absent: " + h.from + " would get a default on the way back", ruleAt(leaf)
	}
	if leaf != nil && leaf.Rule != "" {
		return h.rules[leaf.Rule].odd, leaf.Rule
	}
	switch {
	case entry.value == nil && h.leavesAfter.has(entry.path):
		return h.to + " allows no null there", ""
	case leaf != nil && leaf.Owner == compile.OwnerPreserved && h.leavesAfter.has(entry.path):
		return h.to + " has another field of that name", ""
	case leaf == nil || leaf.Owner == compile.OwnerPreserved:
		return h.to + " has no such field", ""
	}
	return h.to + " cannot store the value unchanged", ""
}

func ruleAt(leaf *leaf) string {
	if leaf == nil {
		return ""
	}
	return leaf.Rule
}
