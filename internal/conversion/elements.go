// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"hash/maphash"
	"math/bits"
	"slices"
	"strconv"

	"github.com/conversion-operator/conversion-operator/internal/conversion/shape"
)

// haveKeys reports whether keys tell all elements of a list apart. The API server
// sees to that when it writes, and leaves objects that it wrote before unchanged.
func (h *step) haveKeys(keys []name, held *node) bool {
	if len(keys) == 0 {
		return false
	}
	size := 8
	for element := held.first; element != nil; element = element.next {
		size += 2
	}
	// A hash table of elements, of which at least half stays empty.
	size = 1 << bits.Len(uint(size))
	table := h.lists.take(size)
	for element := held.first; element != nil; element = element.next {
		hash, all := h.hashKeys(keys, element)
		if !all {
			return false
		}
		at := int(hash) & (size - 1)
		for ; table[at] != nil; at = (at + 1) & (size - 1) {
			if h.sameKeys(keys, table[at], element) {
				return false
			}
		}
		table[at] = element
	}
	return true
}

var keySeed = maphash.MakeSeed()

// hashKeys reports whether an element has all keys, too.
func (h *step) hashKeys(keys []name, element *node) (hash uint64, all bool) {
	for i := range keys {
		value := element.get(&keys[i])
		if value == nil {
			return 0, false
		}
		text := value.text
		switch {
		case value.isText():
			text = h.decode(text)
		case value.kind != scalar:
			text = []byte(h.canonical(value))
		}
		hash = hash*31 + maphash.Bytes(keySeed, text)
	}
	return hash, true
}

func (h *step) sameKeys(keys []name, a, b *node) bool {
	for i := range keys {
		if !h.same(a.get(&keys[i]), b.get(&keys[i])) {
			return false
		}
	}
	return true
}

// anonymous converts elements that have no name. One that cannot be expressed is
// preserved whole. Coming back, a preserved element is restored in the place of the
// one that it converts to: at its index, or else at the first other one. If rules
// have changed since, none converts to it: then the one that still is what it became
// gets what it lacks (carried.go).
func (h *step) anonymous(c *collection, held *node, at *pathContext) {
	restored := h.waiting(c, at).match(h, held, at)
	restore := h.restore
	h.restore = nil
	for element := held.first; element != nil; element, at.index = element.next, at.index+1 {
		if at.index < len(restored) && restored[at.index] != nil {
			element.open, element.text = false, restored[at.index]
			element.kind, element.first, element.last = kindOf(element.text), nil, nil
			continue
		}
		whole, before := element.text, len(h.keep)
		if c.way.dropAll(element) {
			whole = h.bytes(element)
		}
		h.scope(c.way, element, at)
		if len(h.keep) > before {
			h.keep = append(h.keep[:before], entry{pointer: h.pointer(at, ""), value: whole, images: h.digest(element)})
		}
	}
	h.restore = restore
}

// dropAll drops in all of an element, before it is kept whole for other reasons.
func (w *direction) dropAll(n *node) (dropped bool) {
	for i := range w.collections {
		held := n.find(w.collections[i].path)
		if held == nil {
			continue
		}
		for element := held.first; element != nil; element = element.next {
			dropped = w.collections[i].way.dropAll(element) || dropped
		}
	}
	for _, path := range w.drops {
		dropped = n.detach(path) != nil || dropped
	}
	return dropped
}

// waiting are the preserved elements of one list.
type waiting struct {
	all []waiter
	// alike are their numbers by what they convert to, in the order of their indexes.
	alike map[string][]int
}

type waiter struct {
	*entry
	index int
	taken bool
}

func (h *step) waiting(c *collection, at *pathContext) *waiting {
	if len(h.restore) == 0 {
		return nil
	}
	at.index = 0
	prefix := bytes.TrimSuffix(h.pointer(at, ""), []byte("0"))
	w := &waiting{alike: map[string][]int{}}
	below := h.restore.below(prefix)
	for i := range below {
		digits := string(below[i].pointer[len(prefix):])
		index, err := strconv.Atoi(digits)
		if err == nil && index >= 0 && strconv.Itoa(index) == digits && below[i].kind == aValue {
			w.all = append(w.all, waiter{entry: &below[i], index: index})
		}
	}
	slices.SortFunc(w.all, func(a, b waiter) int { return a.index - b.index })
	for i := range w.all {
		e := w.all[i].entry
		element, err := h.parse(e.value, c.look)
		switch {
		case err != nil || !h.fitsElement(c.way.shape, element, e.value):
			e.fate = refused
			w.all[i].taken = true
		default:
			e.fate = consumed
			converted := h.reversed(c.way.back, element)
			w.alike[converted] = append(w.alike[converted], i)
		}
	}
	return w
}

// fitsElement reports whether a list can have an element. One of which rules give
// something up may lack what is required.
func (h *step) fitsElement(s *shape.Schema, element *node, value []byte) bool {
	if s == nil || element.kind != object {
		return h.fitsShape(s, value)
	}
	members, err := h.parse(value, one)
	if err != nil {
		return false
	}
	for m := members.first; m != nil; m = m.next {
		if field := s.Field(m.label()); field == nil || !h.fitsShape(field, m.text) {
			return false
		}
	}
	return true
}

