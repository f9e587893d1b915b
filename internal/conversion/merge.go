// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/conversion-operator/conversion-operator/internal/conversion/shape"
)

// merger brings entries into an object that rules have converted, parsed as a whole.
// Live data stays unchanged.
type merger struct {
	h    *step
	root *node
	way  *direction
	// whole is the entry, kind and digest are those of the entry that is merged. Exact tells that its
	// pointer names an element by the index that it has now.
	// Unmatched is that of an element that was edited if it is not found.
	kind             entryKind
	digest           []byte
	whole            *entry
	exact, unmatched bool
	// restore are all entries of the version of the object.
	restore entries
	// left are the entries that are carried on, added what was made of others.
	left  entries
	added map[*node]bool
	// What was looked up in large objects and lists is found at once: members by
	// their names, elements by their selectors, and by what they are.
	members   map[*node]map[string]*node
	selectors map[*node]map[string]*node
	digests   map[*node]*digests
	// keys are the names, as segments, by which elements were looked up.
	keys map[string]bool
	// lists are the elements of lists, by their indexes.
	lists map[*node][]*node
	// taken are the fields of objects that entries must not fill.
	taken map[*node][]takenField
}

// newMerger makes the merger of an object at the version to which a way leads, of which
// some entries are restored.
func newMerger(h *step, root *node, w *direction, restore entries) *merger {
	return &merger{
		h: h, root: root, way: w, restore: restore,
		added: map[*node]bool{}, members: map[*node]map[string]*node{}, selectors: map[*node]map[string]*node{},
		digests: map[*node]*digests{}, keys: map[string]bool{}, lists: map[*node][]*node{},
	}
}

// merge brings one entry into the object.
func (m *merger) merge(s *shape.Schema, e *entry, exact bool) {
	m.whole, m.kind, m.digest, m.exact, m.unmatched = e, e.kind, e.images, exact, e.fate == unmatched
	if !isString(m.digest) {
		m.digest = nil // fields of a rule
	}
	value, err := m.h.parse(e.value, everything)
	if err != nil {
		value = m.h.raw(e.value) // an absence, or a name is twice in it
	}
	path := splitPointer(e.pointer)
	switch {
	case path[0] == "metadata":
		m.metadata(path, value)
	case path[0] == "status" && m.h.refusesStatus, m.kind == aValue && len(path) == 1 && IsEnvelope(path[0]):
		m.carry("", path, value)
	default:
		m.into(m.root, s, "", path, value)
	}
}

// into merges a value at the rest of its path below a node, whose own pointer is at.
func (m *merger) into(n *node, s *shape.Schema, at string, path []string, value *node) {
	switch {
	case len(path) == 0 && m.whole.fate == unedited && value.kind != scalar:
		n.kind, n.open, n.text, n.first, n.last = value.kind, true, value.text, value.first, value.last
		delete(m.lists, n)
	case len(path) == 0:
		m.fill(n, s, at, value)
	case s == nil:
		m.carry(at, path, value)
	case n.kind == object:
		member := s.Field(unescapePointer(path[0]))
		if next := m.member(n, path[0]); next != nil && len(path) == 1 && m.isFilled(next, at+"/"+path[0]) {
			m.refill(next, member, at, path, value)
		} else if next != nil {
			m.into(next, member, at+"/"+path[0], path[1:], value)
		} else {
			m.add(n, member, at, path, value)
		}
	case n.kind == array:
		if element := m.element(n, s, path, value); element != nil {
			m.into(element, s.Items(), at+"/"+path[0], path[1:], value)
		} else if !m.unmatched {
			m.carry(at, path, value)
		}
	default:
		m.carry(at, path, value)
	}
}

// isFilled reports whether a member is a default that a rule has filled in: that is no
// live data.
func (m *merger) isFilled(n *node, pointer string) bool {
	d := m.way.defaultAt([]byte(pointer), false)
	return d != nil && m.kind == aValue && !m.added[n] && m.h.same(n, m.h.raw(d.value))
}

// refill puts a value in the place of a default.
func (m *merger) refill(n *node, s *shape.Schema, at string, path []string, value *node) {
	if s == nil || !m.h.fitsShape(s, m.h.bytes(value)) {
		m.carry(at, path, value)
		return
	}
	n.kind, n.open, n.untouched, n.text, n.first, n.last = value.kind, value.open, false, value.text, value.first, value.last
	m.added[n] = true
	delete(m.members, n)
}

// add makes a member, and those on the way to its place, where the schema knows them
// and accepts what is made. An element that is gone is not made again.
func (m *merger) add(n *node, member *shape.Schema, at string, path []string, value *node) {
	if !reaches(member, path[1:]) {
		m.carry(at, path, value)
		return
	}
	if m.kind == anAbsence || m.isPartOfLive(at+"/"+strings.Join(path, "/")) {
		return // no rule fills the field any more, or live data supersedes it
	}
	made := m.h.bytes(value)
	for i := len(path) - 1; i > 0; i-- {
		made = append(append(append(appendQuoted([]byte{'{'}, unescapePointer(path[i])), ':'), made...), '}')
	}
	if m.kind != aValue || !m.h.fitsShape(member, made) {
		m.carry(at, path, value)
		return
	}
	child, err := m.h.parse(made, everything)
	if err != nil {
		child = m.h.raw(made)
	}
	if m.takes(n, path[0], child) {
		m.carry(at, path, value)
		return
	}
	m.added[child] = true
	m.noteMade(n, path[0], child)
	name := newName(unescapePointer(path[0]))
	n.set(&name, child)
	if known := m.members[n]; known != nil {
		known[path[0]] = child
	}
	if m.keys[path[0]] {
		clear(m.selectors) // an element may have got its key
	}
}

