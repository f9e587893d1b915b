// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
)

// merger merges entries into a converted object that is completely parsed. It does not change live
// data.
type merger struct {
	step      *step
	root      *node
	direction *direction
	// entry is being merged; kind and digest are its own. exact is true if its pointer names an
	// element by the current index.
	kind   entryKind
	digest []byte
	entry  *entry
	exact  bool
	// restore are all entries of the target version.
	restore entries
	// remaining are the entries that stay preserved; added are the nodes made of other entries.
	remaining entries
	added     map[*node]bool
	// These caches speed up large objects and lists: members by name, elements by selector and by
	// digest.
	members   map[*node]map[string]*node
	selectors map[*node]map[string]*node
	digests   map[*node]*digests
	// keys are the names, as pointer segments, of the keys by which elements were looked up.
	keys map[string]bool
	// lists are the elements of lists by index.
	lists map[*node][]*node
	// blocked are the fields that entries must not fill, by object.
	blocked map[*node][]blockedField
}

// newMerger returns a merger for an object in the target version of the direction. restore are all
// entries of that version.
func newMerger(s *step, root *node, d *direction, restore entries) *merger {
	return &merger{
		step: s, root: root, direction: d, restore: restore,
		added: map[*node]bool{}, members: map[*node]map[string]*node{}, selectors: map[*node]map[string]*node{},
		digests: map[*node]*digests{}, keys: map[string]bool{}, lists: map[*node][]*node{},
	}
}

// merge merges one entry into the object. The merger has the paths of the version, without places.
func (m *merger) merge(schema *shape.Schema, of *entry, exact bool) {
	moved := *of
	e := &moved
	e.pointer, e.anchor = m.direction.targetPlaces.moved(e.pointer, e.anchor, false)
	m.entry, m.kind, m.digest, m.exact = e, e.kind, e.images, exact
	if !isString(m.digest) {
		m.digest = nil // the images are fields of a rule
	}
	value, err := m.step.parse(e.value, openAll)
	if err != nil {
		value = m.step.raw(e.value) // an absence, or an object with a duplicate name
	}
	path := splitPointer(e.pointer)
	switch {
	case path[0] == "metadata":
		m.metadata(path, value)
	case path[0] == "status" && m.step.refusesStatus, m.kind == valueEntry && len(path) == 1 && IsEnvelope(path[0]):
		m.keepPreserved("", path, value)
	default:
		m.mergeAt(m.root, schema, "", path, value)
	}
}

// mergeAt merges a value into a node. pointer is that of the node, path the rest of the way to the
// value.
func (m *merger) mergeAt(n *node, schema *shape.Schema, pointer string, path []string, value *node) {
	switch {
	case len(path) == 0 && m.entry.state == unedited && value.kind != scalar:
		n.kind, n.open, n.text, n.first, n.last = value.kind, true, value.text, value.first, value.last
		delete(m.lists, n)
	case len(path) == 0:
		m.fillMissing(n, schema, pointer, value)
	case schema == nil:
		m.keepPreserved(pointer, path, value)
	case n.kind == object:
		member := schema.Field(unescapePointer(path[0]))
		if next := m.member(n, path[0]); next != nil && len(path) == 1 && m.isFilled(next, pointer+"/"+path[0]) {
			m.replaceDefault(next, member, pointer, path, value)
		} else if next != nil {
			m.mergeAt(next, member, pointer+"/"+path[0], path[1:], value)
		} else {
			m.add(n, member, pointer, path, value)
		}
	case n.kind == array:
		if element := m.element(n, schema, path, value); element != nil {
			m.mergeAt(element, schema.Items(), pointer+"/"+path[0], path[1:], value)
		} else {
			m.keepPreserved(pointer, path, value)
		}
	default:
		m.keepPreserved(pointer, path, value)
	}
}

// isFilled reports whether the member holds a default that a rule filled in. A default is not live
// data.
func (m *merger) isFilled(n *node, pointer string) bool {
	d := m.direction.defaultAt(m.direction.targetPlaces.toRules([]byte(pointer)), false)
	return d != nil && m.kind == valueEntry && !m.added[n] && m.step.isDefault(n, d)
}

// replaceDefault replaces a default by a value.
func (m *merger) replaceDefault(n *node, schema *shape.Schema, pointer string, path []string, value *node) {
	if schema == nil || !m.step.fitsShape(schema, m.step.bytes(value)) {
		m.keepPreserved(pointer, path, value)
		return
	}
	n.kind, n.open, n.untouched, n.text, n.first, n.last = value.kind, value.open, false, value.text, value.first, value.last
	m.added[n] = true
	delete(m.members, n)
}