// reversed is what an element converts to the other way, with nothing preserved.
func (h *step) reversed(w *direction, element *node) string {
	other := h.another()
	defer other.release()
	other.scope(w, element, nil)
	return h.canonical(element)
}

// match returns the preserved element for each element that has one. All that are
// still at their index come first, be it that rules of now make something else of them:
// an element that is alike must not take theirs.
func (w *waiting) match(h *step, held *node, at *pathContext) [][]byte {
	if w == nil || len(w.all) == 0 {
		return nil
	}
	var matched [][]byte
	var texts []string
	for element := held.first; element != nil; element = element.next {
		text := h.canonical(element)
		matched, texts = append(matched, w.takeAt(text, len(texts))), append(texts, text)
	}
	unchanged := w.unchanged(matched, texts)
	for i, text := range texts {
		if matched[i] == nil && unchanged[i] < 0 {
			matched[i] = w.takeFirst(text)
		}
	}
	w.leave(h, matched, unchanged, texts, at)
	return matched
}

// unchanged takes the elements that still are, at their index, what they became by rules
// of then. For each element it has the number of the preserved one, -1 where there is none.
func (w *waiting) unchanged(matched [][]byte, texts []string) []int {
	found := slices.Repeat([]int{-1}, len(texts))
	for i := range w.all {
		waits := &w.all[i]
		if waits.taken || waits.index >= len(texts) || matched[waits.index] != nil {
			continue
		}
		if bytes.Equal(waits.images, digestOf(texts[waits.index])) {
			found[waits.index], waits.taken = i, true
		}
	}
	return found
}

// takeAt takes the element that converts to a text and was at an index.
func (w *waiting) takeAt(text string, index int) []byte {
	alike := w.alike[text]
	at, found := slices.BinarySearchFunc(alike, index, func(i, index int) int { return w.all[i].index - index })
	if !found || w.all[alike[at]].taken {
		return nil
	}
	w.all[alike[at]].taken = true
	return w.all[alike[at]].value
}

// takeFirst takes the first element that converts to a text and waits.
func (w *waiting) takeFirst(text string) []byte {
	for alike := w.alike[text]; len(alike) > 0; {
		first := &w.all[alike[0]]
		alike = alike[1:]
		w.alike[text] = alike
		if !first.taken {
			first.taken = true
			return first.value
		}
	}
	return nil
}

// leave notes for elements that still are what a preserved one became, by rules of
// then, that it is to be merged into them. One of format 1 does not tell.
func (w *waiting) leave(h *step, matched [][]byte, unchanged []int, texts []string, at *pathContext) {
	byDigest := map[string][]int{}
	for i := range w.all {
		if waits := &w.all[i]; !waits.taken {
			byDigest[string(waits.images)] = append(byDigest[string(waits.images)], i)
		}
	}
	for index, text := range texts {
		i := unchanged[index]
		if len(byDigest) > 0 && matched[index] == nil && i < 0 {
			digest := string(digestOf(text))
			if alike := byDigest[digest]; len(alike) > 0 {
				i, byDigest[digest] = alike[0], alike[1:]
			}
		}
		if i >= 0 {
			at.index = index
			w.merge(h, i, text, at)
		}
	}
	at.index = 0
	for _, i := range byDigest[""] {
		w.all[i].fate = unmatched
	}
}

// merge notes that a preserved element is to be merged into the one at a place.
func (w *waiting) merge(h *step, i int, text string, at *pathContext) {
	e := entry{pointer: h.pointer(at, ""), value: w.all[i].value, images: w.all[i].images}
	if h.isUnedited(at.in, e.value, text) {
		e.fate = unedited
	}
	h.merging = append(h.merging, e)
}

// isUnedited reports whether an element says all that a preserved one converts to, and
// whether what it says besides, which was merged into it, has no place on the other
// side. Then the preserved one is what it is there: any client could have preserved it.
func (h *step) isUnedited(c *collection, preserved []byte, text string) bool {
	element, errElement := h.parse(preserved, c.look)
	live, errLive := h.parse([]byte(text), everything)
	if errElement != nil || errLive != nil || element.kind == scalar || live.kind != element.kind {
		return false
	}
	became := h.reversed(c.way.back, element)
	converted, errConverted := h.parse([]byte(became), everything)
	if errConverted != nil || !converted.within(live) {
		return false
	}
	return h.again(c, became) == h.again(c, text)
}

// again is what the text of an element converts to, with nothing preserved.
func (h *step) again(c *collection, text string) string {
	element, err := h.parse([]byte(text), c.look)
	if err != nil {
		return ""
	}
	return h.reversed(c.way, element)
}

// digest tells later whether an element still is what it is now: a JSON string of
// the first 16 hexadecimal digits of the SHA-256 of its canonical text.
func (h *step) digest(element *node) []byte { return digestOf(h.canonical(element)) }

func digestOf(canonical string) []byte {
	sum := sha256.Sum256([]byte(canonical))
	const digits = 16
	return []byte(`"` + hex.EncodeToString(sum[:])[:digits] + `"`)
}
