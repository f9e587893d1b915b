// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"iter"
	"slices"
	"strconv"

	"github.com/conversion-operator/conversion-operator/internal/conversion/shape"
)

// direction is a scope of a ruleset in one direction, prepared: what leaves one side, and
// what comes to the other.
type direction struct {
	// back is the way of the other direction.
	back      *direction
	moves     []move
	exchanges []exchange
	defaults  []filling
	drops     []segments
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
	path    segments
	pointer string
	// parent is the number of the object that holds a field of a rule. That of the
	// scope's own fields is 0.
	parent int
	// anchor is the path of the object without which nothing comes back.
	anchor segments
	// text and label tell what is legal, notNull what a rule must not make: see
	// Leaf and Field.
	text, label, notNull bool
	// nullAnchor is that of Leaf.
	nullAnchor bool
	// shape is what the schema says of the field, nil where that is not known.
	shape *shape.Schema
}

func newSlot(path Path, anchor int) slot {
	prepared := path.segments()
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

// coming is a Leaf of the side that a step leads to.
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
	path    segments
	pointer string
	isMap   bool
	keys    segments
	way     *direction
	// look is into an element.
	look *look
	// fits is the shape without which all of it is one-sided, and is left unchanged.
	common *Common
}

// trie holds paths. A nil one holds none.
type trie struct {
	members byName[*trie]
	// end tells that a path ends here.
	end bool
}

// looksUp reports whether a way looks an entry up where the objects around its place
// are there. If it did not, they are gone, and what was preserved in them with them.
func (w *direction) looksUp(pointer []byte, e *entry) bool {
	switch e.kind {
	case anAbsence:
		return w.fills(pointer) || w.looksInto(pointer, e)
	case anOrder:
		return w.exchangesTo(pointer, true) || w.looksInto(pointer, e)
	}
	return w.comes(pointer, e.value) || w.fills(pointer) || w.exchangesTo(pointer, false) || w.looksInto(pointer, e)
}

func (w *direction) fills(pointer []byte) bool {
	return slices.ContainsFunc(w.defaults, func(d filling) bool { return !d.leaves && d.pointer == string(pointer) })
}

// defaultAt is the default rule of a field, nil where there is none: of the side that
// a way leaves, or of that to which it leads.
func (w *direction) defaultAt(pointer []byte, leaves bool) *filling {
	for scope, rest := range w.scopesOf(pointer) {
		for i := range scope.defaults {
			if d := &scope.defaults[i]; d.leaves == leaves && d.pointer == string(rest) {
				return d
			}
		}
	}
	return nil
}

// ruleTo is the rule that computes a field, and the place of its scope; nil where no rule
// does.
func (w *direction) ruleTo(pointer []byte) (scope string, rule *exchange) {
	for in, rest := range w.scopesOf(pointer) {
		for i := range in.exchanges {
			if slices.ContainsFunc(in.exchanges[i].to, func(f slot) bool { return f.pointer == string(rest) }) {
				return string(pointer[:len(pointer)-len(rest)]), &in.exchanges[i]
			}
		}
	}
	return "", nil
}

// scopesOf are the scopes in which a place may be, the outermost first, each with the
// pointer of the place in it: those of the elements around the place.
func (w *direction) scopesOf(pointer []byte) iter.Seq2[*direction, []byte] {
	return func(yield func(*direction, []byte) bool) { w.visit(pointer, yield) }
}

func (w *direction) visit(pointer []byte, yield func(*direction, []byte) bool) (goesOn bool) {
	if w == nil {
		return true
	}
	if !yield(w, pointer) {
		return false
	}
	for i := range w.collections {
		c := &w.collections[i]
		if _, rest := c.inElement(pointer); rest != nil && !c.way.visit(rest, yield) {
			return false
		}
	}
	return true
}

func (w *direction) exchangesTo(pointer []byte, order bool) bool {
	for i := range w.exchanges {
		e := &w.exchanges[i]
		for j := range e.to {
			if e.to[j].pointer == string(pointer) {
				return !order || e.index != nil && e.toHub == e.index.Hub
			}
		}
	}
	return false
}

// comes reports whether a way restores a field that the other side lacks, or an
// object that both sides have and that has nothing in it.
func (w *direction) comes(pointer, value []byte) bool {
	for i := range w.coming {
		c := &w.coming[i]
		if c.known == nil {
			if c.pointer == string(pointer) && c.comesAs(value) {
				return true
			}
			continue
		}
		name, below := bytes.CutPrefix(pointer, []byte(c.pointer+"/"))
		if below && bytes.IndexByte(name, '/') < 0 && !c.known.get(unescapePointer(string(name))) {
			return true
		}
	}
	for i := range w.shared {
		if w.shared[i].pointer == string(pointer) && isBare(value) && (isNull(value) || value[0] == '{' || value[0] == '[') {
			return true
		}
	}
	return false
}

// inElement splits a pointer into the element of a list or map and the place in that,
// nil where it leads to the element itself; both are nil where it leads elsewhere.
func (c *collection) inElement(pointer []byte) (element, rest []byte) {
	below, found := bytes.CutPrefix(pointer, []byte(c.pointer))
	if !found || len(below) == 0 || below[0] != '/' {
		return nil, nil
	}
	end := bytes.IndexByte(below[1:], '/') + 1
	if end == 0 {
		return below[1:], nil
	}
	return below[1:end], below[end:]
}

// looksInto reports whether a way looks an entry up in the elements of a list or map.
func (w *direction) looksInto(pointer []byte, e *entry) bool {
	for i := range w.collections {
		c := &w.collections[i]
		element, rest := c.inElement(pointer)
		switch {
		case element == nil:
		case rest == nil:
			if !c.isMap && len(c.keys) == 0 && c.way.keeps && isIndex(element) {
				return true
			}
		case c.isMap || len(c.keys) > 0 && selectorKeys(string(element)).equal(c.keys):
			if c.way.looksUp(rest, e) {
				return true
			}
		}
	}
	return false
}

func isIndex(segment []byte) bool {
	index, err := strconv.Atoi(string(segment))
	return err == nil && index >= 0 && strconv.Itoa(index) == string(segment)
}
