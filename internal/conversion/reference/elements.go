// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"strconv"
	"strings"
)

// convert converts the elements of a list or map of x in place.
func (e *elements) convert(x any, s *preserved, at string) *preserved {
	keep := newPreserved()
	at += e.place.pointer()
	if e.isObject {
		return e.convertObject(x, s, at)
	}
	switch held := find(x, e.path).(type) {
	case map[string]any:
		s.markUnnamed(at, !e.isMap)
		for name := range held {
			if e.isMap {
				y, more := e.direction.convert(held[name], s, at+"/"+escapes.Replace(name))
				held[name] = y
				keep.add(more)
			}
		}
	case []any:
		var indexes []int
		if (e.excludes != nil || e.excluded != nil) && !e.isMap {
			held, indexes = e.exclude(x, held, keep, at)
			defer e.removeAbsent(x, s.find(at, anAbsence))
		}
		switch {
		case e.isMap || len(held) == 0:
			s.markUnnamed(at, e.isMap)
		case e.haveUniqueKeys(held) || !e.direction.mayPreserve():
			ys := []any{}
			for i := range held {
				original := clone(held[i])
				y, more := e.direction.convert(held[i], s, at+"/"+selector(held[i], e.keys))
				if e.excluded != nil && e.excluded.of(y) {
					keep.put(at+"/"+strconv.Itoa(indexes[i]), anExcluded, e.direction.withoutAll(original), nil)
					continue
				}
				ys = append(ys, y)
				keep.add(more)
			}
			e.replace(x, held, ys)
		default:
			s.markUnnamed(at, len(e.keys) > 0)
			ys, more := e.convertWithoutKeys(held, s, at, indexes)
			e.replace(x, held, ys)
			keep.add(more)
		}
	}
	return keep
}

// convertObject converts a single object of x in place.
func (e *elements) convertObject(x any, s *preserved, at string) *preserved {
	held := find(x, e.path)
	if held == nil && !e.isNull && s.hasBelow(at) {
		held = map[string]any{}
	}
	if isList(held) {
		s.markUnnamed(at, true)
	}
	if !isObject(held) {
		return newPreserved()
	}
	y, keep := e.direction.convert(held, s, at)
	put(x.(map[string]any), e.path, y)
	return keep
}

// hasBelow reports whether anything below a pointer is preserved.
func (p *preserved) hasBelow(pointer string) bool {
	for key := range p.entries {
		if strings.HasPrefix(key.pointer, pointer+"/") {
			return true
		}
	}
	return false
}

