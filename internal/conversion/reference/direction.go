// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/conversion/shape"
)

// direction is a scope in one direction. The value that is converted is called x, and the result y.
type direction struct {
	// isWhole tells an object from a fragment, which gets no defaults.
	isWhole bool
	moves   []move
	// exchanges compute fields of y from fields of x.
	exchanges []transfer
	// drops are the fields of x that a rule drops.
	drops []path
	// emptied are fields of x that y lacks, and filled are fields of y that x lacks, with their
	// defaults.
	emptied, filled []fill
	// lost are fields of x that y lacks, and missing are fields of y that x lacks.
	lost, missing []leaf
	// shared are objects that x and y have.
	shared []sharedObject
	// collections are lists and maps that x and y have.
	collections []elements
	back        *direction
	// xPlaces and yPlaces are the places of values in x, and in y.
	xPlaces, yPlaces places
	// schema is the schema of y, nil if it is unknown.
	schema *shape.Schema
}

type move struct{ from, to path }

type fill struct {
	path       path
	anchor     int
	nullAnchor bool
	value      any
	schema     *shape.Schema
}

// sharedObject is an object that both sides have. The values at out are elsewhere in y: an object
// with nothing else does not exist in y.
type sharedObject struct {
	path path
	out  []path
}

type elements struct {
	// path is where x has it. Pointers use place.
	path, place path
	isMap       bool
	// isObject is true for a single object. Unless isNull, a null in its place is an object that server-side
	// apply emptied.
	isObject, isNull bool
	keys             []string
	direction        *direction
	// fragment is the direction in which no rule fills in a value.
	fragment *direction
	// common is the shape of the list or map. A list or map of another shape is preserved as a
	// whole.
	common *common
	// of and to are the names that elements have in the version of x, and in that of y.
	of, to names
	// excludes are the elements that y cannot have, and excluded those of y that x cannot have.
	excludes, excluded *exclusion
}

// directions returns both directions of a scope, for objects with this metadata.
func directions(s *scope, isWhole bool, metadata any) (toHub, toSpoke *direction) {
	toHub, toSpoke = &direction{isWhole: isWhole, schema: s.hub}, &direction{isWhole: isWhole, schema: s.spoke}
	toHub.back, toSpoke.back = toSpoke, toHub
	toHub.xPlaces, toHub.yPlaces = s.places(false), s.places(true)
	toSpoke.xPlaces, toSpoke.yPlaces = toHub.yPlaces, toHub.xPlaces
	for _, m := range s.Moves {
		toHub.moves = append(toHub.moves, move{m.Spoke, m.Hub})
		toSpoke.moves = append(toSpoke.moves, move{m.Hub, m.Spoke})
	}
	for i := range s.Exchanges {
		there, back := transfers(&s.Exchanges[i], isWhole, metadata)
		toHub.exchanges = append(toHub.exchanges, there)
		toSpoke.exchanges = append(toSpoke.exchanges, back)
	}
	for _, d := range s.Defaults {
		value := d.value(metadata)
		with, without := toSpoke, toHub
		if d.Hub {
			with, without = toHub, toSpoke
		}
		with.filled = append(with.filled, fill{d.Path, d.Anchor, d.NullAnchor, value, d.schema})
		without.emptied = append(without.emptied, fill{d.Path, d.Anchor, d.NullAnchor, value, d.schema})
	}
	for _, o := range s.Shared {
		toHub.shared = append(toHub.shared, sharedObject{o.Path, o.Spoke})
		toSpoke.shared = append(toSpoke.shared, sharedObject{o.Path, o.Hub})
	}
	for i := range s.Collections {
		c := &s.Collections[i]
		there, back := directions(&c.Scope, isWhole, metadata)
		fragmentThere, fragmentBack := there, back
		if isWhole {
			fragmentThere, fragmentBack = directions(&c.Scope, false, metadata)
		}
		shared := s.commonOf(c.Path)
		toHub.collections = append(toHub.collections, elements{c.spoke(), c.Path, c.Map, c.Object, isNullable(s.spoke, c.spoke()), c.Keys, there, fragmentThere, shared, c.Scope.names, nil, c.ExcludeSpoke, c.ExcludeHub})
		toSpoke.collections = append(toSpoke.collections, elements{c.hub(), c.Path, c.Map, c.Object, isNullable(s.hub, c.hub()), c.Keys, back, fragmentBack, shared, nil, c.Scope.names, c.ExcludeHub, c.ExcludeSpoke})
	}
	toHub.drops, toSpoke.drops = s.DropSpoke, s.DropHub
	toHub.lost, toSpoke.lost = s.OnlySpoke, s.OnlyHub
	toHub.missing, toSpoke.missing = s.OnlyHub, s.OnlySpoke
	return toHub, toSpoke
}

// value returns the value of a default for objects with this metadata, or none.
func (f *filling) value(metadata any) any {
	if f.From != "" {
		if text, isText := find(metadata, path{f.From}).(string); isText && text != "" {
			return text
		}
		return none
	}
	value, err := Decode(f.Value)
	if err != nil {
		panic(err) // the ruleset was read, so it is JSON
	}
	return value
}

// mayPreserve reports whether a conversion of the scope may preserve anything.
func (d *direction) mayPreserve() bool {
	return len(d.exchanges)+len(d.emptied)+len(d.filled)+len(d.lost)+len(d.missing)+len(d.shared) > 0 ||
		slices.ContainsFunc(d.collections, func(e elements) bool { return e.excludes != nil || e.excluded != nil || e.direction.mayPreserve() })
}

// commonOf returns the shape that both sides allow for a field, nil if they allow the same.
func (s *scope) commonOf(of path) *common {
	for _, l := range s.OnlySpoke {
		if l.Common != nil && slices.Equal(l.Path, of) {
			return l.Common
		}
	}
	return nil
}
