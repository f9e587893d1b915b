// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

// parents are the objects of a scope that hold what rules take and give, by their
// numbers, as far as they were found: many rules share one. The first is the
// scope's own.
type parents []*node

func (h *step) parents(w *direction, n *node) parents {
	p := parents(h.lists.take(w.parents))
	p[0] = n
	return p
}

// take takes the value of a field away and returns it, nil where there is none.
func (p parents) take(field *slot) *node {
	above, name := field.path.split()
	parent := p[field.parent]
	if parent == nil {
		if parent = p[0].find(above); parent == nil {
			return nil
		}
		p[field.parent] = parent
	}
	taken := parent.remove(name)
	p.lose(taken)
	return taken
}

// put sets the value of a field and makes the objects on the way.
func (p parents) put(h *step, field *slot, value *node) {
	above, name := field.path.split()
	if p[field.parent] == nil {
		p[field.parent] = h.makeObject(p[0], above)
	}
	p.lose(p[field.parent].set(name, value))
}

// lose forgets what was found if an object is gone that may have held it.
func (p parents) lose(gone *node) {
	if gone != nil && gone.open {
		clear(p[1:])
	}
}

// shared is a shared object before a step has changed it.
type shared struct {
	*sharing
	// bare is the text of one that was there with nothing in it.
	bare []byte
	// borrowed is one that had nothing but values that have their place elsewhere on
	// the other side.
	borrowed bool
}

// shared looks at the shared objects of a scope before they change.
func (h *step) shared(w *direction, n *node) []shared {
	all := h.sharings.take(len(w.shared))
	for i := range w.shared {
		all[i].sharing = &w.shared[i]
		if found := n.find(w.shared[i].path); found != nil {
			if all[i].borrowed = found.holdsOnlyShared(w.shared[i].leaving); found.first == nil {
				all[i].bare = h.bytes(found)
			}
		}
	}
	return all
}

// borrowed reports whether an object has something, and nothing but values at the paths.
func (n *node) holdsOnlyShared(paths *trie) bool {
	if !n.isObject() {
		return false
	}
	for m := n.first; m != nil; m = m.next {
		path := paths.member(m)
		if path == nil || !path.end && !m.holdsOnlyShared(path) {
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
func (s *shared) tidy(h *step, n *node, at *pathContext, since int) {
	now := n.find(s.path)
	if now == nil || !now.isObject() {
		return
	}
	if s.borrowed && now.first == nil && !h.holdsPlace(at, s.pointer, since) {
		n.detach(s.path)
		if e := h.preserved(at, s.pointer, aValue); e != nil && isBare(e.value) {
			e.fate = consumed
			bare := h.raw(e.value)
			bare.open = bare.kind == object // a default may have its place in it
			h.put(n, s.path, bare)
		}
	}
	if s.bare != nil && !h.isOnlyHolder(s.path) && now.holdsOnlyShared(s.entering) {
		h.keep = append(h.keep, entry{pointer: h.pointer(at, s.pointer), value: s.bare})
	}
}

// isOnlyHolder reports whether a value in an object came back without an image.
func (h *step) isOnlyHolder(path segments) bool {
	for _, alone := range h.alone {
		if alone.has(path) {
			return true
		}
	}
	return false
}
