// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserve"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
)

// Preserved values must not vanish. A value of the version to which an object is
// converted becomes data there, is superseded by live data, was deleted with the
// object around it, or stays in the annotation. A value of any other version is still
// in the annotation, or becomes the same data in a conversion to its version.

// resource is the one whose preserved data is checked.
func (c *Checker) resource() preserved.Resource {
	return preserved.Resource{Name: c.ruleset.CRD, Versions: c.ruleset.Versions}
}

// preservedPart is a value that an annotation preserves for another version.
type preservedPart struct {
	// Path is that of a policy, with [*] for elements.
	Path string
	// Bytes is the size of its value, and 4 for an absent field and an order.
	Bytes int
}

// preservedParts returns what the annotations of an object preserve for the versions, and the
// size of those annotations in bytes: names and values, as the API server counts.
func preservedParts(tree any, of preserved.Resource, versions []string) (parts []preservedPart, size int) {
	const absentBytes = 4
	for _, version := range versions {
		for _, e := range of.Entries(tree, version) {
			part := preservedPart{preserved.Path(e.Place()), absentBytes}
			if e.HasValue() {
				part.Bytes = len(e.Value.JSON())
			}
			parts = append(parts, part)
		}
	}
	return parts, of.Size(tree, versions)
}

// snapshot is an object during a round trip, and its conversions to other versions,
// which are nil if they failed.
type snapshot struct {
	value
	at map[string]*value
}

func newSnapshot(x value, version string) *snapshot {
	return &snapshot{x, map[string]*value{version: &x}}
}

// atVersion converts a snapshot, once for each version.
func (c *Checker) atVersion(t testObject, s *snapshot, version string) *value {
	if known, ok := s.at[version]; ok {
		return known
	}
	s.at[version] = nil
	if x, _, err := c.convert(t, s.value, version); err == nil {
		s.at[version] = &x
	}
	return s.at[version]
}

// entriesLost records the entries that an object has lost in a round trip, and reports
// whether there are any that no rule drops. What the first conversion has preserved is
// checked by the comparison of the returned object.
func (c *Checker) entriesLost(t testObject, from, to string, converted, returned value) (lost bool) {
	start, away, back := newSnapshot(t.start, from), newSnapshot(converted, to), newSnapshot(returned, from)
	for _, version := range c.ruleset.Versions {
		for _, e := range c.resource().Entries(t.start.tree, version) {
			if c.isLost(t, e, version, to, start, away) ||
				version == from && c.resource().FateAt(e, from, t.start.tree, returned.tree) == preserved.Lost {
				lost = c.recordLost(t, e, version, from, to) || lost
			}
		}
		if version == from {
			continue
		}
		for _, e := range c.resource().Entries(converted.tree, version) {
			if c.isLost(t, e, version, from, away, back) {
				lost = c.recordLost(t, e, version, to, from) || lost
			}
		}
	}
	return lost
}

// recordLost records a lost entry, unless a rule drops its field.
func (c *Checker) recordLost(t testObject, e preserve.Entry, version, from, to string) bool {
	if c.isDropped(e, version, from, to) {
		return false
	}
	c.tally.record(Lost, from, to, Example{
		Object: t.name, Path: preserved.ExactPath(e), Preserved: version, Before: shorten(valueText(e)),
	})
	return true
}

// isLost reports whether an entry of a version is lost in the conversion from x to y,
// which is at the version to.
func (c *Checker) isLost(t testObject, e preserve.Entry, version, to string, x, y *snapshot) bool {
	of := c.resource()
	if version == to {
		return of.FateAt(e, version, x.tree, y.tree) == preserved.Lost && !c.isSuperseded(e, x.value, version)
	}
	if preserved.Contains(of.Entries(y.tree, version), e) {
		return false
	}
	before, after := c.atVersion(t, x, version), c.atVersion(t, y, version)
	if before == nil || after == nil {
		return false // the trip to that version reports it
	}
	if of.FateAt(e, version, x.tree, before.tree) == preserved.Lost {
		return !c.isSuperseded(e, x.value, version)
	}
	return !of.SameEntry(e, version, before.tree, after.tree)
}

