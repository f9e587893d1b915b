// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import "slices"

// sharing is a shared object before a hop has changed it.
type sharing struct {
	*Shared
	// bare is the text of one that was there with nothing in it.
	bare []byte
	// lent is one that had nothing but values that have their place elsewhere on
	// the other side.
	lent bool
}

// shared looks at the shared objects of a scope before they change.
func (h *hop) shared(scope *Scope, n *node) []sharing {
	var all []sharing
	for i := range scope.Shared {
		s := sharing{Shared: &scope.Shared[i]}
		leaving, _ := ends(h, s.Spoke, s.Hub)
		if found := n.find(s.Path); found != nil {
			if s.lent = lent(found, s.Path, leaving); len(found.members) == 0 {
				s.bare = found.append(nil)
			}
		}
		all = append(all, s)
	}
	return all
}

// lent reports whether an object has something, and nothing but values at the paths.
func lent(n *node, at Path, paths []Path) bool {
	for _, member := range n.members {
		path := append(slices.Clip(at), member.name)
		exact := slices.ContainsFunc(paths, func(p Path) bool { return slices.Equal(p, path) })
		above := slices.ContainsFunc(paths, func(p Path) bool { return p.has(path) })
		if !exact && (!above || !lent(member.value, path, paths)) {
			return false
		}
	}
	return len(n.members) > 0
}

// tidy takes an object away that was there for values alone that are elsewhere
// now, and keeps one aside that this would take away on the way back. Deeper
// objects come first.
func (h *hop) tidy(s *sharing, n *node, at string) {
	now := n.find(s.Path)
	if now == nil || now.kind != object || !now.isExpanded() {
		return
	}
	pointer := at + s.Path.pointer()
	if s.lent && len(now.members) == 0 && !h.keep.under(pointer) {
		n.detach(s.Path)
		if raw, found := h.restore[pointer]; found && isBare(raw) {
			n.put(s.Path, rawNode(raw))
		}
	}
	_, entered := ends(h, s.Spoke, s.Hub)
	held := slices.ContainsFunc(h.alone, func(path Path) bool { return path.has(s.Path) })
	if s.bare != nil && !held && lent(now, s.Path, entered) {
		h.keep[pointer] = s.bare
	}
}