// haveUniqueKeys reports whether all elements of a list have keys, and no two the same.
func (e *elements) haveUniqueKeys(list []any) bool {
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

// selector identifies an element by its keys: [name="http",protocol="TCP"].
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

// convertWithoutKeys converts elements without keys. The law applies to each as a whole: an element
// with anything to preserve is preserved whole, by its index, and restored in the place of an
// element that it converts to.
func (e *elements) convertWithoutKeys(list []any, s *preserved, at string, indexes []int) (ys []any, keep *preserved) {
	keep, ys = newPreserved(), []any{}
	restored := e.matched(list, s, at)
	for i := range list {
		if restored[i] != nil {
			ys = append(ys, clone(restored[i].value))
			continue
		}
		pointer := at + "/" + strconv.Itoa(len(ys))
		isMerged := s.mergeAt(at+"/"+strconv.Itoa(i), pointer)
		x := e.direction.withoutAll(list[i])
		y, more := e.direction.convert(clone(x), nil, "")
		if e.excluded != nil && e.excluded.of(y) && !isMerged {
			keep.put(at+"/"+strconv.Itoa(indexes[i]), anExcluded, x, nil)
			continue
		}
		for _, t := range more.taken {
			keep.taken = append(keep.taken, taken{pointer + t.pointer, t.common})
		}
		if ys = append(ys, y); len(more.entries) > 0 {
			keep.put(pointer, aValue, x, digest(e.to.value(y)))
		}
	}
	return ys, keep
}

// mergeAt changes the pointer of the element that is to be merged into another one, and reports whether
// there is one. Elements come in order, and none moves to a later place.
func (p *preserved) mergeAt(from, to string) bool {
	if p == nil {
		return false
	}
	for i := range p.merging {
		if p.merging[i].pointer == from && !p.merging[i].moved {
			p.merging[i].pointer, p.merging[i].moved = to, true
			return true
		}
	}
	return false
}

// matched returns the preserved element that each element is restored from, or nil. An element at
// its own index takes precedence; the others take the first matching index in the order of
// preservation. One that does not fit stays preserved if its own element was not edited.
func (e *elements) matched(list []any, s *preserved, at string) []*entry {
	matched := make([]*entry, len(list))
	var waiting, left, misfits []waitingElement
	for _, index := range s.indexes(at) {
		old := s.find(at+"/"+strconv.Itoa(index), aValue)
		if !e.accepts(old.value, s) {
			old.state, misfits = refused, append(misfits, waitingElement{old, index})
			continue
		}
		old.state = done
		if index < len(list) && e.becomes(old.value, list[index]) {
			matched[index] = old
		} else {
			waiting = append(waiting, waitingElement{old, index})
		}
	}
	became := e.unchanged(waiting, list, matched)
	for _, old := range e.unchanged(misfits, list, matched) {
		old.state = deferred
	}
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
	s.noteUnmatched(e, left, list, matched, became, at)
	return matched
}

// unchanged returns the preserved elements whose images are still at their indexes. They take
// precedence over others that an element could be restored from.
func (e *elements) unchanged(waiting []waitingElement, list []any, matched []*entry) map[int]*entry {
	became := map[int]*entry{}
	for _, old := range waiting {
		if i := old.index; i < len(list) && matched[i] == nil && old.images == digest(e.of.value(list[i])) {
			became[i] = old.entry
		}
	}
	return became
}

// waitingElement is a preserved element and its former index.
type waitingElement struct {
	*entry
	index int
}

// accepts reports whether a list can have a preserved element. The element may lack required fields
// if rules drop them.
func (e *elements) accepts(value any, s *preserved) bool {
	object, isObject := value.(map[string]any)
	if e.direction.schema == nil || !isObject {
		return s.accepts(e.direction.schema, value)
	}
	for name := range object {
		if member := e.direction.schema.Field(name); member == nil || !s.accepts(member, object[name]) {
			return false
		}
	}
	return true
}

// noteUnmatched selects the elements that preserved elements are merged into if no element converts
// to them: an element that still is their image.
func (p *preserved) noteUnmatched(e *elements, left []waitingElement, list []any, matched []*entry, became map[int]*entry, at string) {
	for _, old := range left {
		for i := range list {
			if matched[i] == nil && became[i] == nil && old.images == digest(e.of.value(list[i])) {
				became[i] = old.entry
				break
			}
		}
	}
	for i := range list {
		if old := became[i]; old != nil {
			p.merging = append(p.merging, merging{at + "/" + strconv.Itoa(i), old, e.isUnedited(old.value, list[i]), false})
		}
	}
}

// isUnedited reports whether an element has all that a preserved element converts to, and anything else
// in it has no place in y: then the element was not edited. It may lack what rules fill in if it also
// converts to a part of the preserved element.
func (e *elements) isUnedited(old, element any) bool {
	became, _ := e.direction.back.forward(old, nil, "")
	unfilled, _ := e.fragment.back.forward(old, nil, "")
	here, _ := e.direction.forward(became, nil, "")
	there, _ := e.direction.forward(element, nil, "")
	unfilledThere, _ := e.fragment.forward(element, nil, "")
	isContainer := isObject(old) && isObject(element) || isList(old) && isList(element)
	comesBack := within(unfilled, element) && within(unfilledThere, old)
	return isContainer && (within(became, element) || comesBack) && Equal(here, there)
}

// becomes reports whether an element is the image of a preserved element.
func (e *elements) becomes(old, element any) bool {
	y, _ := e.direction.back.forward(old, nil, "")
	return Equal(y, element)
}

// withoutAll returns x without dropped fields, in all elements below it too.
func (d *direction) withoutAll(x any) any {
	x = d.without(x)
	for i := range d.collections {
		e := &d.collections[i]
		switch held := find(x, e.path).(type) {
		case map[string]any:
			if e.isObject {
				put(x.(map[string]any), e.path, e.direction.withoutAll(held))
				continue
			}
			for name := range held {
				held[name] = e.direction.withoutAll(held[name])
			}
		case []any:
			for i := range held {
				held[i] = e.direction.withoutAll(held[i])
			}
		}
	}
	return x
}