// add adds a member, with its missing parent objects, if the schema allows it. A deleted element
// is not added again.
func (m *merger) add(n *node, member *shape.Schema, pointer string, path []string, value *node) {
	if !reaches(member, path[1:]) {
		m.keepPreserved(pointer, path, value)
		return
	}
	if m.kind == absenceEntry || m.isPartOfLive(m.direction.targetPlaces.toRules([]byte(pointer+"/"+strings.Join(path, "/")))) {
		return // no rule fills in the field any more, or live data supersedes it
	}
	text := m.step.bytes(value)
	for i := len(path) - 1; i > 0; i-- {
		text = append(append(append(appendQuoted([]byte{'{'}, unescapePointer(path[i])), ':'), text...), '}')
	}
	if m.kind != valueEntry || !m.step.fitsShape(member, text) {
		m.keepPreserved(pointer, path, value)
		return
	}
	child, err := m.step.parse(text, openAll)
	if err != nil {
		child = m.step.raw(text)
	}
	if m.isBlocked(n, path[0], child) {
		m.keepPreserved(pointer, path, value)
		return
	}
	m.added[child] = true
	m.moveBlocked(n, path[0], child)
	name := newName(unescapePointer(path[0]))
	n.set(&name, child)
	if cache := m.members[n]; cache != nil {
		cache[path[0]] = child
	}
	if m.keys[path[0]] {
		clear(m.selectors) // the member may be the key of an element
	}
}

// isPartOfLive reports whether a rule computes the field, which has a pointer of the rules, together with
// others that have live data: then the field is absent on purpose.
func (m *merger) isPartOfLive(pointer []byte) bool {
	scope, rule := m.direction.ruleTo(pointer)
	if rule == nil {
		return false
	}
	fields := rule.to
	for i := range fields {
		if scope+fields[i].pointer == string(pointer) {
			continue
		}
		live := m.live([]byte(scope + fields[i].pointer))
		if live != nil && !m.added[live] && !m.isRestored(live, scope+fields[i].pointer) {
			return true
		}
	}
	return false
}

// isRestored reports whether the value at the pointer is the preserved one.
func (m *merger) isRestored(live *node, pointer string) bool {
	e := m.restore.find([]byte(pointer), valueEntry)
	return e != nil && e.state == consumed && m.step.same(live, m.step.raw(e.value))
}

// reaches reports whether the schema has a field at the path, which only has names.
func reaches(schema *shape.Schema, path []string) bool {
	for _, segment := range path {
		if schema == nil || schema.IsList() || strings.HasPrefix(segment, "[") || isIndex([]byte(segment)) && schema.Items() != nil && !schema.IsObject() {
			return false
		}
		schema = schema.Field(unescapePointer(segment))
	}
	return schema != nil
}

// fillMissing adds to a live value what it lacks of the preserved one.
func (m *merger) fillMissing(n *node, schema *shape.Schema, pointer string, value *node) {
	switch {
	case m.kind != valueEntry:
	case schema == nil:
		m.keepPreserved(pointer, nil, value)
	case n.kind == object && value.kind == object:
		for member := value.first; member != nil; {
			next := member.next // mergeAt may move the member
			m.mergeAt(n, schema, pointer, []string{escapePointer(member.decodedName())}, member)
			member = next
		}
	case n.kind == array && value.kind == array && schema.Keys() != nil:
		keys := Path(schema.Keys()).segments()
		for element := value.first; element != nil; element = element.next {
			selector := string(appendSelector(nil, element, keys))
			if live := m.selected(n, keys, selector); live != nil {
				m.fillMissing(live, schema.Items(), pointer+"/"+selector, element)
			}
		}
	}
}

// element returns the element of a list to which the path leads. An index belongs to an element
// that had no keys: it stands for the element that now has the same keys, or that is still the
// result of the preserved one.
func (m *merger) element(list *node, schema *shape.Schema, path []string, value *node) *node {
	segment := path[0]
	switch keys := Path(schema.Keys()).segments(); {
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
	return nil
}

// isPartOf reports whether n has nothing that other lacks. Lists must have the same length.
func (n *node) isPartOf(other *node) bool {
	if n.kind == array && other.kind == array {
		a, b := n.first, other.first
		for ; a != nil && b != nil && a.isPartOf(b); a, b = a.next, b.next {
		}
		return a == b // both nil: the lengths are the same
	}
	if n.kind != object || other.kind != object {
		return canonical(n) == canonical(other)
	}
	for member := n.first; member != nil; member = member.next {
		name := newName(member.decodedName())
		if same := other.get(&name); same == nil || !member.isPartOf(same) {
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
	case m.kind != valueEntry, CheckMetadata(full) != nil, !isString(text),
		full.IsLabel() && len(validation.IsValidLabelValue(decodeString(text))) > 0:
		m.keepPreserved("", path, value)
	case m.root.find(full.segments()) == nil:
		m.step.put(m.root, full.segments(), m.step.raw(text))
	}
}

func (m *merger) keepPreserved(pointer string, path []string, value *node) {
	for _, segment := range path {
		pointer += "/" + segment
	}
	if pointer == string(m.entry.pointer) {
		m.remaining = append(m.remaining, *m.entry)
		return
	}
	m.remaining = append(m.remaining, entry{pointer: []byte(pointer), kind: m.kind, value: m.step.bytes(value), images: m.digest, anchor: m.entry.anchor})
}
