// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

// shared is a shared object before a hop has changed it.
type shared struct {
	*sharing
	// bare is the text of one that was there with nothing in it.
	bare []byte
	// lent is one that had nothing but values that have their place elsewhere on
	// the other side.
	lent bool
}

// shared looks at the shared objects of a scope before they change.
func (h *hop) shared(w *way, n *node) []shared {
	all := h.sharings.take(len(w.shared))
	for i := range w.shared {
		all[i].sharing = &w.shared[i]
		if found := n.find(w.shared[i].path); found != nil {
			if all[i].lent = found.lent(w.shared[i].leaving); found.first == nil {
				all[i].bare = h.bytes(found)
			}
		}
	}
	return all
}

// lent reports whether an object has something, and nothing but values at the paths.
func (n *node) lent(paths *trie) bool {
	if !n.isObject() {
		return false
	}
	for m := n.first; m != nil; m = m.next {
		path := paths.member(m)
		if path == nil || !path.end && !m.lent(path) {
			return false
		}
	}
	return n.first != nil
}

func (t *trie) member(m *node) *trie {
	if t == nil {
		return nil
	}
	return t.members.of(m)
}

// tidy takes an object away that was there for values alone that are elsewhere
// now, and preserves one that this would take away on the way back. Deeper objects
// come first. Since counts the entries before those of the scope.
func (s *shared) tidy(h *hop, n *node, at *place, since int) {
	now := n.find(s.path)
	if now == nil || !now.isObject() {
		return
	}
	if s.lent && now.first == nil && !h.holdsPlace(at, s.pointer, since) {
		n.detach(s.path)
		if e := h.preserved(at, s.pointer, aValue); e != nil && isBare(e.value) {
			e.fate = consumed
			bare := h.raw(e.value)
			bare.open = bare.kind == object // a default may have its place in it
			h.put(n, s.path, bare)
		}
	}
	if s.bare != nil && !h.holdsAlone(s.path) && now.lent(s.entering) {
		h.keep = append(h.keep, entry{pointer: h.pointer(at, s.pointer), value: s.bare})
	}
}

// holdsAlone reports whether a value in an object came back without an image.
func (h *hop) holdsAlone(path steps) bool {
	for _, alone := range h.alone {
		if alone.has(path) {
			return true
		}
	}
	return false
}
