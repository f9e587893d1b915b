// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

// takenField is a field that is absent at one version, as that cannot have the live data
// that the field, or those that a rule computes it from, has at the other. An entry in
// its place would win over that data on the way back.
type takenField struct {
	// pointer is its place, and path what is left of that below an object that is there.
	pointer []byte
	path    []string
	// common is the shape of values that are those of the other version, nil for all.
	common *Common
}

func (h *hop) noteTaken(pointer []byte, common *Common) {
	if h.restoring {
		h.taken = append(h.taken, takenField{pointer: pointer, common: common})
	}
}

// noteTaken notes the fields of an object that are taken.
func (m *merger) noteTaken() {
	m.taken = map[*node][]takenField{}
	for _, f := range m.h.taken {
		f.path = splitPointer(f.pointer)
		m.noteBelow(m.root, f)
	}
}

// noteBelow notes a field at the innermost object around it.
func (m *merger) noteBelow(n *node, f takenField) {
	for len(f.path) > 1 {
		next := m.follow(n, f.path[:1])
		if next == nil {
			break
		}
		n, f.path = next, f.path[1:]
	}
	if n.kind == object {
		m.taken[n] = append(m.taken[n], f)
	}
}

// takes reports whether a member that is made would be, or have, a field that is taken.
func (m *merger) takes(n *node, segment string, made *node) bool {
	for _, f := range m.taken[n] {
		if f.path[0] != segment {
			continue
		}
		value := m.follow(made, f.path[1:])
		if value != nil && (f.common == nil || f.common.fits(&m.h.arena, m.h.bytes(value))) {
			return true
		}
	}
	return false
}

// noteMade notes the fields that are taken in a member that was made.
func (m *merger) noteMade(n *node, segment string, made *node) {
	for _, f := range m.taken[n] {
		if f.path[0] == segment && len(f.path) > 1 {
			f.path = f.path[1:]
			m.noteBelow(made, f)
		}
	}
}
