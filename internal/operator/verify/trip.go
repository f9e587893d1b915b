// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
)

// testObject is an object to convert between all versions.
type testObject struct {
	name string
	// version is the version in which it was given.
	version string
	// start is the object where a round trip starts.
	start value
	// validate reports whether to validate the object against the schemas of other versions.
	validate bool
	canary   bool
}

// roundTrips makes a round trip between every two versions. Trips from another version
// than the given one start with the conversion to that version.
func (c *Checker) roundTrips(ctx context.Context, t testObject) {
	for _, from := range c.ruleset.Versions {
		at := t
		if from != t.version {
			var err error
			if at.start, _, err = c.convert(t, t.start, from); err != nil {
				continue // the trip from the given version reports it
			}
		}
		for _, to := range c.ruleset.Versions {
			if to != from {
				c.roundTrip(ctx, at, from, to)
			}
		}
	}
}

// roundTrip converts an object to a version and back, and counts the result.
func (c *Checker) roundTrip(ctx context.Context, t testObject, from, to string) {
	direction := c.directions[[2]string{from, to}]
	if t.canary {
		direction = &Direction{} // a canary object is not counted
	}
	direction.Objects++
	c.see(t, from, t.start.tree, false)
	converted, pruned, err := c.convert(t, t.start, to)
	if err != nil {
		direction.Failed++
		c.tally.record(NotConverted, from, to, Example{Object: t.name, Message: err.Error()})
		return
	}
	c.see(t, from, t.start.tree, from == t.version)
	c.see(t, to, converted.tree, false)
	parts, size := c.countPreservedFields(t, from, to, converted)
	direction.PreservedBytes += int64(size)
	direction.MaxPreservedBytes = max(direction.MaxPreservedBytes, size)
	if c.invalid(ctx, t, from, to, converted) {
		direction.Invalid++
	}
	returned, _, err := c.convert(t, converted, from)
	if err != nil {
		direction.Failed++
		c.tally.record(NotConverted, from, to, Example{Object: t.name, Message: "on the way back: " + err.Error()})
		return
	}
	if from == t.version && !t.canary {
		c.countFates(t, to, converted, returned)
	}
	entriesLost := c.entriesLost(t, from, to, converted, returned)
	c.tryEdits(ctx, t, from, to, converted, returned)
	returned = c.withoutRestored(t, from, to, returned)
	switch {
	case c.lost(t, from, to, returned, pruned), entriesLost:
		direction.Lost++
	case c.dropped(t, from, to, returned):
		direction.Dropped++
	case parts > 0:
		direction.Preserved++
	default:
		direction.Exact++
	}
}

// convert converts an object, and prunes the result by the schema of its version, like an
// API server. It returns what it has pruned. It does not prune canary objects.
func (c *Checker) convert(t testObject, x value, to string) (value, []Difference, error) {
	dst := make([]byte, 0, len(x.text)+len(x.text)/2)
	start := c.now()
	text, err := c.convertBy(dst, x.text, to)
	c.elapsed += c.now().Sub(start)
	c.report.Timing.Conversions++
	switch {
	case err != nil:
		return value{}, nil, err
	case t.canary:
		tree, err := preserved.Decode(text)
		return value{text, tree}, nil, err
	}
	return c.versions[to].accept(text)
}

// countPreservedFields counts what annotations preserve while an object is at another version. In a
// conversion through the hub, the hub may preserve values, too.
func (c *Checker) countPreservedFields(t testObject, from, to string, converted value) (parts, size int) {
	origins := []string{from}
	if from != c.ruleset.Hub && to != c.ruleset.Hub {
		origins = append(origins, c.ruleset.Hub)
	}
	kept, size := preservedParts(converted.tree, c.resource(), origins)
	if !t.canary {
		c.tally.addPreservedFields(from, to, kept)
	}
	return len(kept), size
}

// invalid validates a converted object against the target's schema. The result at the
// target does not depend on the starting version, so it is checked once.
func (c *Checker) invalid(ctx context.Context, t testObject, from, to string, converted value) bool {
	if !t.validate || from != t.version {
		return false
	}
	errs := c.versions[to].validate(ctx, converted)
	for _, err := range errs {
		c.tally.record(InvalidAtTarget, from, to, Example{Object: t.name, Path: pathOfField(err.Field), Message: err.ErrorBody()})
	}
	return len(errs) > 0
}

// lost records what was pruned at the target, and what came back changed, except what
// a rule drops. It reports whether there is any.
func (c *Checker) lost(t testObject, from, to string, returned value, pruned []Difference) bool {
	for _, d := range pruned {
		c.tally.record(Pruned, from, to, Example{Object: t.name, Path: d.Path, Before: shorten(d.Before), Fields: len(pruned)})
	}
	if len(pruned) > 0 {
		return true
	}
	found := c.compare(t, returned)
	if len(found) == 0 || c.onlyDropped(t, from, to, returned) {
		return false
	}
	c.tally.record(Lost, from, to, exampleOf(t.name, found))
	return true
}

// dropped records what a rule drops, and reports whether there is any.
func (c *Checker) dropped(t testObject, from, to string, returned value) bool {
	found := c.compare(t, returned)
	if len(found) > 0 && !t.canary {
		c.tally.record(Dropped, from, to, exampleOf(t.name, found))
	}
	return len(found) > 0
}

// compare ignores the annotations with preserved data: they are not data of the
// object's version, and an old one may correctly disappear.
func (c *Checker) compare(t testObject, returned value) []Difference {
	return Differences(c.resource().Without(t.start.tree), c.resource().Without(returned.tree))
}

func (c *Checker) onlyDropped(t testObject, from, to string, returned value) bool {
	drops := dropsOf(c.report.Leaves, c.ruleset.Hub, from, to)
	return onlyDropped(c.resource().Without(t.start.tree), c.resource().Without(returned.tree), drops)
}

// pathOfField converts a path of the API server into a path of a policy.
func pathOfField(text string) string {
	if text == "" || text == "<nil>" {
		return "."
	}
	if strings.HasPrefix(text, "[") {
		return text
	}
	return "." + text
}
