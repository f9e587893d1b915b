// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// preserved is the preserved data of one version.
type preserved struct {
	entries map[entryKey]*entry
	// unreadable is the former text of the annotation if it could not be read, or none.
	unreadable any
	// leaving is the preserved data of the version that a step leaves. others has that too, and the
	// preserved data of third versions.
	leaving *preserved
	others  []*preserved
	// merging are elements without keys to which no element converts any more, by the pointers of
	// the elements that are still their images.
	merging []merging
	// unnamed are the pointers of lists whose elements lack the keys that entries use, of lists
	// that should be maps, and of maps that should be lists.
	unnamed []string
	// lenient restores values that their fields do not allow.
	lenient       bool
	refusesStatus bool
	// partial marks a fragment, which may lack required fields.
	partial bool
	taken   []taken
	// returning are the pointers of the objects that must exist so that the way back converts nothing to values,
	// which need no entry therefore.
	returning []string
	// names are those of the version, if they are not those of the hub.
	names names
}

// entryKey identifies an entry: a pointer, and the kind of information about it.
type entryKey struct {
	pointer string
	kind    kind
}

type kind int

const (
	// aValue is the value of a field, or of an element without keys.
	aValue kind = iota
	// anAbsence records that a field was absent which the way back would fill.
	anAbsence
	// anOrder has the keys of a list that is a map at the other version.
	anOrder
	// anExcluded is an element that the other version cannot have.
	anExcluded
)

type entry struct {
	value any
	// images are the results of converting the value: a list of pointers, a digest, or nil.
	images any
	// anchor is the number of segments that lead to the object without which the entry does not
	// come back. It is nil if that object is the parent.
	anchor any
	state  state
}

// state is the progress of an entry at its version.
type state int

const (
	// unclaimed is an entry that no rule has looked up.
	unclaimed state = iota
	// done is an entry that was restored, superseded, or lost its parent.
	done
	// refused is a value that its field does not allow.
	refused
	// deferred is an entry whose image is itself preserved, or one of several values of which another one is
	// refused.
	deferred
)

type merging struct {
	pointer string
	entry   *entry
	// replace means that the element replaces the result of the rules.
	replace bool
	// moved means that pointer has the index in y.
	moved bool
}

func newPreserved() *preserved {
	return &preserved{entries: map[entryKey]*entry{}, unreadable: none}
}

func (p *preserved) put(pointer string, kind kind, value, images any) {
	p.entries[entryKey{pointer, kind}] = &entry{value: value, images: images}
}

// anchor sets the anchor of an entry to the object at the first length segments of a path below at.
func (p *preserved) anchor(at string, of path, kind kind, length int) {
	if e := p.entries[entryKey{at + of.pointer(), kind}]; e != nil && length < len(of)-1 {
		e.anchor = json.Number(strconv.Itoa(strings.Count(at, "/") + length))
	}
}

// inheritAnchors gives entries that remain in the annotation the anchors of former siblings, if
// those are further out.
func (p *preserved) inheritAnchors(siblings *preserved) {
	for key, e := range p.entries {
		for beside, other := range siblings.entries {
			if directory(key.pointer) == directory(beside.pointer) && isFurtherOut(other.anchor, e.anchor) {
				e.anchor = other.anchor
			}
		}
	}
}

func directory(pointer string) string { return pointer[:max(0, strings.LastIndex(pointer, "/"))] }

// isFurtherOut reports whether an anchor has fewer segments than another. No anchor counts as the
// most segments, an invalid one as the fewest.
func isFurtherOut(anchor, other any) bool {
	a, _ := anchor.(json.Number)
	b, _ := other.(json.Number)
	length, bad := strconv.Atoi(a.String())
	than, err := strconv.Atoi(b.String())
	return bad == nil && (other == nil || err == nil && length < than)
}

func (p *preserved) add(other *preserved) {
	maps.Copy(p.entries, other.entries)
	p.taken = append(p.taken, other.taken...)
	p.returning = append(p.returning, other.returning...)
}

// markUnnamed notes a list whose elements entries cannot identify.
func (p *preserved) markUnnamed(at string, unnamed bool) {
	if p != nil && unnamed {
		p.unnamed = append(p.unnamed, at)
	}
}

// isUnnamed reports whether a pointer leads into such a list.
func (p *preserved) isUnnamed(pointer string) bool {
	return slices.ContainsFunc(p.unnamed, func(list string) bool { return strings.HasPrefix(pointer, list+"/") })
}

