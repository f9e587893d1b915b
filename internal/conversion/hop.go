// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"slices"
	"strconv"
	"strings"
)

// hop is one conversion between a spoke and the hub.
type hop struct {
	toHub bool
	// restore is what was kept aside when the object left the version that it
	// now comes back to; keep is what the other side cannot express this time.
	restore, keep kept
}

// reverse converts the other way, with nothing kept aside.
func (h *hop) reverse() *hop { return &hop{toHub: !h.toHub, keep: kept{}} }

// ends orders a pair of paths in the direction of the hop.
func (h *hop) ends(spoke, hub Path) (from, to Path) {
	if h.toHub {
		return spoke, hub
	}
	return hub, spoke
}

// oneSided are the fields of the version we come from, and of the one we go to,
// that the other lacks.
func (h *hop) oneSided(scope *Scope) (leaving, coming []Leaf) {
	if h.toHub {
		return scope.OnlySpoke, scope.OnlyHub
	}
	return scope.OnlyHub, scope.OnlySpoke
}

// scope converts one object in place; at is its place, as a JSON Pointer. All is
// read before anything is written, so that rules do not depend on their order.
func (h *hop) scope(scope *Scope, n *node, at string) {
	if n.kind != object || !n.isExpanded() {
		return
	}
	for i := range scope.Collections {
		h.collection(&scope.Collections[i], n, at)
	}
	leaving, coming := h.oneSided(scope)
	h.keepShells(leaving, n, at)
	moved := make([]*node, len(scope.Moves))
	for i, move := range scope.Moves {
		from, _ := h.ends(move.Spoke, move.Hub)
		moved[i] = n.detach(from)
	}
	formatted := make([]formatted, len(scope.Formats))
	for i := range scope.Formats {
		formatted[i] = h.format(&scope.Formats[i], n, at)
	}
	h.keepLeaves(leaving, n, at)
	for i, move := range scope.Moves {
		if moved[i] != nil {
			_, to := h.ends(move.Spoke, move.Hub)
			n.put(to, moved[i])
		}
	}
	for i := range formatted {
		formatted[i].put(n)
	}
	h.restoreLeaves(coming, n, at)
}

// keepShells keeps objects that only this side has where they are empty.
// Otherwise what is in them says that they are there.
func (h *hop) keepShells(leaving []Leaf, n *node, at string) {
	for _, leaf := range leaving {
		if !leaf.Shell {
			continue
		}
		if shell := n.find(leaf.Path); shell != nil && len(shell.members) == 0 {
			h.keep.add(at+leaf.Path.pointer(), n.detach(leaf.Path))
		}
	}
}

// keepLeaves takes away what the other side lacks, and the shells that are empty now.
func (h *hop) keepLeaves(leaving []Leaf, n *node, at string) {
	for _, leaf := range leaving {
		if leaf.Shell {
			if shell := n.find(leaf.Path); shell != nil && len(shell.members) == 0 {
				n.detach(leaf.Path)
			}
			continue
		}
		if value := n.detach(leaf.Path); value != nil {
			h.keep.add(at+leaf.Path.pointer(), value)
		}
	}
}

// restoreLeaves brings back what the other side lacked, where the object above
// it is still there and has no value of its own.
func (h *hop) restoreLeaves(coming []Leaf, n *node, at string) {
	if len(h.restore) == 0 {
		return
	}
	for _, leaf := range coming {
		value, found := h.restore[at+leaf.Path.pointer()]
		if !found || n.find(leaf.Path) != nil {
			continue
		}
		if above := n.find(leaf.Path[:leaf.Anchor]); above != nil && above.kind == object && above.isExpanded() {
			n.put(leaf.Path, rawNode(value))
		}
	}
}

// collection converts the elements of a list or map.
func (h *hop) collection(c *Collection, n *node, at string) {
	elements := n.find(c.Path)
	if elements == nil {
		return
	}
	at += c.Path.pointer() + "/"
	switch {
	case c.Map:
		for _, member := range elements.members {
			h.scope(&c.Scope, member.value, at+escapePointer(member.name))
		}
	case len(c.Keys) > 0:
		for _, element := range elements.elements {
			h.scope(&c.Scope, element, at+selector(element, c.Keys))
		}
	default:
		h.anonymous(c, elements.elements, at)
	}
}

// selector names an element of a list by its keys: [name="http",protocol="TCP"].
func selector(element *node, keys []string) string {
	var text strings.Builder
	for i, key := range keys {
		text.WriteString([]string{"[", ","}[min(i, 1)] + escapePointer(key) + "=")
		if value := element.get(key); value != nil {
			text.WriteString(escapePointer(string(value.append(nil))))
		}
	}
	return text.String() + "]"
}

// anonymous converts elements that have no name. One that cannot be expressed is
// kept whole. Coming back, a kept element is restored in the place of the one
// that it converts to: at its index first, then at the first other one.
func (h *hop) anonymous(c *Collection, elements []*node, at string) {
	waiting := h.waiting(c, len(elements), at)
	for i, element := range elements {
		if s := match(waiting, i, element); s != nil {
			elements[i] = s
			continue
		}
		own := &hop{toHub: h.toHub, keep: kept{}}
		own.scope(&c.Scope, element, "")
		if len(own.keep) > 0 {
			h.keep[at+strconv.Itoa(i)] = slices.Clone(element.src)
		}
	}
}

// kin is a kept element, and what it converts to.
type kin struct {
	index     int
	kept      *node
	converted *node
	used      bool
}

// waiting are the kept elements of one list, by index.
func (h *hop) waiting(c *Collection, length int, at string) []*kin {
	if len(h.restore) == 0 {
		return nil
	}
	look := &look{}
	look.addScope(&c.Scope)
	var waiting []*kin
	for pointer, raw := range h.restore {
		index, err := strconv.Atoi(strings.TrimPrefix(pointer, at))
		if !strings.HasPrefix(pointer, at) || err != nil || index < 0 {
			continue
		}
		converted, err := parse(raw, look)
		if err != nil {
			continue
		}
		h.reverse().scope(&c.Scope, converted, "")
		waiting = append(waiting, &kin{index: index, kept: rawNode(raw), converted: converted})
	}
	slices.SortFunc(waiting, func(a, b *kin) int { return a.index - b.index })
	return waiting
}

// match returns the kept element that converts to this one, or nil.
func match(waiting []*kin, index int, element *node) *node {
	var found *kin
	for _, k := range waiting {
		if k.used || !equal(k.converted, element) {
			continue
		}
		if k.index == index {
			found = k
			break
		}
		if found == nil {
			found = k
		}
	}
	if found == nil {
		return nil
	}
	found.used = true
	return found.kept
}
