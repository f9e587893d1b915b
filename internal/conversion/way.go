// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import "github.com/conversion-operator/conversion-operator/internal/conversion/shape"

// way is a scope of a plan in one direction, prepared: what leaves one side, and
// what comes to the other.
type way struct {
	// back is the way of the other direction.
	back      *way
	moves     []move
	exchanges []exchange
	defaults  []filling
	drops     []steps
	// shells are objects that only the side left behind has, holders those that
	// have one-sided fields, the deepest first.
	shells  []slot
	holders []holder
	// coming are the fields that only the other side has.
	coming      []coming
	shared      []sharing
	collections []collection
	// keeps tells that something may be preserved or come back.
	keeps bool
	// siblings are the versions that have a field in common with the one that the way
	// leads to, and the hub lacks it.
	siblings []string
	// tidies tells that objects may go that rules have emptied.
	tidies bool
	// shape is what the schema of the version that the way leads to says of the
	// scope, nil where that is not known.
	shape *shape.Schema
	// parents is how many objects hold what moves and exchanges take and give.
	parents int
}

// slot is a path, and the same as a JSON Pointer.
type slot struct {
	path    steps
	pointer string
	// parent is the number of the object that holds a field of a rule. That of the
	// scope's own fields is 0.
	parent int
	// anchor is the path of the object without which nothing comes back.
	anchor steps
	// text and label tell what is legal, notNull what a rule must not make: see
	// Leaf and Field.
	text, label, notNull bool
	// nullAnchor is that of Leaf.
	nullAnchor bool
	// shape is what the schema says of the field, nil where that is not known.
	shape *shape.Schema
}

func newSlot(path Path, anchor int) slot {
	prepared := path.steps()
	return slot{path: prepared, pointer: path.Pointer(), anchor: prepared[:anchor]}
}

type move struct{ from, to slot }

// exchange is an Exchange in one direction.
type exchange struct {
	*Exchange
	toHub    bool
	from, to []slot
	// faithful tells that every value but null comes back that has an image.
	faithful bool
	// oneToOne tells that every string comes back that the table translates.
	oneToOne bool
	// format, table and index are the Format, the Table and the Index, prepared, and
	// programs are those of a CEL.
	format   *formatting
	table    []quotedPair
	index    *indexing
	programs *programs
	// toPointers are the places of the fields, as entries name images.
	toPointers []byte
}

// filling is a Default in one direction.
type filling struct {
	slot
	// leaves tells that the field has no place on the other side.
	leaves bool
	value  []byte
}

// holder is an object in which there are one-sided fields.
type holder struct {
	slot
	// members are the one-sided fields.
	members byName[leaver]
	// fits are the shapes of those that are one-sided where they are not of it.
	common byName[*Common]
	// known are all fields that are not one-sided, where all others are; nil where
	// only members are. Anchored is the anchor of those others.
	known    *byName[bool]
	anchored int
}

// leaver is a one-sided field: when it leaves its object, and its anchor.
type leaver struct {
	when   leaving
	anchor int
}

// leaving says when a one-sided field leaves its object.
type leaving byte

const (
	// always is a field that the other side lacks.
	always leaving = iota + 1
	// emptied is a shell.
	emptied
	// nulled is a field that cannot be null on the other side.
	nulled
	// unlikeCommon is a field that is not of a shape that the other side can have.
	unlikeCommon
)

// coming is a Leaf of the side that a hop leads to.
type coming struct {
	slot
	shell, null bool
	common      *Common
	// known is that of holder.
	known *byName[bool]
	// siblings are those of Leaf.
	siblings []string
}

// sharing is a Shared in one direction.
type sharing struct {
	slot
	// leaving and entering are the values that leave the object and that enter it.
	leaving, entering *trie
}

// collection is a Collection in one direction.
type collection struct {
	path    steps
	pointer string
	isMap   bool
	keys    steps
	way     *way
	// look is into an element.
	look *look
	// fits is the shape without which all of it is one-sided, and is left as it is.
	common *Common
}

// trie holds paths. A nil one holds none.
type trie struct {
	members byName[*trie]
	// end tells that a path ends here.
	end bool
}
