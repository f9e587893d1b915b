// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"hash/maphash"
	"math/bits"
	"slices"
	"strconv"
)

// haveKeys reports whether keys tell all elements of a list apart. The API server
// sees to that when it writes, and leaves objects that it wrote before as they are.
func (h *hop) haveKeys(keys []name, held *node) bool {
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
func (h *hop) hashKeys(keys []name, element *node) (hash uint64, all bool) {
	for i := range keys {
		value := element.get(&keys[i])
		if value == nil {
			return 0, false
		}
		text := value.text
		if value.isText() {
			text = h.decode(text)
		}
		hash = hash*31 + maphash.Bytes(keySeed, text)
	}
	return hash, true
}

func (h *hop) sameKeys(keys []name, a, b *node) bool {
	for i := range keys {
		if !h.same(a.get(&keys[i]), b.get(&keys[i])) {
			return false
		}
	}
	return true
}

// anonymous converts elements that have no name. One that cannot be expressed is
// kept whole. Coming back, a kept element is restored in the place of the one
// that it converts to: at its index, or else at the first other one.
func (h *hop) anonymous(c *collection, held *node, at *place) {
	restored := h.waiting(c, at).match(held)
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
			h.keep = append(h.keep[:before], entry{h.pointer(at, "", ""), whole})
		}
	}
	h.restore = restore
}

// dropAll drops in all of an element, before it is kept whole for other reasons.
func (w *way) dropAll(n *node) (dropped bool) {
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

// waiting are kept elements of one list, by what they convert to; those that
// convert to the same are in the order of their indexes.
type waiting map[string][]waiter

type waiter struct {
	index int
	kept  []byte
}

func (h *hop) waiting(c *collection, at *place) waiting {
	if len(h.restore) == 0 {
		return nil
	}
	at.index = 0
	prefix := bytes.TrimSuffix(h.pointer(at, "", ""), []byte("0"))
	elements := waiting{}
	for _, e := range h.restore {
		digits, under := bytes.CutPrefix(e.pointer, prefix)
		index, err := strconv.Atoi(string(digits))
		if !under || err != nil || index < 0 || strconv.Itoa(index) != string(digits) {
			continue
		}
		if element, err := h.parse(e.value, c.look); err == nil {
			converted := h.reversed(c.way.back, element)
			elements[converted] = append(elements[converted], waiter{index, e.value})
		}
	}
	for _, alike := range elements {
		slices.SortFunc(alike, func(a, b waiter) int { return a.index - b.index })
	}
	return elements
}

// reversed is what an element converts to the other way, with nothing kept aside.
func (h *hop) reversed(w *way, element *node) string {
	other := hops.Get().(*hop)
	defer other.release()
	other.whole = h.whole
	other.scope(w, element, nil)
	return canonical(element)
}

// match returns the kept element for each element that has one. All that are
// still at their index come first: an element that is alike must not take theirs.
func (w waiting) match(held *node) [][]byte {
	if len(w) == 0 {
		return nil
	}
	var matched [][]byte
	var texts []string
	for element := held.first; element != nil; element = element.next {
		index, text, kept := len(texts), canonical(element), []byte(nil)
		alike := w[text]
		if at := slices.IndexFunc(alike, func(k waiter) bool { return k.index == index }); at >= 0 {
			kept = alike[at].kept
			w[text] = slices.Delete(alike, at, at+1)
		}
		matched, texts = append(matched, kept), append(texts, text)
	}
	for i, text := range texts {
		if alike := w[text]; matched[i] == nil && len(alike) > 0 {
			matched[i], w[text] = alike[0].kept, alike[1:]
		}
	}
	return matched
}
