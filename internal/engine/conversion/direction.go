// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"iter"
	"slices"
	"strconv"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
)

// direction is a scope of a ruleset, prepared for conversions in one direction.
type direction struct {
	// reverse is the opposite direction.
	reverse   *direction
	moves     []move
	exchanges []exchange
	defaults  []defaultRule
	drops     []segments
	// shells are objects that only the source version has; holders are objects with one-sided
	// fields, the deepest first.
	shells  []slot
	holders []holder
	// arriving are the fields that only the target version has.
	arriving    []arrivingField
	shared      []sharedRule
	collections []collection
	// preserves is true if a conversion may preserve or restore something.
	preserves bool
	// siblings are the other spokes that share a field with the target version that the hub lacks.
	siblings []string
	// removesEmptied is true if a conversion may remove objects that rules have emptied.
	removesEmptied bool
	// shape is the schema of the scope in the target version, nil if unknown.
	shape *shape.Schema
	// parents is the number of objects that hold the fields of moves and exchanges.
	parents int
	// sourcePlaces and targetPlaces are those of the source and the target version.
	sourcePlaces, targetPlaces places
}

// slot is a field, with its path prepared.
type slot struct {
	path    segments
	pointer string
	// image is the pointer with the names of its own version, for fields of exchanges.
	image string
	// parent is the number of the object that holds the field, for fields of rules. 0 is the
	// object of the scope.
	parent int
	// anchor is the path of the object without which the field is not restored.
	anchor segments
	// text, label and notNull are those of LeafField and Field.
	text, label, notNull bool
	// nullAnchor is that of LeafField.
	nullAnchor bool
	// shape is the schema of the field, nil if unknown.
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
	// roundTrips is true if every value that has an image, except null, converts back to itself.
	roundTrips bool
	// tableRoundTrips is true if every value that the table translates converts back to itself.
	tableRoundTrips bool
	// format, table, wrap, document, index and programs are the prepared Format, Table, Wrap, Cast of a
	// document, Index and CEL.
	format   *formatting
	table    []literalPair
	wrap     *wrapping
	document *documentCast
	index    *indexing
	programs *programs
	// toPointers are the pointers of the target fields, as entries store their images.
	toPointers []byte
}

// defaultRule is a Default in one direction.
type defaultRule struct {
	slot
	// atSource is true if the source version has the field, and false if the target version has
	// it.
	atSource bool
	// value is nil if the metadata of the object has the value, under the name from.
	value []byte
	from  string
}

// holder is an object with one-sided fields.
type holder struct {
	slot
	// fields are the one-sided fields.
	fields byName[removedField]
	// common are the shapes of fields that are one-sided only if their value does not have the
	// shape.
	common byName[*Common]
	// named are the fields that are not one-sided, if all others are; nil if only fields are
	// one-sided. unknownAnchor is the anchor of those others.
	named         *byName[bool]
	unknownAnchor int
}

// removedField says when a one-sided field is removed, and has its anchor.
type removedField struct {
	when   removal
	anchor int
}

// removal says when a one-sided field is removed from its object.
type removal byte

const (
	// removeAlways: the target version lacks the field.
	removeAlways removal = iota + 1
	// removeIfEmpty: the field is a shell.
	removeIfEmpty
	// removeIfNull: the field is not nullable in the target version.
	removeIfNull
	// removeIfUncommon: the target version allows fewer shapes of values.
	removeIfUncommon
)

// arrivingField is a LeafField of the target version.
type arrivingField struct {
	slot
	shell, null bool
	common      *Common
	// named is that of holder.
	named *byName[bool]
	// siblings are those of LeafField.
	siblings []string
}

// sharedRule is a Shared in one direction.
type sharedRule struct {
	slot
	// outgoing are the values that rules take out of the object, incoming those that they put into
	// it.
	outgoing, incoming *trie
}

// collection is a Collection in one direction.
type collection struct {
	// path is its path in the source version. pointer is the same in both versions.
	path    segments
	pointer string
	isMap   bool
	// isObject is Collection.Object. opensNull is true if a null in its place is an object without fields.
	isObject, opensNull bool
	keys                segments
	direction           *direction
	// projection is that of an element.
	projection *projection
	// exclusion selects the elements that the target version cannot have, and targetExclusion those of the
	// target version that the source version cannot have; nil if there are none.
	exclusion, targetExclusion *exclusion
	// common is the shape that both versions allow. A list or map without it is one-sided, and is
	// not converted.
	common *Common
	// sourceNames and targetNames are the names that elements have in the source and in the target
	// version, nil if they are those of the hub.
	sourceNames, targetNames *naming
}

// trie is a set of paths. A nil trie is empty.
type trie struct {
	members byName[*trie]
	end     bool
}

