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

// preserved is what is preserved of one version.
type preserved struct {
	entries map[pathContext]*entry
	// unreadable is text that was found in the place of the annotation, or none.
	unreadable any
	// leaving is preserved of the version that a step leaves, and others are that and what
	// is preserved of versions that it neither leaves nor reaches.
	leaving *preserved
	others  []*preserved
	// merging are elements without keys to which none converts any more, by the
	// places of those that still are what they became.
	merging []merging
	// unnamed are the places of lists whose elements lack the keys by which entries
	// name them, and of lists that should be maps, or the other way round.
	unnamed []string
	// lenient lets values come back that their fields cannot have.
	lenient bool
	// refusesStatus is that of the ruleset.
	refusesStatus bool
	// partial tells that the object is a fragment, which may lack what is required.
	partial bool
	// taken are fields of the other version.
	taken []taken
}

// pathContext is that of an entry: a pointer, and what is said of it.
type pathContext struct {
	pointer string
	kind    kind
}

type kind int

const (
	// aValue is that of a field, or of an element without keys.
	aValue kind = iota
	// anAbsence tells that a field was absent that coming back would fill.
	anAbsence
	// anOrder has the keys of a list that is a map in the other version.
	anOrder
)

type entry struct {
	value any
	// images are what the value became: a list of pointers, a digest, or nil.
	images any
	// anchor is how many segments of the pointer lead to the object without which the
	// entry does not come back, nil where that is the one directly around it.
	anchor any
	fate   fate
}

// fate is what became of an entry in the version that it is of.
type fate int

const (
	// unclaimed is an entry that no rule has looked up.
	unclaimed fate = iota
	// done is an entry that was restored, superseded, or lost its place.
	done
	// refused is a value that its field cannot have.
	refused
	// deferred is an entry whose counterpart is preserved itself.
	deferred
	// unmatched is an element of format 1 to which no element converts.
	unmatched
)

type merging struct {
	pointer string
	entry   *entry
	// whole tells that the element takes the place of what the rules made.
	whole bool
}

func newPreserved() *preserved {
	return &preserved{entries: map[pathContext]*entry{}, unreadable: none}
}

func (k *preserved) put(pointer string, kind kind, value, images any) {
	k.entries[pathContext{pointer, kind}] = &entry{value: value, images: images}
}

// anchor notes the anchor of an entry: an object at that many segments of a path below
// a place.
func (k *preserved) anchor(at string, of path, kind kind, length int) {
	if e := k.entries[pathContext{at + of.pointer(), kind}]; e != nil && length < len(of)-1 {
		e.anchor = json.Number(strconv.Itoa(strings.Count(at, "/") + length))
	}
}

// anchorAs notes the anchors of what is carried on: those of what was preserved beside it,
// where those are further out.
func (k *preserved) anchorAs(preserved *preserved) {
	for at, e := range k.entries {
		for beside, p := range preserved.entries {
			if directory(at.pointer) == directory(beside.pointer) && isFurtherOut(p.anchor, e.anchor) {
				e.anchor = p.anchor
			}
		}
	}
}

func directory(pointer string) string { return pointer[:max(0, strings.LastIndex(pointer, "/"))] }

// isFurtherOut reports whether an anchor has fewer segments than another one. None has
// most, and one that is no number has fewest.
func isFurtherOut(anchor, other any) bool {
	a, _ := anchor.(json.Number)
	b, _ := other.(json.Number)
	length, bad := strconv.Atoi(a.String())
	than, err := strconv.Atoi(b.String())
	return bad == nil && (other == nil || err == nil && length < than)
}

func (k *preserved) add(other *preserved) {
	maps.Copy(k.entries, other.entries)
	k.taken = append(k.taken, other.taken...)
}

// unname notes a list whose elements entries cannot name.
func (k *preserved) unname(at string, so bool) {
	if k != nil && so {
		k.unnamed = append(k.unnamed, at)
	}
}

// isUnnamed reports whether a place is in such a list.
func (k *preserved) isUnnamed(pointer string) bool {
	return slices.ContainsFunc(k.unnamed, func(list string) bool { return strings.HasPrefix(pointer, list+"/") })
}

// around reports whether an object around a place is preserved: then it was not
// deleted.
func (k *preserved) around(pointer string) bool {
	for at := range k.entries {
		if at.kind == aValue && at.pointer != "" && strings.HasPrefix(pointer, at.pointer+"/") {
			return true
		}
	}
	return false
}

// find returns an entry, nil where there is none.
func (k *preserved) find(pointer string, kind kind) *entry {
	if k == nil {
		return nil
	}
	return k.entries[pathContext{pointer, kind}]
}

// places are those of all entries, sorted.
func (k *preserved) places() []pathContext {
	return slices.SortedFunc(maps.Keys(k.entries), func(a, b pathContext) int {
		if a.pointer != b.pointer {
			return strings.Compare(a.pointer, b.pointer)
		}
		return int(a.kind - b.kind)
	})
}

// under reports whether something below a place is preserved.
func (k *preserved) under(pointer string) bool {
	for at := range k.entries {
		if strings.HasPrefix(at.pointer, pointer+"/") {
			return true
		}
	}
	return false
}

// has reports whether a value is preserved, or an object around it.
func (k *preserved) has(pointer string) bool {
	return k.find(pointer, aValue) != nil || k.around(pointer)
}

// beside reports whether something in the object directly around a place is preserved.
func (k *preserved) beside(pointer string) bool {
	at := strings.LastIndex(pointer, "/")
	return at > 0 && k.under(pointer[:at])
}

// holds reports whether something below a place is preserved of a third version.
func (k *preserved) holds(pointer string) bool {
	return k != nil && slices.ContainsFunc(k.others, func(other *preserved) bool { return other.under(pointer) })
}

// members are the names of the values directly below a place.
func (k *preserved) members(at string) []string {
	var names []string
	for _, place := range k.below(at) {
		names = append(names, unescapes.Replace(place))
	}
	return names
}

// indexes are those of the elements that are preserved of a list, sorted.
func (k *preserved) indexes(at string) []int {
	var indexes []int
	for _, segment := range k.below(at) {
		if index, is := indexOf(segment); is {
			indexes = append(indexes, index)
		}
	}
	slices.Sort(indexes)
	return indexes
}

// below are the segments by which values directly below a place are known, sorted.
func (k *preserved) below(at string) []string {
	if k == nil {
		return nil
	}
	var segments []string
	for _, place := range k.places() {
		segment, under := strings.CutPrefix(place.pointer, at+"/")
		if under && place.kind == aValue && !strings.Contains(segment, "/") {
			segments = append(segments, segment)
		}
	}
	return segments
}

// indexOf reads the index of an element in a pointer.
func indexOf(segment string) (index int, is bool) {
	index, err := strconv.Atoi(segment)
	return index, err == nil && index >= 0 && strconv.Itoa(index) == segment
}