// isPartOfLive reports whether a rule computes a field together with others that are
// live: the field would be absent by that.
func (m *merger) isPartOfLive(pointer string) bool {
	scope, rule := m.way.ruleTo([]byte(pointer))
	if rule == nil {
		return false
	}
	fields := rule.to
	for i := range fields {
		if scope+fields[i].pointer == pointer {
			continue
		}
		live := m.follow(m.root, splitPointer([]byte(scope+fields[i].pointer)))
		if live != nil && !m.added[live] && !m.isRestored(live, scope+fields[i].pointer) {
			return true
		}
	}
	return false
}

// isRestored reports whether a value at a pointer is the one that was preserved of it.
func (m *merger) isRestored(live *node, pointer string) bool {
	e := m.restore.find([]byte(pointer), aValue)
	return e != nil && e.fate == consumed && m.h.same(live, m.h.raw(e.value))
}

// reaches reports whether a schema has a field at the end of a path of names.
func reaches(s *shape.Schema, path []string) bool {
	for _, segment := range path {
		if s == nil || s.IsList() || strings.HasPrefix(segment, "[") || isIndex([]byte(segment)) && s.Items() != nil && !s.IsObject() {
			return false
		}
		s = s.Field(unescapePointer(segment))
	}
	return s != nil
}

// fill gives a value that is there what it lacks.
func (m *merger) fill(n *node, s *shape.Schema, at string, value *node) {
	switch {
	case m.kind != aValue:
	case s == nil:
		m.carry(at, nil, value)
	case n.kind == object && value.kind == object:
		for member := value.first; member != nil; {
			next := member.next // it may get another place
			m.into(n, s, at, []string{escapePointer(member.label())}, member)
			member = next
		}
	case n.kind == array && value.kind == array && s.Keys() != nil:
		keys := Path(s.Keys()).segments()
		for element := value.first; element != nil; element = element.next {
			selector := string(appendSelector(nil, element, keys))
			if live := m.selected(n, keys, selector); live != nil {
				m.fill(live, s.Items(), at+"/"+selector, element)
			}
		}
	}
}

// element finds the element of a list to which a path leads. An index is of one that
// had no keys: it is the one that has the same keys now, or still is what the element
// became. Format 1 did not tell that: there, it is the one at the index if it has
// nothing but what the element had.
func (m *merger) element(list *node, s *shape.Schema, path []string, value *node) *node {
	segment := path[0]
	switch keys := Path(s.Keys()).segments(); {
	case strings.HasPrefix(segment, "["):
		return m.selected(list, selectorKeys(segment), segment)
	case !isIndex([]byte(segment)):
		return nil
	case m.exact:
		return m.elementAt(list, segment)
	case len(keys) > 0 && len(path) == 1:
		return m.selected(list, keys, string(appendSelector(nil, value, keys)))
	case m.digest != nil:
		return m.digested(list, segment)
	}
	if element := m.elementAt(list, segment); m.kind == aValue && element != nil && element.within(value) {
		return element
	}
	return nil
}

// within reports whether an object has nothing but what another one has. Lists have as
// many elements, and those nothing else.
func (n *node) within(other *node) bool {
	if n.kind == array && other.kind == array {
		a, b := n.first, other.first
		for ; a != nil && b != nil && a.within(b); a, b = a.next, b.next {
		}
		return a == b // both are at their ends
	}
	if n.kind != object || other.kind != object {
		return canonical(n) == canonical(other)
	}
	for member := n.first; member != nil; member = member.next {
		name := newName(member.label())
		if same := other.get(&name); same == nil || !member.within(same) {
			return false
		}
	}
	return true
}

// metadata merges a label or an annotation.
func (m *merger) metadata(path []string, value *node) {
	full := make(Path, len(path))
	for i, segment := range path {
		full[i] = unescapePointer(segment)
	}
	text := value.text
	switch {
	case m.kind != aValue, CheckMetadata(full) != nil, !isString(text),
		full.IsLabel() && len(validation.IsValidLabelValue(decodeString(text))) > 0:
		m.carry("", path, value)
	case m.root.find(full.segments()) == nil:
		m.h.put(m.root, full.segments(), m.h.raw(text))
	}
}

func (m *merger) carry(at string, path []string, value *node) {
	for _, segment := range path {
		at += "/" + segment
	}
	if at == string(m.whole.pointer) {
		m.left = append(m.left, *m.whole)
		return
	}
	m.left = append(m.left, entry{pointer: []byte(at), kind: m.kind, value: m.h.bytes(value), images: m.digest, anchor: m.whole.anchor})
}