// preservesParentOf reports whether a parent of the pointer is itself preserved: then it was not
// deleted.
func (p *preserved) preservesParentOf(pointer string) bool {
	for key := range p.entries {
		if key.kind == aValue && key.pointer != "" && strings.HasPrefix(pointer, key.pointer+"/") {
			return true
		}
	}
	return false
}

// find returns an entry, nil if there is none.
func (p *preserved) find(pointer string, kind kind) *entry {
	if p == nil {
		return nil
	}
	return p.entries[entryKey{pointer, kind}]
}

// places returns the keys of all entries, sorted.
func (p *preserved) places() []entryKey {
	return slices.SortedFunc(maps.Keys(p.entries), func(a, b entryKey) int {
		if a.pointer != b.pointer {
			return strings.Compare(a.pointer, b.pointer)
		}
		return int(a.kind - b.kind)
	})
}

// preservesValueBelow reports whether a value, or an order, below a pointer is preserved.
func (p *preserved) preservesValueBelow(pointer string) bool {
	for key := range p.entries {
		if key.kind != anAbsence && strings.HasPrefix(key.pointer, pointer+"/") {
			return true
		}
	}
	return false
}

// returnsIn reports whether the way back converts nothing to a value in an object that must exist for that.
func (p *preserved) returnsIn(pointer string) bool {
	return slices.ContainsFunc(p.returning, func(anchor string) bool { return strings.HasPrefix(anchor+"/", pointer+"/") })
}

// preserves reports whether a value, or a parent of it, is preserved.
func (p *preserved) preserves(pointer string) bool {
	return p.find(pointer, aValue) != nil || p.preservesParentOf(pointer)
}

// preservesAny reports whether a value of one of the fields, or of a parent of one, is preserved.
func (p *preserved) preservesAny(fields []field, at string) bool {
	return p != nil && slices.ContainsFunc(fields, func(f field) bool { return p.preserves(at + f.Path.pointer()) })
}

// blocksFilling reports whether a value of one of the fields stays preserved, or one that is no object in
// place of a parent.
func (p *preserved) blocksFilling(fields []field, at string) bool {
	return p != nil && slices.ContainsFunc(fields, func(f field) bool {
		pointer := at + f.Path.pointer()
		for key, e := range p.entries {
			isParent := key.pointer != "" && strings.HasPrefix(pointer, key.pointer+"/")
			if key.kind == aValue && (key.pointer == pointer && e.state != done || isParent && !isObject(e.value)) {
				return true
			}
		}
		return false
	})
}

// preservesBeside reports whether anything in the parent of a pointer is preserved.
func (p *preserved) preservesBeside(pointer string) bool {
	parent := directory(pointer) + "/"
	for key := range p.entries {
		if parent != "/" && strings.HasPrefix(key.pointer, parent) {
			return true
		}
	}
	return false
}

// othersPreserveBelow reports whether a value below a pointer is preserved of another version.
func (p *preserved) othersPreserveBelow(pointer string) bool {
	return p != nil && slices.ContainsFunc(p.others, func(other *preserved) bool { return other.preservesValueBelow(pointer) })
}

// members returns the names of the values directly below a pointer.
func (p *preserved) members(at string) []string {
	var names []string
	for _, place := range p.below(at) {
		names = append(names, unescapes.Replace(place))
	}
	return names
}

// indexes returns the indexes of the preserved elements of a list, sorted.
func (p *preserved) indexes(at string) []int {
	var indexes []int
	for _, segment := range p.below(at) {
		if index, is := indexOf(segment); is {
			indexes = append(indexes, index)
		}
	}
	slices.Sort(indexes)
	return indexes
}

// below returns the segments of the values directly below a pointer, sorted.
func (p *preserved) below(at string) []string {
	if p == nil {
		return nil
	}
	var segments []string
	for _, place := range p.places() {
		segment, under := strings.CutPrefix(place.pointer, at+"/")
		if under && place.kind == aValue && !strings.Contains(segment, "/") {
			segments = append(segments, segment)
		}
	}
	return segments
}

// indexOf parses the index of an element in a pointer.
func indexOf(segment string) (index int, is bool) {
	index, err := strconv.Atoi(segment)
	return index, err == nil && index >= 0 && strconv.Itoa(index) == segment
}
