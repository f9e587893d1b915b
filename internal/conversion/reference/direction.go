// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/conversion/shape"
)

// direction is a scope in one direction: what is taken from one side, and put on the
// other. The value that is converted is called x, and what it becomes y.
type direction struct {
	// whole tells an object from a fragment, which gets no defaults.
	whole bool
	moves []move
	// exchanges compute fields of y from those of x.
	exchanges []trade
	// drops are given up in x.
	drops []path
	// emptied are fields of x that y lacks, and filled those of y that x lacks,
	// with a value to fill them with.
	emptied, filled []fill
	// lost are fields of x that y lacks, missing those of y that x lacks.
	lost, missing []leaf
	// lenders are objects that x and y have.
	shared []sharedObject
	// lists and maps that x and y have.
	collections []elements
	back        *direction
	// schema is what that of y says of the scope, nil where that is not known.
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

// sharedObject is an object that both sides have. The values at out have their place
// elsewhere in y: an object that has nothing else is not there in y.
type sharedObject struct {
	path path
	out  []path
}

type elements struct {
	path  path
	isMap bool
	keys  []string
	way   *direction
	// common is the shape without which the list or map is kept as a whole.
	common *common
}

// directions reads a scope in both directions.
func directions(s *scope, whole bool) (toHub, toSpoke *direction) {
	toHub, toSpoke = &direction{whole: whole, schema: s.hub}, &direction{whole: whole, schema: s.spoke}
	toHub.back, toSpoke.back = toSpoke, toHub
	for _, m := range s.Moves {
		toHub.moves = append(toHub.moves, move{m.Spoke, m.Hub})
		toSpoke.moves = append(toSpoke.moves, move{m.Hub, m.Spoke})
	}
	for i := range s.Exchanges {
		there, back := trades(&s.Exchanges[i])
		toHub.exchanges = append(toHub.exchanges, there)
		toSpoke.exchanges = append(toSpoke.exchanges, back)
	}
	for _, d := range s.Defaults {
		value, err := Decode(d.Value)
		if err != nil {
			panic(err) // the ruleset was read, so it is JSON
		}
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
		there, back := directions(&c.Scope, whole)
		shared := s.commonOf(c.Path)
		toHub.collections = append(toHub.collections, elements{c.Path, c.Map, c.Keys, there, shared})
		toSpoke.collections = append(toSpoke.collections, elements{c.Path, c.Map, c.Keys, back, shared})
	}
	toHub.drops, toSpoke.drops = s.DropSpoke, s.DropHub
	toHub.lost, toSpoke.lost = s.OnlySpoke, s.OnlyHub
	toHub.missing, toSpoke.missing = s.OnlyHub, s.OnlySpoke
	return toHub, toSpoke
}

// keeps reports whether anything in a scope may be preserved.
func (w *direction) keeps() bool {
	return len(w.exchanges)+len(w.emptied)+len(w.filled)+len(w.lost)+len(w.missing)+len(w.shared) > 0 ||
		slices.ContainsFunc(w.collections, func(e elements) bool { return e.way.keeps() })
}

// commonOf is the shape that both sides can have of a field, nil where that is any.
func (s *scope) commonOf(of path) *common {
	for _, l := range s.OnlySpoke {
		if l.Common != nil && slices.Equal(l.Path, of) {
			return l.Common
		}
	}
	return nil
}
