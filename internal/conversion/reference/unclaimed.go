// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// mergeUnclaimed decides about all entries that no rule has claimed, and returns those that remain
// in the annotation. Keep is the preserved data that x left behind.
//
// Rules, schemas and hubs change while values are preserved. Current rules decide about the entries
// that they look up; all others are merged into the result of the rules, or remain.
func (d *direction) mergeUnclaimed(x any, y map[string]any, s, keep *preserved) *preserved {
	m := merger{root: y, direction: d, schema: d.schema, lenient: s.lenient, refusesStatus: s.refusesStatus, partial: s.partial, became: map[string]int{}, left: newPreserved(), taken: keep.taken, restore: s}
	m.left.unreadable = s.unreadable
	var asked, deleted, misfits []entryKey
	for _, key := range s.places() {
		switch e := s.entries[key]; {
		case e.state == refused:
			misfits = append(misfits, key)
		case e.state == unclaimed && !strings.HasPrefix(key.pointer, "/"), e.state == deferred,
			e.state == unclaimed && d.looksUp(key, e.value) && (s.leaving.preservesParentOf(key.pointer) || s.leaving.preservesBeside(key.pointer)):
			m.leave(key)
		case e.state == unclaimed && (!d.looksUp(key, e.value) || s.isUnnamed(key.pointer) || e.anchored(x, key, d)):
			asked = append(asked, key)
		case e.state == unclaimed && (d.holder(y, key) == none || s.preservesParentOf(key.pointer)):
			deleted = append(deleted, key)
		}
	}
	for _, key := range misfits {
		live := d.inY(y, key.pointer)
		if live == none || !covers(live, s.entries[key].value) || d.defaultAt(key.pointer, false) != nil {
			m.leave(key)
		}
	}
	if len(s.merging)+len(asked)+len(deleted) == 0 {
		return d.yPlaces.entries(m.left)
	}
	for _, each := range s.merging {
		m.replace = each.replace
		m.merge(y, entryKey{each.pointer, aValue}, each.entry, true)
		m.replace = false
	}
	for _, key := range asked {
		// Other fields of the parent are preserved at the source, so that it is not there at all.
		if s.entries[key].state == unclaimed && d.holder(y, key) == none && s.leaving.preservesBeside(key.pointer) {
			m.leave(key)
			continue
		}
		m.merge(y, key, s.entries[key], false)
	}
	// A parent that is missing may not have been deleted, but preserved itself.
	for _, key := range deleted {
		switch {
		case d.holder(y, key) != none:
			m.merge(y, key, s.entries[key], false)
		case s.preservesParentOf(key.pointer):
			m.leave(key)
		}
	}
	keep.refreshDigests(y, d, s.names)
	return d.yPlaces.entries(m.left)
}

// leave leaves an entry in the annotation.
func (m *merger) leave(key entryKey) {
	at, e := m.direction.yPlaces.reversed().entry(key, m.restore.entries[key])
	m.left.entries[at] = e
}

// inY returns the value of y at a pointer of the rules, or none.
func (d *direction) inY(y any, pointer string) any {
	return follow(y, segments(d.yPlaces.reversed().pointer(pointer)))
}

// holder returns the value of y that contains an entry, or none.
func (d *direction) holder(y any, key entryKey) any {
	full := segments(d.yPlaces.reversed().pointer(key.pointer))
	return follow(y, full[:len(full)-1])
}

