// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Rules, schemas and hubs change while values are preserved. What the rules of now
// look up they decide about; all else is merged into what they made, or carried on.

// carry decides about all entries that no rule has claimed, and returns those that
// are carried on. Keep is what x has left behind.
func (w *direction) carry(x any, y map[string]any, s, keep *preserved) *preserved {
	m := merger{root: y, way: w, schema: w.schema, lenient: s.lenient, refusesStatus: s.refusesStatus, partial: s.partial, became: map[string]int{}, left: newPreserved(), taken: keep.taken, restore: s}
	m.left.unreadable = s.unreadable
	var asked, gone, misfits []pathContext
	for _, at := range s.places() {
		switch e := s.entries[at]; {
		case e.fate == refused:
			misfits = append(misfits, at)
		case e.fate == unclaimed && !strings.HasPrefix(at.pointer, "/"), e.fate == deferred,
			e.fate == unclaimed && w.looksUp(at, e.value) && (s.leaving.around(at.pointer) || s.leaving.beside(at.pointer)):
			m.left.entries[at] = e
		case e.fate == unmatched, e.fate == unclaimed && (!w.looksUp(at, e.value) || s.isUnnamed(at.pointer) || e.anchored(x, at)):
			asked = append(asked, at)
		case e.fate == unclaimed && (holder(y, at) == none || s.around(at.pointer)):
			gone = append(gone, at)
		}
	}
	for _, at := range misfits {
		live := follow(y, segments(at.pointer))
		if live == none || !covers(live, s.entries[at].value) || w.defaultAt(at.pointer, false) != nil {
			m.left.entries[at] = s.entries[at]
		}
	}
	if len(s.merging)+len(asked)+len(gone) == 0 {
		return m.left
	}
	for _, each := range s.merging {
		m.whole = each.whole
		m.merge(y, pathContext{each.pointer, aValue}, each.entry, true)
		m.whole = false
	}
	for _, at := range asked {
		m.merge(y, at, s.entries[at], false)
	}
	// What is around a place may not have been deleted, but preserved itself.
	for _, at := range gone {
		switch {
		case holder(y, at) != none:
			m.merge(y, at, s.entries[at], false)
		case s.around(at.pointer):
			m.left.entries[at] = s.entries[at]
		}
	}
	keep.digestAgain(y)
	return m.left
}

// holder is the value in which a place is, or none.
func holder(object any, at pathContext) any {
	full := segments(at.pointer)
	return follow(object, full[:len(full)-1])
}

// anchored reports whether the object is there without which an entry does not come
// back, and which is not the one around its place: then that was not deleted.
func (e *entry) anchored(x any, at pathContext) bool {
	number, is := e.anchor.(json.Number)
	length, err := strconv.Atoi(number.String())
	full := segments(at.pointer)
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

// digestAgain tells of elements what they became, now that others were merged in.
func (k *preserved) digestAgain(y any) {
	for at, e := range k.entries {
		if _, isDigest := e.images.(string); isDigest {
			if element := follow(y, segments(at.pointer)); element != none {
				e.images = digest(element)
			}
		}
	}
}

// defaultAt is the default of a field, nil where there is none: of x, or of y.
func (w *direction) defaultAt(pointer string, ofX bool) *fill {
	fills := w.filled
	if ofX {
		fills = w.emptied
	}
	for i := range fills {
		if fills[i].path.pointer() == pointer {
			return &fills[i]
		}
	}
	for _, e := range w.collections {
		below, found := strings.CutPrefix(pointer, e.path.pointer()+"/")
		if _, rest, deeper := strings.Cut(below, "/"); found && deeper {
			if f := e.way.defaultAt("/"+rest, ofX); f != nil {
				return f
			}
		}
	}
	return nil
}

// supersede takes the entries away for all of which there is live data, be it other
// data, or for what a rule converts together with them, in an object of their version. A default that was filled in is none.
func (k *preserved) supersede(object any, w *direction) {
	for at, e := range k.entries {
		if !strings.HasPrefix(at.pointer, "/") {
			continue
		}
		m := merger{root: object, way: w.back}
		if m.isPartOfLive(at.pointer) {
			delete(k.entries, at)
			continue
		}
		live, filled := follow(object, segments(at.pointer)), w.defaultAt(at.pointer, true)
		if live != none && (at.kind != aValue || covers(live, e.value)) && (filled == nil || !Equal(live, filled.value)) {
			delete(k.entries, at)
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

// looksUp reports whether a way looks a value up where the objects around its place
// are there. If it did not, they are gone, and what is preserved in them with them.
func (w *direction) looksUp(at pathContext, value any) bool {
	is := func(p path) bool { return p.pointer() == at.pointer }
	fills := slices.ContainsFunc(w.filled, func(f fill) bool { return is(f.path) })
	exchanges := slices.ContainsFunc(w.exchanges, func(t trade) bool {
		return (at.kind == aValue || t.arrange != nil) && slices.ContainsFunc(t.to, func(f field) bool { return is(f.Path) })
	})
	lends := slices.ContainsFunc(w.shared, func(o sharedObject) bool { return is(o.path) && bareObject(value) })
	comes := slices.ContainsFunc(w.missing, func(l leaf) bool { return l.stands(at.pointer) && l.comesAs(value) })
	found := slices.ContainsFunc(w.collections, func(e elements) bool { return e.looksUp(at, value) })
	switch at.kind {
	case anAbsence:
		return fills || found
	case anOrder:
		return exchanges || found
	}
	return fills || exchanges || lends || comes || found
}

// stands reports whether a leaf field stands for the field at a pointer.
func (l *leaf) stands(pointer string) bool {
	if l.Known == nil {
		return l.Path.pointer() == pointer
	}
	name, below := strings.CutPrefix(pointer, l.Path.pointer()+"/")
	return below && !strings.Contains(name, "/") && !slices.Contains(l.Known, unescapes.Replace(name))
}

func (e *elements) looksUp(at pathContext, value any) bool {
	below, found := strings.CutPrefix(at.pointer, e.path.pointer()+"/")
	element, rest, deeper := strings.Cut(below, "/")
	_, isIndex := indexOf(element)
	switch {
	case !found:
		return false
	case !deeper:
		return !e.isMap && len(e.keys) == 0 && isIndex && e.way.keeps()
	case e.isMap:
		return e.way.looksUp(pathContext{"/" + rest, at.kind}, value)
	}
	return len(e.keys) > 0 && slices.Equal(selectorKeys(element), e.keys) && e.way.looksUp(pathContext{"/" + rest, at.kind}, value)
}

// siblings are the versions that share a field with y, and x lacks it.
func (w *direction) siblings() []string {
	var versions []string
	for _, l := range w.missing {
		versions = append(versions, l.Siblings...)
	}
	for _, e := range w.collections {
		versions = append(versions, e.way.siblings()...)
	}
	slices.Sort(versions)
	return slices.Compact(versions)
}

// shares reports whether a version shares the field at a pointer.
func (w *direction) shares(pointer, version string) bool {
	shared := slices.ContainsFunc(w.missing, func(l leaf) bool {
		return l.Path.pointer() == pointer && slices.Contains(l.Siblings, version)
	})
	return shared || slices.ContainsFunc(w.collections, func(e elements) bool {
		below, found := strings.CutPrefix(pointer, e.path.pointer()+"/")
		_, rest, deeper := strings.Cut(below, "/")
		return found && deeper && e.way.shares("/"+rest, version)
	})
}
