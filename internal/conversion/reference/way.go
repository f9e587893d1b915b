// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

// way is a scope in one direction: what is taken from one side, and put on the
// other. The value that is converted is called x, and what it becomes y.
type way struct {
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
	lenders []lender
	// lists and maps that x and y have.
	collections []elements
	back        *way
}

type move struct{ from, to path }

type fill struct {
	path       path
	anchor     int
	nullAnchor bool
	value      any
}

// lender is an object that both sides have. The values at out have their place
// elsewhere in y: an object that has nothing else is not there in y.
type lender struct {
	path path
	out  []path
}

type elements struct {
	path  path
	isMap bool
	keys  []string
	way   *way
}

// ways reads a scope in both directions.
func ways(s *scope, whole bool) (toHub, toSpoke *way) {
	toHub, toSpoke = &way{whole: whole}, &way{whole: whole}
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
			panic(err) // the plan was read, so it is JSON
		}
		with, without := toSpoke, toHub
		if d.Hub {
			with, without = toHub, toSpoke
		}
		with.filled = append(with.filled, fill{d.Path, d.Anchor, d.NullAnchor, value})
		without.emptied = append(without.emptied, fill{d.Path, d.Anchor, d.NullAnchor, value})
	}
	for _, o := range s.Shared {
		toHub.lenders = append(toHub.lenders, lender{o.Path, o.Spoke})
		toSpoke.lenders = append(toSpoke.lenders, lender{o.Path, o.Hub})
	}
	for i := range s.Collections {
		c := &s.Collections[i]
		there, back := ways(&c.Scope, whole)
		toHub.collections = append(toHub.collections, elements{c.Path, c.Map, c.Keys, there})
		toSpoke.collections = append(toSpoke.collections, elements{c.Path, c.Map, c.Keys, back})
	}
	toHub.drops, toSpoke.drops = s.DropSpoke, s.DropHub
	toHub.lost, toSpoke.lost = s.OnlySpoke, s.OnlyHub
	toHub.missing, toSpoke.missing = s.OnlyHub, s.OnlySpoke
	return toHub, toSpoke
}
