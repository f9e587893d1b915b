// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"slices"
	"strconv"
)

// haveKeys reports whether keys tell all elements of a list apart. The API server
// sees to that when it writes, and leaves objects that it wrote before as they are.
func (h *hop) haveKeys(keys []string, held *node) bool {
	if len(keys) == 0 {
		return false
	}
	elements := h.membersOf(held)
	for _, element := range elements {
		for _, key := range keys {
			if element.get(key) == nil {
				return false
			}
		}
	}
	slices.SortFunc(elements, func(a, b *node) int { return h.compareKeys(keys, a, b) })
	for i := 1; i < len(elements); i++ {
		if h.compareKeys(keys, elements[i-1], elements[i]) == 0 {
			return false
		}
	}
	return true
}

// compareKeys orders two elements that have the keys.
func (h *hop) compareKeys(keys []string, a, b *node) int {
	for _, key := range keys {
		left, right := a.get(key), b.get(key)
		order := bytes.Compare(left.text, right.text)
		if left.isText() && right.isText() {
			order = bytes.Compare(h.decode(left.text), h.decode(right.text))
		}
		if order != 0 {
			return order
		}
	}
	return 0
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