// anchored reports whether the entry has an anchor other than its parent, and that anchor exists:
// then the parent was not deleted.
func (e *entry) anchored(x any, key entryKey, d *direction) bool {
	key, e = d.xPlaces.reversed().entry(key, e)
	number, is := e.anchor.(json.Number)
	length, err := strconv.Atoi(number.String())
	full := segments(key.pointer)
	if !is {
		return e.anchor != nil
	}
	if err != nil || length < 0 || length >= len(full) {
		return true
	}
	switch follow(x, full[:length]).(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// refreshDigests updates the digests of elements after other entries were merged into them. The version
// of y has the names.
func (p *preserved) refreshDigests(y any, d *direction, names names) {
	for key, e := range p.entries {
		if _, isDigest := e.images.(string); isDigest {
			if element := d.inY(y, key.pointer); element != none {
				_, inside := names.pointer(d.yPlaces.reversed().pointer(key.pointer))
				e.images = digest(inside.value(element))
			}
		}
	}
}

// defaultAt returns the default of a field of x, or of y, nil if there is none.
func (d *direction) defaultAt(pointer string, ofX bool) *fill {
	fills := d.filled
	if ofX {
		fills = d.emptied
	}
	for i := range fills {
		if fills[i].path.pointer() == pointer {
			return &fills[i]
		}
	}
	for _, e := range d.collections {
		if _, rest, deeper := e.split(pointer); deeper {
			if f := e.direction.defaultAt(rest, ofX); f != nil {
				return f
			}
		}
	}
	return nil
}

// removeLive removes the entries that live data of their version replaces, even if it differs. Data
// that a rule converts together with the entry counts as live; a default that was filled in does
// not.
func (p *preserved) removeLive(object any, d *direction) {
	for key, e := range p.entries {
		if !strings.HasPrefix(key.pointer, "/") {
			continue
		}
		m := merger{root: object, direction: d.back}
		if m.isPartOfLive(key.pointer) {
			delete(p.entries, key)
			continue
		}
		live, filled := d.back.inY(object, key.pointer), d.defaultAt(key.pointer, true)
		if live != none && (key.kind != aValue || covers(live, e.value)) && (filled == nil || !Equal(live, filled.value)) {
			delete(p.entries, key)
		}
	}
}

func covers(live, value any) bool {
	members, isObject := value.(map[string]any)
	held, areObjects := live.(map[string]any)
	if !isObject || !areObjects {
		return true
	}
	for name := range members {
		if same, found := held[name]; !found || !covers(same, members[name]) {
			return false
		}
	}
	return true
}

// looksUp reports whether the rules look up an entry if its parents exist. If they did not look it
// up, the parents are gone, and so is the preserved data in them.
func (d *direction) looksUp(key entryKey, value any) bool {
	is := func(p path) bool { return p.pointer() == key.pointer }
	fills := slices.ContainsFunc(d.filled, func(f fill) bool { return is(f.path) })
	exchanges := slices.ContainsFunc(d.exchanges, func(t transfer) bool {
		return (key.kind == aValue || t.arrange != nil) && slices.ContainsFunc(t.to, func(f field) bool { return is(f.Path) })
	})
	isShared := slices.ContainsFunc(d.shared, func(o sharedObject) bool { return is(o.path) && isEmptyContainer(value) })
	isMissing := slices.ContainsFunc(d.missing, func(l leaf) bool { return l.standsFor(key.pointer) && l.isPreservedAs(value) })
	found := slices.ContainsFunc(d.collections, func(e elements) bool { return e.looksUp(key, value) })
	switch key.kind {
	case anAbsence:
		isFirst := func(t transfer) bool { return t.whenMissing && is(t.to[0].Path) }
		isExcluding := func(e elements) bool { return e.excludes != nil && is(e.place) }
		return fills || found || slices.ContainsFunc(d.exchanges, isFirst) || slices.ContainsFunc(d.collections, isExcluding)
	case anOrder:
		return exchanges || found
	}
	return fills || exchanges || isShared || isMissing || found
}

// standsFor reports whether a leaf field covers the field at a pointer.
func (l *leaf) standsFor(pointer string) bool {
	if l.Known == nil {
		return l.Path.pointer() == pointer
	}
	name, below := strings.CutPrefix(pointer, l.Path.pointer()+"/")
	return below && !strings.Contains(name, "/") && !slices.Contains(l.Known, unescapes.Replace(name))
}

// split splits a pointer into the element, and the pointer within it. The object of a single object is an
// element without a name.
func (e *elements) split(pointer string) (element, rest string, deeper bool) {
	below, found := strings.CutPrefix(pointer, e.place.pointer()+"/")
	switch {
	case !found:
		return "", "", false
	case e.isObject:
		return "", "/" + below, true
	}
	element, rest, deeper = strings.Cut(below, "/")
	return element, "/" + rest, deeper
}

func (e *elements) looksUp(key entryKey, value any) bool {
	element, rest, deeper := e.split(key.pointer)
	_, isIndex := indexOf(element)
	switch {
	case !deeper:
		return !e.isMap && len(e.keys) == 0 && isIndex && e.direction.mayPreserve()
	case e.isMap || e.isObject:
		return e.direction.looksUp(entryKey{rest, key.kind}, value)
	}
	return len(e.keys) > 0 && slices.Equal(selectorKeys(element), e.keys) && e.direction.looksUp(entryKey{rest, key.kind}, value)
}

// siblings returns the versions that share a field with y that x lacks.
func (d *direction) siblings() []string {
	var versions []string
	for _, l := range d.missing {
		versions = append(versions, l.Siblings...)
	}
	for _, e := range d.collections {
		versions = append(versions, e.direction.siblings()...)
	}
	slices.Sort(versions)
	return slices.Compact(versions)
}

// shares reports whether a version shares the field at a pointer.
func (d *direction) shares(pointer, version string) bool {
	shared := slices.ContainsFunc(d.missing, func(l leaf) bool {
		return l.Path.pointer() == pointer && slices.Contains(l.Siblings, version)
	})
	return shared || slices.ContainsFunc(d.collections, func(e elements) bool {
		_, rest, deeper := e.split(pointer)
		return deeper && e.direction.shares(rest, version)
	})
}
