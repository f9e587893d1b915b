// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"strings"
)

// traveller is an object to convert through all versions.
type traveller struct {
	name string
	// own is its original version.
	own   string
	start value
	// validate reports whether to validate the object against the schemas of other versions.
	validate bool
	canary   bool
}

// everywhere converts an object from each version to each other one. At a version
// that is not its own, it starts with its conversion to there.
func (c *Checker) everywhere(ctx context.Context, t traveller) {
	for _, from := range c.plan.Versions {
		at := t
		if from != t.own {
			text, err := c.convert(t.start.text, from)
			if err != nil {
				continue // the trip from its own version reports it
			}
			if at.start, _, err = c.arrive(t, from, text); err != nil {
				continue
			}
		}
		for _, to := range c.plan.Versions {
			if to != from {
				c.trip(ctx, at, from, to)
			}
		}
	}
}

// trip makes a round trip with an object, and counts the result.
func (c *Checker) trip(ctx context.Context, t traveller, from, to string) {
	direction := c.directions[[2]string{from, to}]
	if t.canary {
		direction = &Direction{} // a canary object is not counted
	}
	direction.Objects++
	there, pruned, err := c.leg(t, t.start, to)
	if err != nil {
		direction.Failed++
		c.tally.find(NotConverted, from, to, Example{Object: t.name, Message: err.Error()})
		return
	}
	parts, size := c.kept(t, from, to, there)
	direction.KeptBytes += int64(size)
	direction.MaxKeptBytes = max(direction.MaxKeptBytes, size)
	if c.invalid(ctx, t, from, to, there) {
		direction.Invalid++
	}
	home, _, err := c.leg(t, there, from)
	if err != nil {
		direction.Failed++
		c.tally.find(NotConverted, from, to, Example{Object: t.name, Message: "on the way back: " + err.Error()})
		return
	}
	if from == t.own && !t.canary {
		c.foretell(t, to, there, home)
	}
	vanished := c.vanished(t, from, to, there, home)
	home = c.withoutGains(t, from, to, home)
	switch {
	case c.lost(t, from, to, home, pruned), vanished:
		direction.Lost++
	case c.dropped(t, from, to, home):
		direction.Dropped++
	case parts > 0:
		direction.Kept++
	default:
		direction.Exact++
	}
}

// leg converts an object, and treats the result like an API server.
func (c *Checker) leg(t traveller, x value, to string) (value, []difference, error) {
	text, err := c.convert(x.text, to)
	if err != nil {
		return value{}, nil, err
	}
	return c.arrive(t, to, text)
}

// arrive prunes a converted object by the schema of its version.
func (c *Checker) arrive(t traveller, at string, text []byte) (value, []difference, error) {
	if t.canary {
		tree, err := decode(text)
		return value{text, tree}, nil, err
	}
	return c.versions[at].accept(text)
}

func (c *Checker) convert(text []byte, to string) ([]byte, error) {
	dst := make([]byte, 0, len(text)+len(text)/2)
	start := c.now()
	out, err := c.convertBy(dst, text, to)
	c.elapsed += c.now().Sub(start)
	c.report.Timing.Conversions++
	return out, err
}

// kept counts what annotations preserve while an object is in another version. In a
// conversion through the hub, the hub may preserve values, too.
func (c *Checker) kept(t traveller, from, to string, there value) (parts, size int) {
	origins := []string{from}
	if from != c.plan.Hub && to != c.plan.Hub {
		origins = append(origins, c.plan.Hub)
	}
	kept, size := keptIn(there.tree, c.resource(), origins)
	if !t.canary {
		c.tally.keep(from, to, kept)
	}
	return len(kept), size
}

// invalid validates a converted object against the target's schema. The result at the
// target does not depend on the starting version, so it is checked once.
func (c *Checker) invalid(ctx context.Context, t traveller, from, to string, there value) bool {
	if !t.validate || from != t.own {
		return false
	}
	errs := c.versions[to].validate(ctx, there)
	for _, err := range errs {
		c.tally.find(InvalidAtTarget, from, to, Example{Object: t.name, Path: pathOfField(err.Field), Message: err.ErrorBody()})
	}
	return len(errs) > 0
}

// lost finds what was pruned at the target, and what came back changed, except what
// a rule drops.
func (c *Checker) lost(t traveller, from, to string, home value, pruned []difference) bool {
	for _, d := range pruned {
		c.tally.find(Pruned, from, to, Example{Object: t.name, Path: d.Path, Before: shown(d.Before), Fields: len(pruned)})
	}
	if len(pruned) > 0 {
		return true
	}
	found := c.compare(t, home)
	if len(found) == 0 || c.onlyDropped(t, from, to, home) {
		return false
	}
	c.tally.find(Lost, from, to, exampleOf(t.name, found))
	return true
}

// dropped finds what a rule drops.
func (c *Checker) dropped(t traveller, from, to string, home value) bool {
	found := c.compare(t, home)
	if len(found) > 0 && !t.canary {
		c.tally.find(Dropped, from, to, exampleOf(t.name, found))
	}
	return len(found) > 0
}

// compare ignores the annotations with preserved data: they are not data of the
// object's version, and an old one may correctly disappear.
func (c *Checker) compare(t traveller, home value) []difference {
	return differences(c.resource().Without(t.start.tree), c.resource().Without(home.tree))
}

func (c *Checker) onlyDropped(t traveller, from, to string, home value) bool {
	drops := dropsOf(c.report.Leaves, c.plan.Hub, from, to)
	return onlyDropped(c.resource().Without(t.start.tree), c.resource().Without(home.tree), drops)
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
