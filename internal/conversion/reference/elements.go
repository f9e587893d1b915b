// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"strconv"
	"strings"
)

// convert converts the elements of a list or map of x, in place.
func (e *elements) convert(x any, s *preserved, at string) *preserved {
	keep := newPreserved()
	at += e.path.pointer()
	switch held := find(x, e.path).(type) {
	case map[string]any:
		s.unname(at, !e.isMap)
		for name := range held {
			if e.isMap {
				y, more := e.way.convert(held[name], s, at+"/"+escapes.Replace(name))
				held[name] = y
				keep.add(more)
			}
		}
	case []any:
		switch {
		case e.isMap || len(held) == 0:
			s.unname(at, e.isMap)
		case e.named(held) || !e.way.keeps():
			for i := range held {
				y, more := e.way.convert(held[i], s, at+"/"+selector(held[i], e.keys))
				held[i] = y
				keep.add(more)
			}
		default:
			s.unname(at, len(e.keys) > 0)
			return e.anonymous(held, s, at)
		}
	}
	return keep
}

// named reports whether the elements of a list are known by their keys: all have
// them, and no two have the same.
func (e *elements) named(list []any) bool {
	seen := map[string]bool{}
	for _, element := range list {
		for _, key := range e.keys {
			if find(element, path{key}) == none {
				return false
			}
		}
		name := selector(element, e.keys)
		if seen[name] {
			return false
		}
		seen[name] = true
	}
	return len(e.keys) > 0
}

// selector names an element by its keys: [name="http",protocol="TCP"].
func selector(element any, keys []string) string {
	var parts []string
	for _, key := range keys {
		part := escapes.Replace(key) + "="
		if value := find(element, path{key}); value != none {
			part += escapes.Replace(canonical(value))
		}
		parts = append(parts, part)
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// anonymous converts elements that have no keys. They obey the law as a whole:
// one of which something would be preserved is preserved whole, by its index, and
// is restored in the place of an element that it converts to.
func (e *elements) anonymous(list []any, s *preserved, at string) *preserved {
	keep := newPreserved()
	restored := e.matched(list, s, at)
	for i := range list {
		if restored[i] != nil {
			list[i] = clone(restored[i].value)
			continue
		}
		x := e.way.withoutAll(list[i])
		y, more := e.way.convert(x, nil, "")
		for _, t := range more.taken {
			keep.taken = append(keep.taken, taken{at + "/" + strconv.Itoa(i) + t.pointer, t.common})
		}
		if list[i] = y; len(more.entries) > 0 {
			keep.put(at+"/"+strconv.Itoa(i), aValue, x, digest(y))
		}
	}
	return keep
}

// matched finds for each element what is preserved of it, or nil. An element that
// is still at its index comes first; of all others, those that were preserved first
// take the first place.
func (e *elements) matched(list []any, s *preserved, at string) []*entry {
	matched := make([]*entry, len(list))
	var waiting, left []waits
	for _, index := range s.indexes(at) {
		old := s.find(at+"/"+strconv.Itoa(index), aValue)
		if !e.accepts(old.value, s) {
			old.fate = refused
			continue
		}
		old.fate = done
		if index < len(list) && e.becomes(old.value, list[index]) {
			matched[index] = old
		} else {
			waiting = append(waiting, waits{old, index})
		}
	}
	became := unchanged(waiting, list, matched)
	for _, old := range waiting {
		if became[old.index] == old.entry {
			continue
		}
		place := -1
		for i := range list {
			if matched[i] == nil && became[i] == nil && e.becomes(old.value, list[i]) {
				place = i
				break
			}
		}
		if place < 0 {
			left = append(left, old)
		} else {
			matched[place] = old.entry
		}
	}
	s.leave(e, left, list, matched, became, at)
	return matched
}

// unchanged are those that still are what they became, at their indexes. They come before
// others that an element was, too.
func unchanged(waiting []waits, list []any, matched []*entry) map[int]*entry {
	became := map[int]*entry{}
	for _, old := range waiting {
		if i := old.index; i < len(list) && matched[i] == nil && old.images == digest(list[i]) {
			became[i] = old.entry
		}
	}
	return became
}

// waits is an element that is preserved, and the index that it had.
type waits struct {
	*entry
	index int
}

// accepts reports whether a list can have a preserved element. One of which rules give
// something up may lack what is required.
func (e *elements) accepts(value any, s *preserved) bool {
	object, isObject := value.(map[string]any)
	if e.way.schema == nil || !isObject {
		return s.accepts(e.way.schema, value)
	}
	for name := range object {
		if member := e.way.schema.Field(name); member == nil || !s.accepts(member, object[name]) {
			return false
		}
	}
	return true
}

// leave notes into which elements those are to be merged to which none converts:
// into one that still is what they became. Format 1 does not tell what that was.
func (k *preserved) leave(e *elements, left []waits, list []any, matched []*entry, became map[int]*entry, at string) {
	for _, old := range left {
		if old.images == nil {
			old.fate = unmatched
			continue
		}
		for i := range list {
			if matched[i] == nil && became[i] == nil && old.images == digest(list[i]) {
				became[i] = old.entry
				break
			}
		}
	}
	for i := range list {
		if old := became[i]; old != nil {
			k.merging = append(k.merging, merging{at + "/" + strconv.Itoa(i), old, e.isUnedited(old.value, list[i])})
		}
	}
}

// isUnedited reports whether an element has all that a preserved one converts to, and
// whether what it has besides has no place in y: then that is what it is in y.
func (e *elements) isUnedited(old, element any) bool {
	became, _ := e.way.back.forward(old, nil, "")
	here, _ := e.way.forward(became, nil, "")
	there, _ := e.way.forward(element, nil, "")
	isContainer := isObject(old) && isObject(element) || isList(old) && isList(element)
	return isContainer && within(became, element) && Equal(here, there)
}

// becomes reports whether an element that is preserved is what an element was
// on the other side.
func (e *elements) becomes(old, element any) bool {
	y, _ := e.way.back.forward(old, nil, "")
	return Equal(y, element)
}

// withoutAll is x without what is given up in it and in all elements below it.
func (w *direction) withoutAll(x any) any {
	x = w.without(x)
	for i := range w.collections {
		e := &w.collections[i]
		switch held := find(x, e.path).(type) {
		case map[string]any:
			for name := range held {
				held[name] = e.way.withoutAll(held[name])
			}
		case []any:
			for i := range held {
				held[i] = e.way.withoutAll(held[i])
			}
		}
	}
	return x
}
