// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"slices"
	"sync"
)

// step is one conversion between a spoke and the hub, with its memory.
type step struct {
	arena
	// hubPlaces are the places of the hub.
	hubPlaces places
	// objectName and objectNamespace are those of the object, as JSON; nil if it has none.
	objectName, objectNamespace []byte
	// complete is false for a fragment of an object, such as server-side apply sends.
	complete bool
	// dropsOverflow drops values that the annotations have no room for, instead of failing.
	dropsOverflow bool
	// truncates omits what annotations have no room for at the end of the conversion.
	truncates bool
	// restore are the sorted entries that were preserved when the object left the target version;
	// preserving are the values that the target version cannot express.
	restore, preserving entries
	// withImage are the preserved values of the current scope that have an image, nonetheless, in
	// the target version.
	withImage entries
	// merging are entries of elements without keys to which no element converts any more, with the
	// indexes of the elements that are still what they had become.
	merging entries
	// lenient restores values that their fields do not allow; misfitRestored is set if there was
	// one.
	lenient, misfitRestored bool
	// refusesStatus is Ruleset.RefusesStatus.
	refusesStatus bool
	// keyless are the pointers of lists whose elements lack their keys, and of lists where a map
	// is expected, or maps where a list is.
	keyless [][]byte
	// blocked are fields that are absent in the target version because it does not allow their
	// value in the source version. They are only recorded if restoring is set.
	blocked   []blockedField
	restoring bool
	// sourceEntries are the sorted entries of the source version.
	sourceEntries entries
	// foreignEntries are the sorted entries of every version but the target.
	foreignEntries []entries
	// withoutImage are the paths, in the current scope, of values that were restored without an
	// image, or of the values that these convert to. They keep their parent objects from being
	// removed.
	withoutImage []segments
	// absent are the source fields of the current scope that the way back may compute although they
	// are absent. filledBack are the paths of source values that it computes from nothing: they also
	// keep their parent objects from being removed.
	absent     []absentFields
	filledBack []segments
	// restorable are the fields of the current scope that may be restored.
	restorable []*arrivingField
	// sharedObjects and defaults are memory like that of the arena.
	sharedObjects bump[sharedObject]
	defaults      bump[defaultedField]
	// ownMeter is the meter of the arena, unless the step is nested in another one.
	ownMeter meter

	outcome Outcome
}

var stepPool = sync.Pool{New: func() any { return new(step) }}

func (s *step) release() {
	s.clearEntries()
	s.meter, s.ownMeter, s.hubPlaces = nil, meter{}, nil
	s.objectName, s.objectNamespace = nil, nil
	s.sharedObjects.reset()
	s.defaults.reset()
	if s.reset() {
		stepPool.Put(s)
	}
}

// clearEntries forgets the entries of the previous step.
func (s *step) clearEntries() {
	s.restore, s.preserving, s.withImage, s.withoutImage = s.restore[:0], s.preserving[:0], s.withImage[:0], s.withoutImage[:0]
	s.merging, s.keyless, s.sourceEntries, s.foreignEntries = s.merging[:0], s.keyless[:0], nil, nil
	s.blocked, s.restoring = s.blocked[:0], false
	s.absent, s.filledBack = s.absent[:0], s.filledBack[:0]
}

// convertScope converts one object in place. It takes all values before it writes any, so that the
// order of rules does not matter. An element of a list of lists is itself a list: it has
// collections only.
func (s *step) convertScope(d *direction, n *node, pc *pathContext) {
	if s.spend(scopeUnits) {
		return
	}
	since := len(s.preserving)
	for i := range d.collections {
		s.convertCollection(&d.collections[i], n, pc)
	}
	if !n.isObject() {
		return
	}
	for _, path := range d.drops {
		n.detach(path)
	}
	if !d.preserves {
		s.putMoved(d, s.parents(d, n), s.takeMoved(d, s.parents(d, n)))
		return
	}
	s.openNulls(d, n, pc)
	shared := s.findShared(d, n)
	s.findRestorable(d, n)
	s.preserveEmptyShells(d, n, pc)
	from := s.parents(d, n)
	moved := s.takeMoved(d, from)
	images := s.runExchanges(d, from, pc)
	filled := s.takeDefaults(d, n)
	for i := range d.holders {
		s.removeOneSided(&d.holders[i], n, pc)
	}
	to := s.parents(d, n)
	s.putMoved(d, to, moved)
	s.putImages(d, to, images)
	s.restoreLeaves(n, pc)
	for i := range filled {
		filled[i].restoreOrFill(s, n, pc)
	}
	for i := range shared {
		shared[i].removeEmptied(s, n, pc, since)
	}
	s.preserving = append(s.preserving, s.withImage...)
	s.withImage, s.withoutImage, s.filledBack = s.withImage[:0], s.withoutImage[:0], s.filledBack[:0]
	for i := range filled {
		filled[i].preserve(s, n, pc)
	}
	s.preserveAbsences(n, pc)
}

