// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

// parents are the objects of a scope that hold what rules take and give, by their
// numbers, as far as they were found: many rules share one. The first is the
// scope's own.
type parents []*node

func (h *hop) parents(w *way, n *node) parents {
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
func (p parents) put(h *hop, field *slot, value *node) {
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
