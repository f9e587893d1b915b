// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// exclusion describes the elements that the other side cannot have: those without a value at a path, or
// with another one than these.
type exclusion struct {
	Without path     `json:"without"`
	Values  []string `json:"values"`
}

func (x *exclusion) of(element any) bool {
	value := find(element, x.Without)
	text, isText := value.(string)
	isOther := len(x.Values) > 0 && (!isText || !slices.Contains(x.Values, text))
	return value == none || value == nil || isOther
}

// exclude removes elements from a list of x and preserves them. It returns the list without them, and the
// indexes that the others had.
func (e *elements) exclude(x any, list []any, keep *preserved, at string) (rest []any, indexes []int) {
	rest = []any{}
	for i, element := range list {
		if e.excludes != nil && e.excludes.of(element) {
			keep.put(at+"/"+strconv.Itoa(i), anExcluded, e.direction.withoutAll(element), nil)
		} else {
			rest, indexes = append(rest, element), append(indexes, i)
		}
	}
	put(x.(map[string]any), e.path, rest)
	return rest, indexes
}

// replace replaces the elements of a list of x by converted ones.
func (e *elements) replace(x any, list, ys []any) {
	if len(ys) == len(list) {
		copy(list, ys)
	} else {
		put(x.(map[string]any), e.path, ys)
	}
}

// removeAbsent removes a list of which no element remains if its absence in y is preserved.
func (e *elements) removeAbsent(x any, absence *entry) {
	if absence == nil {
		return
	}
	absence.state = done
	if list, _ := find(x, e.path).([]any); len(list) == 0 {
		remove(x, e.path)
	}
}

// takeExcluded moves the excluded elements of p to another one.
func (p *preserved) takeExcluded() *preserved {
	excluded := newPreserved()
	for key, e := range p.entries {
		if key.kind == anExcluded {
			excluded.entries[key] = e
			delete(p.entries, key)
		}
	}
	return excluded
}

// addExcluded adds excluded elements. One whose index is taken gets the next free one.
func (p *preserved) addExcluded(other *preserved) {
	for _, key := range other.places() {
		e := other.entries[key]
		for list, index, is := elementIn(key.pointer); is && p.entries[key] != nil; {
			index++
			key.pointer = list + "/" + strconv.Itoa(index)
		}
		p.entries[key] = e
	}
}

// elementIn returns the list and the index in a pointer of an element.
func elementIn(pointer string) (list string, index int, is bool) {
	list = directory(pointer)
	if list == "" || !strings.HasPrefix(pointer, "/") {
		return "", 0, false
	}
	index, is = indexOf(pointer[len(list)+1:])
	return list, index, is
}

// putBack puts excluded elements into the lists of y, in the order of their indexes. It adds those that do
// not fit to left.
func (d *direction) putBack(y map[string]any, excluded, s, left, keep *preserved) {
	lists := map[string][]int{}
	for key := range excluded.entries {
		if list, index, is := elementIn(key.pointer); is {
			lists[list] = append(lists[list], index)
		} else {
			left.entries[key] = excluded.entries[key]
		}
	}
	for _, list := range slices.Sorted(maps.Keys(lists)) {
		indexes := slices.Sorted(slices.Values(lists[list]))
		for _, index := range indexes {
			key := entryKey{list + "/" + strconv.Itoa(index), anExcluded}
			value := excluded.entries[key].value
			if !d.putBackOne(y, list, index, value, s, left, keep) {
				left.entries[key] = excluded.entries[key]
			}
		}
	}
}

// putBackOne puts one element back, and returns false if it stays preserved.
func (d *direction) putBackOne(y map[string]any, list string, index int, value any, s, left, keep *preserved) bool {
	at := segments(d.yPlaces.reversed().pointer(list))
	items := d.schema
	for _, segment := range at {
		switch {
		case items == nil:
			return false
		case items.IsList():
			items = items.Items()
		default:
			items = items.Field(unescapes.Replace(segment))
		}
	}
	if items == nil || !items.IsList() || at[0] == "metadata" || at[0] == "status" && s.refusesStatus {
		return false
	}
	holder, isObject := follow(y, at[:len(at)-1]).(map[string]any)
	if !isObject {
		return !left.preservesParentOf(list) && !s.leaving.preservesParentOf(list) // otherwise the parent was deleted
	}
	name := unescapes.Replace(at[len(at)-1])
	live, exists := holder[name]
	held, isList := live.([]any)
	if exists && !isList || !(&elements{direction: &direction{schema: items.Items()}}).accepts(value, s) {
		return false
	}
	if !exists {
		keep.put(list, anAbsence, nil, nil)
	}
	holder[name] = slices.Insert(slices.Clone(held), min(index, len(held)), clone(value))
	return true
}