// isSuperseded reports whether an entry is discarded because it contradicts its object, which a client has edited.
func (c *Checker) isSuperseded(e preserve.Entry, x value, version string) bool {
	if c.converter == nil {
		return false // it is another one
	}
	explained, err := c.converter.Explain(x.text, version)
	return err == nil && slices.ContainsFunc(explained.Judged, func(judged preserve.Entry) bool {
		return judged.Is(&e) && (judged.Fate == preserve.Superseded || judged.Fate == preserve.Gone)
	})
}

// valueText returns the value of an entry as JSON, empty for an absence and an order.
func valueText(e preserve.Entry) string {
	if !e.HasValue() {
		return ""
	}
	return string(e.Value.JSON())
}

// isDropped reports whether a rule drops the field of an entry.
func (c *Checker) isDropped(e preserve.Entry, version, from, to string) bool {
	path, _ := conversion.ParsePath(preserved.Path(e.Place())) // a malformed pointer has no path: no rule drops it
	drops := slices.Concat(dropsOf(c.report.Leaves, c.ruleset.Hub, from, to), dropsOf(c.report.Leaves, c.ruleset.Hub, version, to))
	return slices.ContainsFunc(drops, path.HasPrefix)
}

// withoutRestored returns a returned object without the preserved data that became data
// in the round trip: the round trip of the object without its annotations, unless the
// two differ in more than added fields.
func (c *Checker) withoutRestored(t testObject, from, to string, returned value) value {
	if !c.holdsEntries(t.start.tree) || len(c.compare(t, returned)) == 0 {
		return returned
	}
	bare := value{tree: c.resource().Without(t.start.tree)}
	bare.text = preserved.Encode(bare.tree)
	for _, version := range []string{to, from} {
		var err error
		if bare, _, err = c.convert(t, bare, version); err != nil {
			return returned
		}
	}
	for _, d := range Differences(c.resource().Without(bare.tree), c.resource().Without(returned.tree)) {
		if d.Before != "" {
			return returned
		}
	}
	return bare
}

// foreignAnnotations records annotations of the original object that no converter reads.
func (c *Checker) foreignAnnotations(t testObject) {
	of := c.resource()
	for _, version := range of.Unreadable(t.start.tree) {
		c.tally.record(Unreadable, version, "", Example{
			Object: t.name, Path: annotationPath(conversion.AnnotationName(of.Name, version)),
			Message: "the text is in no format that this version of conversion-operator knows",
		})
	}
	for _, name := range of.Foreign(t.start.tree) {
		c.tally.record(Foreign, t.version, "", Example{
			Object: t.name, Path: annotationPath(name),
			Message: "the annotation belongs to another resource, or to a version that the rules do not have",
		})
	}
}

func annotationPath(name string) string {
	return conversion.Path{"metadata", "annotations", name}.String()
}

// countFates counts what happens to the entries of the original object when a client
// rewrites it: to those of another version in a round trip, to those of its own
// version in the first round trip.
func (c *Checker) countFates(t testObject, to string, converted, returned value) {
	firstOther := c.ruleset.Versions[slices.IndexFunc(c.ruleset.Versions, func(version string) bool { return version != t.version })]
	for _, version := range []string{to, t.version} {
		at := converted
		if version == t.version {
			if at = returned; to != firstOther {
				continue
			}
		}
		for _, e := range c.resource().Entries(t.start.tree, version) {
			fate := c.resource().PredictFate(e, version, t.start.tree, at.tree, returned.tree)
			c.tally.addFate(version, preserved.Path(e.Place()), fate)
			if fate == preserved.CarriedOn {
				c.tally.record(Carried, version, "", Example{
					Object: t.name, Path: preserved.ExactPath(e), Message: preserved.Obstacle(c.ruleset, version, e, at.tree),
				})
			}
		}
	}
}

// holdsEntries reports whether an object preserves anything.
func (c *Checker) holdsEntries(tree any) bool {
	return slices.ContainsFunc(c.ruleset.Versions, func(version string) bool { return len(c.resource().Entries(tree, version)) > 0 })
}