// looksUp reports whether a conversion in this direction looks the entry up if its parent object
// exists. If it does not, that object was deleted, together with its preserved values.
func (d *direction) looksUp(pointer []byte, e *entry) bool {
	switch e.kind {
	case absenceEntry:
		return d.fills(pointer) || d.looksUpAbsence(pointer) || d.looksInto(pointer, e)
	case orderEntry:
		return d.hasExchangeTo(pointer, true) || d.looksInto(pointer, e)
	}
	return d.restores(pointer, e.value) || d.fills(pointer) || d.hasExchangeTo(pointer, false) || d.looksInto(pointer, e)
}

func (d *direction) fills(pointer []byte) bool {
	return slices.ContainsFunc(d.defaults, func(d defaultRule) bool { return !d.atSource && d.pointer == string(pointer) })
}

// looksUpAbsence reports whether a rule in this direction looks up whether the field was absent.
func (d *direction) looksUpAbsence(pointer []byte) bool {
	return slices.ContainsFunc(d.exchanges, func(e exchange) bool { return e.computesMissing() && e.to[0].pointer == string(pointer) }) ||
		slices.ContainsFunc(d.collections, func(c collection) bool { return c.exclusion != nil && c.pointer == string(pointer) })
}

// defaultAt returns the default rule of a field of the source or the target version, nil if there
// is none.
func (d *direction) defaultAt(pointer []byte, atSource bool) *defaultRule {
	for scope, rest := range d.scopesOf(pointer) {
		for i := range scope.defaults {
			if d := &scope.defaults[i]; d.atSource == atSource && d.pointer == string(rest) {
				return d
			}
		}
	}
	return nil
}

// ruleTo returns the rule that computes a field, with the pointer of its scope; nil if there is
// none.
func (d *direction) ruleTo(pointer []byte) (scope string, rule *exchange) {
	for inner, rest := range d.scopesOf(pointer) {
		for i := range inner.exchanges {
			if slices.ContainsFunc(inner.exchanges[i].to, func(f slot) bool { return f.pointer == string(rest) }) {
				return string(pointer[:len(pointer)-len(rest)]), &inner.exchanges[i]
			}
		}
	}
	return "", nil
}

// scopesOf yields the scopes that may contain the pointer, the outermost first, each with the
// pointer relative to the scope. The scopes are those of the elements on the way to the pointer.
func (d *direction) scopesOf(pointer []byte) iter.Seq2[*direction, []byte] {
	return func(yield func(*direction, []byte) bool) { d.visit(pointer, yield) }
}

func (d *direction) visit(pointer []byte, yield func(*direction, []byte) bool) (more bool) {
	if d == nil {
		return true
	}
	if !yield(d, pointer) {
		return false
	}
	for i := range d.collections {
		c := &d.collections[i]
		if _, rest := c.inElement(pointer); rest != nil && !c.direction.visit(rest, yield) {
			return false
		}
	}
	return true
}

func (d *direction) hasExchangeTo(pointer []byte, order bool) bool {
	for i := range d.exchanges {
		e := &d.exchanges[i]
		for j := range e.to {
			if e.to[j].pointer == string(pointer) {
				return !order || e.index != nil && e.toHub == e.index.Hub
			}
		}
	}
	return false
}

// restores reports whether this direction restores the value: the source version lacks the field,
// or it is an empty object that both versions have.
func (d *direction) restores(pointer, value []byte) bool {
	for i := range d.arriving {
		c := &d.arriving[i]
		if c.named == nil {
			if c.pointer == string(pointer) && c.accepts(value) {
				return true
			}
			continue
		}
		name, below := bytes.CutPrefix(pointer, []byte(c.pointer+"/"))
		if below && bytes.IndexByte(name, '/') < 0 && !c.named.get(unescapePointer(string(name))) {
			return true
		}
	}
	for i := range d.shared {
		if d.shared[i].pointer == string(pointer) && isEmptyValue(value) && (isNull(value) || value[0] == '{' || value[0] == '[') {
			return true
		}
	}
	return false
}

// inElement splits a pointer into the element of the list or map and the pointer in that element,
// which is nil for the element itself. An object is an element without a name. Both are nil if the
// pointer is not in the collection.
func (c *collection) inElement(pointer []byte) (element, rest []byte) {
	below, found := bytes.CutPrefix(pointer, []byte(c.pointer))
	switch {
	case !found || len(below) == 0 || below[0] != '/':
		return nil, nil
	case c.isObject:
		return below[:0], below
	}
	end := bytes.IndexByte(below[1:], '/') + 1
	if end == 0 {
		return below[1:], nil
	}
	return below[1:end], below[end:]
}

// looksInto reports whether a conversion in this direction looks the entry up in the elements of a
// list or map.
func (d *direction) looksInto(pointer []byte, e *entry) bool {
	for i := range d.collections {
		c := &d.collections[i]
		element, rest := c.inElement(pointer)
		switch {
		case element == nil:
		case rest == nil:
			if !c.isMap && len(c.keys) == 0 && c.direction.preserves && isIndex(element) {
				return true
			}
		case c.isMap || c.isObject || len(c.keys) > 0 && selectorKeys(string(element)).equal(c.keys):
			if c.direction.looksUp(rest, e) {
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