func (s *step) takeMoved(d *direction, from parents) []*node {
	moved := s.lists.take(len(d.moves))
	for i := range moved {
		moved[i] = from.take(&d.moves[i].from)
	}
	return moved
}

func (s *step) putMoved(d *direction, to parents, moved []*node) {
	for i, value := range moved {
		if value != nil {
			to.put(s, &d.moves[i].to, value)
		}
	}
}

// preserveEmptyShells preserves the empty objects that only the source version has. An object that
// is not empty is implied by its content. Outer objects come first in shells.
func (s *step) preserveEmptyShells(d *direction, n *node, pc *pathContext) {
	for i := range slices.Backward(d.shells) {
		shell := n.find(d.shells[i].path)
		if shell != nil && shell.first == nil {
			s.preserve(pc, &d.shells[i], valueEntry, s.bytes(n.detach(d.shells[i].path)))
		}
	}
}

// removeOneSided removes the fields that the target version lacks, and the shells that are now
// empty.
func (s *step) removeOneSided(h *holder, n *node, pc *pathContext) {
	held := n.find(h.path)
	if held == nil || !held.isObject() {
		return
	}
	held.keepOnly(func(m *node) bool {
		field := h.fields.lookup(m)
		switch {
		case field.when == 0 && (h.named == nil || h.named.lookup(m)), field.when == removeIfNull && !m.isNull(),
			field.when == removeIfUncommon && h.common.lookup(m).fits(&s.arena, s.bytes(m)):
			return true
		case field.when == removeIfEmpty:
			return m.first != nil
		}
		name := s.nameOf(m)
		start := len(s.text)
		s.text = append(append(pc.append(s.text), h.pointer...), '/')
		s.text = appendPointerName(s.text, name)
		pointer := s.textFrom(start)
		s.spendPlace(len(pointer))
		anchor := h.unknownAnchor
		if field.when != 0 {
			anchor = field.anchor
		}
		e := entry{pointer: pointer, value: s.bytes(m)}
		if anchor < len(h.path) {
			e.anchor = s.anchor(pc, anchor)
		}
		s.preserving = append(s.preserving, e)
		if field.when == removeIfNull || field.when == removeIfUncommon {
			s.noteBlocked(pointer, h.common.lookup(m))
		}
		return false
	})
}

// openNulls turns nulls into objects where a value is restored into them: server-side apply leaves
// null in place of an object without fields.
func (s *step) openNulls(d *direction, n *node, pc *pathContext) {
	if len(s.restore) == 0 {
		return
	}
	for i := range d.arriving {
		s.openNull(&d.arriving[i].slot, n, pc)
	}
	for i := range d.exchanges {
		for j := range d.exchanges[i].to {
			s.openNull(&d.exchanges[i].to[j], n, pc)
		}
	}
	for i := range d.defaults {
		s.openNull(&d.defaults[i].slot, n, pc)
	}
}

func (s *step) openNull(field *slot, n *node, pc *pathContext) {
	if field.nullAnchor || len(field.anchor) == 0 {
		return
	}
	parent := n.find(field.anchor)
	if parent != nil && parent.isNull() && s.preserved(pc, field.pointer, valueEntry) != nil {
		parent.kind, parent.open, parent.text = object, true, []byte("{}")
	}
}

// findRestorable finds the fields that may be restored: their anchor still exists. It runs before
// rules create objects, because those do not count.
func (s *step) findRestorable(d *direction, n *node) {
	s.restorable = s.restorable[:0]
	if len(s.restore) == 0 {
		return
	}
	for i := range d.arriving {
		if n.hasObject(d.arriving[i].anchor) {
			s.restorable = append(s.restorable, &d.arriving[i])
		}
	}
}

