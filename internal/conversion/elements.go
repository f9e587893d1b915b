// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"slices"
	"strconv"
	"strings"
)

// selector names an element of a list by its keys: [name="http",protocol="TCP"].
func selector(element *node, keys []string) string {
	var text strings.Builder
	for i, key := range keys {
		text.WriteString([]string{"[", ","}[min(i, 1)] + escapePointer(key) + "=")
		if value := element.get(key); value != nil {
			text.WriteString(escapePointer(canonical(value)))
		}
	}
	return text.String() + "]"
}

// anonymous converts elements that have no name. One that cannot be expressed is
// kept whole. Coming back, a kept element is restored in the place of the one
// that it converts to: at its index, or else at the first other one.
func (h *hop) anonymous(c *Collection, elements []*node, at string) {
	restored := h.waiting(c, at).match(elements)
	for i, element := range elements {
		if i < len(restored) && restored[i] != nil {
			elements[i] = rawNode(restored[i])
			continue
		}
		own := &hop{toHub: h.toHub, whole: h.whole, keep: kept{}}
		whole := element.src
		if own.dropAll(&c.Scope, element) {
			whole = element.append(nil)
		}
		own.scope(&c.Scope, element, "")
		if len(own.keep) > 0 {
			h.keep[at+strconv.Itoa(i)] = slices.Clone(whole)
		}
	}
}

// waiting are kept elements of one list, by what they convert to; those that
// convert to the same are in the order of their indexes.
type waiting map[string][]waiter

type waiter struct {
	index int
	kept  []byte
}

func (h *hop) waiting(c *Collection, at string) waiting {
	elements := waiting{}
	look := &look{}
	look.addScope(&c.Scope)
	look.merge()
	for pointer, raw := range h.restore {
		text, under := strings.CutPrefix(pointer, at)
		index, err := strconv.Atoi(text)
		if !under || err != nil || index < 0 || strconv.Itoa(index) != text {
			continue
		}
		element, err := parse(raw, look)
		if err != nil {
			continue
		}
		h.reverse().scope(&c.Scope, element, "")
		converted := canonical(element)
		elements[converted] = append(elements[converted], waiter{index, raw})
	}
	for _, alike := range elements {
		slices.SortFunc(alike, func(a, b waiter) int { return a.index - b.index })
	}
	return elements
}

// match returns the kept element for each element that has one. All that are
// still at their index come first: an element that is alike must not take theirs.
func (w waiting) match(elements []*node) [][]byte {
	if len(w) == 0 {
		return nil
	}
	matched, texts := make([][]byte, len(elements)), make([]string, len(elements))
	for i, element := range elements {
		texts[i] = canonical(element)
		alike := w[texts[i]]
		if at := slices.IndexFunc(alike, func(k waiter) bool { return k.index == i }); at >= 0 {
			matched[i] = alike[at].kept
			w[texts[i]] = slices.Delete(alike, at, at+1)
		}
	}
	for i := range elements {
		if alike := w[texts[i]]; matched[i] == nil && len(alike) > 0 {
			matched[i], w[texts[i]] = alike[0].kept, alike[1:]
		}
	}
	return matched
}
