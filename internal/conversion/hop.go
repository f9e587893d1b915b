// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"maps"
	"slices"
	"strings"
)

// hop is one conversion between a spoke and the hub.
type hop struct {
	toHub bool
	// whole tells an object from a fragment of one, such as somebody applies.
	whole bool
	// restore is what was kept aside when the object left the version that it
	// now comes back to; keep is what the other side cannot express this time.
	restore, keep kept
	// imaged are the values of a scope that are kept and have an image all the same.
	imaged kept
	// alone are the places in a scope of values that came back without an image:
	// they will be kept again, and hold the objects around them in place.
	alone []Path
}

// reverse converts the other way, with nothing kept aside.
func (h *hop) reverse() *hop { return &hop{toHub: !h.toHub, whole: h.whole, keep: kept{}} }

// ends orders what the spoke has and what the hub has in the direction of the hop.
func ends[T any](h *hop, spoke, hub T) (from, to T) {
	if h.toHub {
		return spoke, hub
	}
	return hub, spoke
}

// scope converts one object in place; at is its place, as a JSON Pointer. All is
// read before anything is written, so that rules do not depend on their order.
// The element of a list of lists is a list: it has collections only.
func (h *hop) scope(scope *Scope, n *node, at string) {
	for i := range scope.Collections {
		h.collection(&scope.Collections[i], n, at)
	}
	if n.kind != object || !n.isExpanded() {
		return
	}
	h.drop(scope, n)
	shared := h.shared(scope, n)
	leaving, coming := ends(h, scope.OnlySpoke, scope.OnlyHub)
	restorable := h.restorable(coming, n)
	h.keepShells(leaving, n, at)
	moved := make([]*node, len(scope.Moves))
	for i, move := range scope.Moves {
		from, _ := ends(h, move.Spoke, move.Hub)
		moved[i] = n.detach(from)
	}
	images := make([][]*node, len(scope.Exchanges))
	for i := range scope.Exchanges {
		images[i] = h.exchange(&scope.Exchanges[i], n, at)
	}
	filled := h.defaults(scope, n)
	h.keepLeaves(leaving, n, at)
	for i, move := range scope.Moves {
		if moved[i] != nil {
			_, to := ends(h, move.Spoke, move.Hub)
			n.put(to, moved[i])
		}
	}
	for i := range images {
		_, to := ends(h, scope.Exchanges[i].Spoke, scope.Exchanges[i].Hub)
		for j, image := range images[i] {
			if image != nil {
				n.put(to[j].Path, image)
			}
		}
	}
	h.restoreLeaves(restorable, n, at)
	for i := range filled {
		filled[i].fill(h, n, at)
	}
	for i := range shared {
		h.tidy(&shared[i], n, at)
	}
	maps.Copy(h.keep, h.imaged)
	clear(h.imaged)
	h.alone = nil
	for i := range filled {
		filled[i].keep(h, n, at)
	}
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
		switch {
		case leaf.Shell:
			if shell := n.find(leaf.Path); shell != nil && len(shell.members) == 0 {
				n.detach(leaf.Path)
			}
		case leaf.Known != nil:
			h.keepUnknown(leaf, n, at)
		default:
			if value := n.detach(leaf.Path); value != nil {
				h.keep.add(at+leaf.Path.pointer(), value)
			}
		}
	}
}

// restorable are the leaves that may come back: the object above them is still
// there. One that rules make on the way does not count.
func (h *hop) restorable(coming []Leaf, n *node) []Leaf {
	if len(h.restore) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(coming), func(leaf Leaf) bool { return !n.holds(leaf.Path[:leaf.Anchor]) })
}

// restoreLeaves brings back what the other side lacked and has no value now.
func (h *hop) restoreLeaves(restorable []Leaf, n *node, at string) {
	for _, leaf := range restorable {
		if leaf.Known != nil {
			h.restoreUnknown(leaf, n, at)
			continue
		}
		value, found := h.restore[at+leaf.Path.pointer()]
		if !found || n.find(leaf.Path) != nil || !leaf.allows(value) {
			continue
		}
		n.put(leaf.Path, rawNode(value))
	}
}

// allows reports whether a kept value may come back. Users can write what is
// kept: a shell must not bring fields that have owners of their own, and a label
// that is no string would make the object unreadable.
func (l *Leaf) allows(value []byte) bool {
	switch {
	case l.Shell:
		return isBare(value)
	case l.Text:
		return isString(value)
	}
	return true
}

// isBare reports whether a value has nothing in it.
func isBare(value []byte) bool {
	n, err := parse(value, one)
	return err == nil && len(n.members) == 0
}

// keepUnknown takes away the fields that the schema of this side allows without
// naming them, where the other side allows none.
func (h *hop) keepUnknown(leaf Leaf, n *node, at string) {
	holder := n.find(leaf.Path)
	if holder == nil {
		return
	}
	for _, member := range slices.Clone(holder.members) {
		if !slices.Contains(leaf.Known, member.name) {
			h.keep.add(at+leaf.Path.pointer()+"/"+escapePointer(member.name), member.value)
			holder.remove(member.name)
		}
	}
}

func (h *hop) restoreUnknown(leaf Leaf, n *node, at string) {
	holder := n.find(leaf.Path)
	if holder != nil && !n.holds(leaf.Path) {
		return
	}
	for _, pointer := range slices.Sorted(maps.Keys(h.restore)) {
		escaped, under := strings.CutPrefix(pointer, at+leaf.Path.pointer()+"/")
		name := unescapePointer(escaped)
		if !under || strings.Contains(escaped, "/") || slices.Contains(leaf.Known, name) || holder != nil && holder.get(name) != nil {
			continue
		}
		n.put(append(slices.Clip(leaf.Path), name), rawNode(h.restore[pointer]))
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