// restoreLeaves restores the fields that the source version lacks and that have no value.
func (s *step) restoreLeaves(n *node, pc *pathContext) {
	for _, leaf := range s.restorable {
		if leaf.named != nil {
			s.restoreUnknown(leaf, n, pc)
			continue
		}
		e := s.preserved(pc, leaf.pointer, valueEntry)
		switch {
		case e == nil:
		case n.find(leaf.path) != nil && leaf.accepts(e.value):
			e.state = consumed
		case !leaf.accepts(e.value):
			// The field was another one when it was preserved (unresolved.go).
		case s.fits(&leaf.slot, e.value):
			e.state = consumed
			s.put(n, leaf.path, s.raw(e.value))
		default:
			e.state = refused
		}
	}
}

// restoreUnknown restores the fields that the schema allows without naming them.
func (s *step) restoreUnknown(leaf *arrivingField, n *node, pc *pathContext) {
	holder := n.find(leaf.path)
	if holder != nil && !n.hasObject(leaf.path) {
		s.noteKeyless(s.pointer(pc, leaf.pointer))
		return
	}
	prefix := append(s.pointer(pc, leaf.pointer), '/')
	below := s.restore.withPrefix(prefix)
	if len(below) == 0 {
		return
	}
	exists := map[string]bool{}
	if holder != nil {
		for m := holder.first; m != nil; m = m.next {
			exists[m.decodedName()] = true
		}
	}
	for i := range below {
		e, escaped := &below[i], below[i].pointer[len(prefix):]
		name := unescapePointer(string(escaped))
		switch {
		case e.kind != valueEntry || bytes.IndexByte(escaped, '/') >= 0 || leaf.named.get(name):
		case exists[name]:
			e.state = consumed
		case leaf.shape != nil && (leaf.shape.Field(name) == nil || !s.fitsShape(leaf.shape.Field(name), e.value)):
			e.state = refused
		default:
			e.state = consumed
			if holder == nil {
				holder = s.makeObject(n, leaf.path)
			}
			m := s.raw(e.value)
			key := newName(name)
			m.key, m.fingerprint = key.quoted, key.fingerprint
			holder.add(m)
		}
	}
}

// convertCollection converts the elements of a list or map.
func (s *step) convertCollection(c *collection, n *node, parent *pathContext) {
	container := n.find(c.path)
	if c.isObject {
		s.convertObject(c, container, parent)
		return
	}
	if container == nil || container.kind == scalar || c.common != nil && !c.common.fits(&s.arena, s.bytes(container)) {
		return
	}
	if c.isMap != (container.kind == object) {
		s.noteKeyless(s.pointer(parent, c.pointer))
		return
	}
	if c.exclusion == nil && c.targetExclusion == nil {
		s.convertElements(c, container, parent, nil)
		return
	}
	excluding := s.exclude(c, container, parent)
	s.convertElements(c, container, parent, excluding)
	excluding.removeAbsent(s, n, container)
}

// convertElements converts the elements of a list or map. excluding is nil if no rule excludes elements.
func (s *step) convertElements(c *collection, container *node, parent *pathContext, excluding *excluding) {
	if container.first == nil {
		return
	}
	pc := s.pathContexts.one()
	pc.parent, pc.collection = parent, c
	width := s.width(pc)
	if !c.isMap && c.direction.preserves && !s.allHaveKeys(c.keys, container) {
		if len(c.keys) > 0 {
			s.noteKeyless(s.pointer(parent, c.pointer))
		}
		s.convertUnkeyed(c, container, pc, excluding)
		return
	}
	if excluding != nil {
		excluding.convert(s, container, func(element *node, _, _ int) bool {
			if pc.element = element; !s.spend(width / widthUnits) {
				s.convertScope(c.direction, element, pc)
			}
			return false
		})
		return
	}
	for element := container.first; element != nil; element = element.next {
		if pc.element = element; s.spend(width / widthUnits) {
			return
		}
		s.convertScope(c.direction, element, pc)
	}
}

// convertObject converts an object with a place.
func (s *step) convertObject(c *collection, n *node, parent *pathContext) {
	if n == nil || n.kind == scalar && !n.isNull() {
		return
	}
	if n.isNull() && c.opensNull && len(s.restore.withPrefix(s.pointer(parent, c.pointer+"/"))) > 0 {
		n.kind, n.open, n.text = object, true, []byte("{}")
	}
	if n.kind == array {
		s.noteKeyless(s.pointer(parent, c.pointer))
	}
	if !n.isObject() {
		return
	}
	pc := s.pathContexts.one()
	pc.parent, pc.collection = parent, c
	s.convertScope(c.direction, n, pc)
}
