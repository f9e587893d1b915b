// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/preserved"
)

// Preserved values must not vanish. A value of the version to which an object is
// converted becomes data there, is superseded by live data, was deleted with the
// object around it, or stays in the annotation. A value of any other version is still
// there, or has become the same in a conversion to its version.

// resource is the one whose preserved data is checked.
func (c *Checker) resource() preserved.Resource {
	return preserved.Resource{Name: c.plan.CRD, Versions: c.plan.Versions}
}

// station is an object at a version on its way, and its conversions to other versions,
// which are nil if they fail.
type station struct {
	value
	at map[string]*value
}

func newStation(x value, version string) *station {
	return &station{x, map[string]*value{version: &x}}
}

// atVersion converts the object of a station, once for each version.
func (c *Checker) atVersion(t traveller, s *station, version string) *value {
	if known, there := s.at[version]; there {
		return known
	}
	s.at[version] = nil
	if x, _, err := c.leg(t, s.value, version); err == nil {
		s.at[version] = &x
	}
	return s.at[version]
}

// vanished finds the entries that an object has lost in a round trip, and reports
// whether there are any that no rule drops. What was preserved on the way there is
// checked by the comparison of the returned object.
func (c *Checker) vanished(t traveller, from, to string, there, home value) (lost bool) {
	start, away, back := newStation(t.start, from), newStation(there, to), newStation(home, from)
	for _, version := range c.plan.Versions {
		for _, e := range c.resource().Entries(t.start.tree, version) {
			if c.isLost(t, e, version, to, start, away) ||
				version == from && c.resource().Arrived(e, from, t.start.tree, home.tree) == preserved.Lost {
				lost = c.lose(t, e, version, from, to) || lost
			}
		}
		if version == from {
			continue
		}
		for _, e := range c.resource().Entries(there.tree, version) {
			if c.isLost(t, e, version, from, away, back) {
				lost = c.lose(t, e, version, to, from) || lost
			}
		}
	}
	return lost
}

// lose records a lost entry, unless a rule drops its field.
func (c *Checker) lose(t traveller, e conversion.Entry, version, from, to string) bool {
	if c.isDropped(e, version, from, to) {
		return false
	}
	c.tally.find(Lost, from, to, Example{
		Object: t.name, Path: preserved.Place(e.Pointer), Preserved: version, Before: shown(string(e.Value)),
	})
	return true
}

// isLost reports whether an entry of a version is lost in a conversion from x to y,
// which is at the version to.
func (c *Checker) isLost(t traveller, e conversion.Entry, version, to string, x, y *station) bool {
	of := c.resource()
	if version == to {
		return of.Arrived(e, version, x.tree, y.tree) == preserved.Lost
	}
	if preserved.Holds(of.Entries(y.tree, version), e) {
		return false
	}
	before, after := c.atVersion(t, x, version), c.atVersion(t, y, version)
	if before == nil || after == nil {
		return false // the trip there reports it
	}
	return of.Arrived(e, version, x.tree, before.tree) == preserved.Lost || !of.Alike(e, version, before.tree, after.tree)
}

// isDropped reports whether a rule drops the field of an entry.
func (c *Checker) isDropped(e conversion.Entry, version, from, to string) bool {
	at := segment.FindAllString(preserved.Path(e.Pointer), -1)
	for _, path := range append(dropsOf(c.report.Leaves, c.plan.Hub, from, to), dropsOf(c.report.Leaves, c.plan.Hub, version, to)...) {
		if drop := segment.FindAllString(path, -1); len(drop) <= len(at) && strings.Join(drop, "") == strings.Join(at[:len(drop)], "") {
			return true
		}
	}
	return false
}

// withoutGains returns the converted object without the data that was preserved before
// and has a place now: the conversion of the object without its annotations, if the
// object only adds to that.
func (c *Checker) withoutGains(t traveller, from, to string, home value) value {
	if !c.holdsEntries(t.start.tree) || len(c.compare(t, home)) == 0 {
		return home
	}
	bare := value{tree: c.resource().Without(t.start.tree)}
	bare.text = encode(bare.tree)
	for _, at := range []string{to, from} {
		var err error
		if bare, _, err = c.leg(t, bare, at); err != nil {
			return home
		}
	}
	for _, d := range differences(c.resource().Without(bare.tree), c.resource().Without(home.tree)) {
		if d.Before != "" {
			return home
		}
	}
	return bare
}

// foreignAnnotations records annotations of the original object that no converter reads.
func (c *Checker) foreignAnnotations(t traveller) {
	of := c.resource()
	for _, version := range of.Unreadable(t.start.tree) {
		c.tally.find(Unreadable, version, "", Example{
			Object: t.name, Path: annotation(conversion.AnnotationName(of.Name, version)),
			Message: "the text is in no format that this version of conversion-operator knows",
		})
	}
	for _, name := range of.Foreign(t.start.tree) {
		c.tally.find(Foreign, t.own, "", Example{
			Object: t.name, Path: annotation(name),
			Message: "the annotation belongs to another resource, or to a version that the rules do not have",
		})
	}
}

func annotation(name string) string { return ".metadata.annotations" + member(name) }

// foretell counts what happens to the entries of the original object when a client
// rewrites it: to those of another version in a round trip, to those of its own
// version in the first conversion.
func (c *Checker) foretell(t traveller, to string, there, home value) {
	for _, version := range []string{to, t.own} {
		at := there
		if version == t.own {
			if at = home; to != c.firstOther(t.own) {
				continue
			}
		}
		for _, e := range c.resource().Entries(t.start.tree, version) {
			fate := c.resource().Foretold(e, version, t.start.tree, at.tree, home.tree)
			c.tally.preserve(version, preserved.Path(e.Pointer), fate)
			if fate == preserved.CarriedOn {
				c.tally.find(Carried, version, "", Example{
					Object: t.name, Path: preserved.Place(e.Pointer), Message: preserved.Obstacle(c.plan, version, e, at.tree),
				})
			}
		}
	}
}

// firstOther returns the first version that is not this one.
func (c *Checker) firstOther(version string) string {
	for _, other := range c.plan.Versions {
		if other != version {
			return other
		}
	}
	return ""
}

// holdsEntries reports whether an object preserves anything.
func (c *Checker) holdsEntries(tree any) bool {
	for _, version := range c.plan.Versions {
		if len(c.resource().Entries(tree, version)) > 0 {
			return true
		}
	}
	return false
}
