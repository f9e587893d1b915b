// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

// parents caches the objects of a scope that hold the fields of rules, by their number: many rules
// share one. The first is the object of the scope.
type parents []*node

func (s *step) parents(d *direction, n *node) parents {
	p := parents(s.lists.take(d.parents))
	p[0] = n
	return p
}

// take removes a field and returns its value, nil if there is none.
func (p parents) take(field *slot) *node {
	parentPath, name := field.path.split()
	parent := p[field.parent]
	if parent == nil {
		if parent = p[0].find(parentPath); parent == nil {
			return nil
		}
		p[field.parent] = parent
	}
	taken := parent.remove(name)
	p.lose(taken)
	return taken
}

// put sets a field, and creates its missing parent objects.
func (p parents) put(s *step, field *slot, value *node) {
	parentPath, name := field.path.split()
	if p[field.parent] == nil {
		p[field.parent] = s.makeObject(p[0], parentPath)
	}
	p.lose(p[field.parent].set(name, value))
}

// lose drops the cached objects if a removed value may have contained one of them.
func (p parents) lose(removed *node) {
	if removed != nil && removed.open {
		clear(p[1:])
	}
}

// sharedObject is the state of a shared object before a step changes it.
type sharedObject struct {
	*sharedRule
	// emptyText is the text of an object that was empty, nil if it was not.
	emptyText []byte
	// onlyOutgoing is true if the object had nothing but values that rules take out of it.
	onlyOutgoing bool
}

// findShared records the shared objects of a scope before they change.
func (s *step) findShared(d *direction, n *node) []sharedObject {
	all := s.sharedObjects.take(len(d.shared))
	for i := range d.shared {
		all[i].sharedRule = &d.shared[i]
		if found := n.find(d.shared[i].path); found != nil {
			if all[i].onlyOutgoing = found.holdsOnlyShared(d.shared[i].outgoing); found.first == nil {
				all[i].emptyText = s.bytes(found)
			}
		}
	}
	return all
}

// holdsOnlyShared reports whether an object is not empty, and has nothing but values at the paths.
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
	return t.members.lookup(m)
}

// removeEmptied removes an object that existed only for values that have now moved elsewhere. It
// preserves an empty object that the way back would remove. Deeper objects come first. since is
// the number of entries before those of the scope.
func (o *sharedObject) removeEmptied(s *step, n *node, pc *pathContext, since int) {
	now := n.find(o.path)
	if now == nil || !now.isObject() {
		return
	}
	if o.onlyOutgoing && now.first == nil && !s.hasValuesBelow(pc, o.pointer, since) && !anyBelow(s.filledBack, o.path) {
		n.detach(o.path)
		if e := s.preserved(pc, o.pointer, valueEntry); e != nil && isEmptyValue(e.value) {
			e.state = consumed
			bare := s.raw(e.value)
			bare.open = bare.kind == object // a default may be filled into it
			s.put(n, o.path, bare)
		}
	}
	if o.emptyText != nil && !anyBelow(s.withoutImage, o.path) && now.holdsOnlyShared(o.incoming) {
		s.preserving = append(s.preserving, entry{pointer: s.pointer(pc, o.pointer), value: o.emptyText})
	}
}

// anyBelow reports whether one of the paths leads through the object at path.
func anyBelow(paths []segments, path segments) bool {
	for _, below := range paths {
		if below.hasPrefix(path) {
			return true
		}
	}
	return false
}
