// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// places are values that are in other objects in x and y, so that preserved data has them at their places,
// which are the same: a pointer with from at the beginning gets to instead. Rules and their pointers have places,
// objects and annotations have not.
type places []relocation

type relocation struct {
	from, to path
	// hasElements is true if inside is for the elements of a list or map.
	hasElements bool
	inside      places
}

func (c *collection) spoke() path {
	if c.Spoke == nil {
		return c.Path
	}
	return c.Spoke
}

func (c *collection) hub() path {
	if c.Hub == nil {
		return c.Path
	}
	return c.Hub
}

// places returns the places of values of the scope in the spoke, or in the hub.
func (s *scope) places(ofHub bool) (all places) {
	for i := range s.Collections {
		c := &s.Collections[i]
		own := c.spoke()
		if ofHub {
			own = c.hub()
		}
		all = append(all, relocation{own, c.Path, !c.Object, c.Scope.places(ofHub)})
	}
	return all
}

// places returns the places of a version.
func (c *Converter) places(version string) places {
	if version == c.ruleset.Hub {
		return c.atHub
	}
	for i := range c.ruleset.Spokes {
		if c.ruleset.Spokes[i].Version == version {
			return c.ruleset.Spokes[i].Root.places(false)
		}
	}
	return nil
}

func (p places) reversed() (back places) {
	for _, r := range p {
		back = append(back, relocation{r.to, r.from, r.hasElements, r.inside.reversed()})
	}
	return back
}

// segments returns the segments of a pointer with places. For each number of segments, lengths has the number
// that leads to the same object then, and to the object around all of them if there is no such object.
func (p places) segments(of []string) (moved []string, lengths []int) {
	for _, r := range p {
		from, to := escaped(r.from), escaped(r.to)
		if len(of) < len(from) || !slices.Equal(of[:len(from)], from) {
			continue
		}
		moved, rest := slices.Clone(to), of[len(from):]
		lengths = append(lengths, 0)
		for range len(from) - 1 {
			lengths = append(lengths, 0)
		}
		if slices.Equal(from, to) {
			for i := range lengths {
				lengths[i] = i
			}
		}
		if r.hasElements && len(rest) > 0 {
			lengths = append(lengths, len(moved))
			moved, rest = append(moved, rest[0]), rest[1:]
		}
		inner, inside := r.inside.segments(rest)
		for _, length := range inside {
			lengths = append(lengths, len(moved)+length)
		}
		return append(moved, inner...), lengths
	}
	for i := range len(of) + 1 {
		lengths = append(lengths, i)
	}
	return of, lengths
}

func escaped(of path) (segments []string) {
	for _, name := range of {
		segments = append(segments, escapes.Replace(name))
	}
	return segments
}

// pointer returns a pointer with places.
func (p places) pointer(of string) string {
	if !strings.HasPrefix(of, "/") {
		return of
	}
	moved, _ := p.segments(segments(of))
	return "/" + strings.Join(moved, "/")
}

// entry returns an entry with a pointer, with places.
func (p places) entry(key entryKey, of *entry) (entryKey, *entry) {
	moved := *of
	if strings.HasPrefix(key.pointer, "/") {
		_, lengths := p.segments(segments(key.pointer))
		number, isNumber := of.anchor.(json.Number)
		length, err := strconv.Atoi(number.String())
		if isNumber && err == nil && length >= 0 && length < len(lengths) {
			moved.anchor = json.Number(strconv.Itoa(lengths[length]))
		}
	}
	return entryKey{p.pointer(key.pointer), key.kind}, &moved
}

// entries returns preserved data with places.
func (p places) entries(of *preserved) *preserved {
	moved := *of
	moved.entries = map[entryKey]*entry{}
	for key, e := range of.entries {
		at, with := p.entry(key, e)
		moved.entries[at] = with
	}
	return &moved
}
