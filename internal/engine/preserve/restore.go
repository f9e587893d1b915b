// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preserve

import (
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// restorer decides which entries come back to a value.
type restorer struct {
	*namer
	// base is what comes back of live without entries. schema and other are theirs.
	base, live    *tree.Node
	schema, other Schema
	// seen is the function from base to the other version, and back the one from live.
	seen, back Function
	// rules are the current ones.
	rules string
	// isPart is true if the other version has preserved data of its own: what is missing there was not deleted.
	isPart bool
	// frozenStatus is Versions.FrozenStatus.
	frozenStatus bool
	// work is that of the arena at which judging ends.
	work int64

	// entries are all that may come back, and made are the addresses of values among them.
	entries  []Entry
	made     map[string]bool
	restored []*Entry
	carried  []Entry
	// parts are entries that stand for others, or for a part of one.
	parts []*Entry
	// schemas are those of the elements of lists in live, and otherNames the names that elements may have had, nil until they are
	// needed.
	schemas    map[*tree.Node]Schema
	otherNames map[keyedList]map[string]string
	// shown is what the other version has of base and the entries that are restored so far.
	shown *tree.Node
}

// maxJudging is the most work for judging the entries of an object, in units of the arena: what that does not reach
// stays preserved.
const maxJudging = 16 << 20

// restore returns base with the entries that come back.
func (r *restorer) restore(entries []Entry) *tree.Node {
	if len(entries) == 0 {
		return r.base
	}
	r.entries = entries
	var judged []*Entry
	for _, e := range pointersTo(entries) {
		if e.isSuperseded {
			e.Fate = Superseded
			continue
		}
		judged = r.sort(e, judged)
	}
	r.judge(judged)
	for _, part := range slices.Backward(r.parts) {
		if part.of.Fate == Undecided || part.Fate == Superseded {
			part.of.Fate = part.Fate
		}
	}
	return r.with()
}

// partOf returns an entry that is a part of another one.
func (r *restorer) partOf(e *Entry, at Address, value *tree.Node) *Entry {
	part := *e
	part.At, part.Value, part.of = at, value, e
	r.parts = append(r.parts, &part)
	return &part
}

// sort restores an entry if nothing reads it, carries it on if it has no place, and otherwise adds it to those that
// have to be judged.
func (r *restorer) sort(e *Entry, judged []*Entry) []*Entry {
	if e.Kind == Insert {
		e = r.asElement(e)
	}
	where := r.locate(e)
	if where.gone {
		e = r.named(e)
		where = r.locate(e)
	}
	switch {
	case where.gone && e.Rules == r.rules && !r.isPart:
		e.Fate = Gone
	case where.gone:
		e.Fate = Gone
		r.carry(e)
	case where.derived:
		e.Fate = Superseded
	case where.misfit:
		return r.sortFitting(e, where, judged)
	case e.Kind == Insert && where.schema.isSet() && r.element(where.value, where.schema, r.name(e.Value, e.Value, nil)) != nil:
		e.Fate = Restored // a client has made the element again
	case e.Kind == Value && e.Value.Is(tree.Object) && where.value.Is(tree.Object):
		// A client has made the object again: each member is by itself.
		for _, m := range e.Value.Members() {
			judged = r.sort(r.partOf(e, e.At.with(Segment{Name: m.Name}), m.Value), judged)
		}
	case e.Kind == Value && e.Replaced == "" && e.Value.Is(tree.List) && where.value.Is(tree.List):
		// A client has made the list again, which has nothing of the elements.
		for _, part := range r.elementsOf(e, where) {
			judged = r.sort(part, judged)
		}
	case !where.read && r.isReplaced(e, where), r.isDefault(e, where):
		e.Fate = Restored
		r.restored = append(r.restored, e)
	default:
		judged = append(judged, e)
	}
	return judged
}

// sortFitting carries on what the schema does not allow of an entry, and sorts the rest if that fits.
func (r *restorer) sortFitting(e *Entry, at location, judged []*Entry) []*Entry {
	if e.Kind == Value && e.Value.Is(tree.Object) && !at.schema.pruned() {
		var misfits []Entry
		rest := *e
		rest.Value = r.split(e, e.At, e.Value, at.schema, &misfits)
		if rest.Value.Len() > 0 && len(misfits) > 0 && r.fits(&rest, at) {
			r.carried = append(r.carried, misfits...)
			part := r.partOf(e, e.At, rest.Value)
			part.isRest = true
			return r.sort(part, judged)
		}
	}
	e.Fate = Misfit
	r.carry(e)
	return judged
}

// split returns a value without the members that do not fit, which it adds to misfits.
func (r *restorer) split(e *Entry, at Address, value *tree.Node, s Schema, misfits *[]Entry) *tree.Node {
	return r.Filter(value, func(name string, member *tree.Node) *tree.Node {
		inner, place := s.member(name), at.with(Segment{Name: name})
		switch {
		case inner.pruned():
		case member.Is(tree.Object):
			return r.split(e, place, member, inner, misfits)
		case s.allowsIn(Segment{Name: name}, member):
			return member
		}
		left := *e
		left.At, left.Value, left.Fate = place, member, Misfit
		*misfits = append(*misfits, left)
		return nil
	})
}

// named returns an entry with the names that the elements of lists have now: a list may have got keys, or lost them, and an
// API server fills in defaults.
func (r *restorer) named(e *Entry) *Entry {
	at, changed := slices.Clone(e.At), false
	value, s := r.base, r.schema
	for i, segment := range at {
		if segment.Element && value.Is(tree.List) && r.element(value, s, segment.Name) == nil {
			if name := r.otherName(value, s, segment.Name); name != "" {
				at[i], changed = Segment{Name: name, Element: true}, true
			}
		}
		value, s = r.in(value, s, at[i])
	}
	if !changed {
		return e
	}
	named := r.partOf(e, at, e.Value)
	named.isNamed = true
	return named
}

// carry keeps an entry as preserved data.
func (r *restorer) carry(e *Entry) {
	if e.isNamed {
		e = e.of
	}
	r.carried = append(r.carried, *e)
}

// otherName returns the name of the element that has had another name, empty if none or several have.
func (r *restorer) otherName(list *tree.Node, s Schema, name string) string {
	bare, ordinal, _ := strings.Cut(name, ",")
	if strings.HasPrefix(name, "#") && ordinal != "" {
		return "" // of elements that were equal, one is gone
	}
	keys, _ := KeysIn(name)
	of := keyedList{list, strings.Join(keys, ",")}
	if r.otherNames[of] == nil {
		if r.otherNames == nil {
			r.otherNames = map[keyedList]map[string]string{}
		}
		r.otherNames[of] = r.otherNamesOf(list, s, keys)
	}
	if len(keys) > 0 {
		return r.otherNames[of][name]
	}
	return r.otherNames[of][bare]
}

// keyedList is a list, with keys that it may have had.
type keyedList struct {
	list *tree.Node
	keys string
}

// otherNamesOf returns the names of elements by those that they may have had: with keys, without keys, and before an API server has
// filled in defaults. They are empty if several elements may have had one.
func (r *restorer) otherNamesOf(list *tree.Node, s Schema, keys []string) map[string]string {
	names := map[string]string{}
	for i, element := range list.Elems() {
		source := element.Source(r.run)
		others := []string{"#" + r.Digest(source), "#" + r.Digest(r.withoutDefaults(source)), keyName(r.Arena, element, keys)}
		slices.Sort(others)
		for _, other := range slices.Compact(others) {
			if _, several := names[other]; several {
				names[other] = ""
			} else {
				names[other] = r.of(list, s).names[i]
			}
		}
	}
	return names
}

// withoutDefaults returns an element of a list in live without what an API server would fill in.
func (r *restorer) withoutDefaults(element *tree.Node) *tree.Node {
	if r.schemas == nil {
		r.schemas = map[*tree.Node]Schema{}
		r.collectElements(r.live, r.other)
	}
	s, known := r.schemas[element]
	if !known {
		return element
	}
	return s.withoutDefaults(r.Arena, element)
}

// collectElements notes the schemas of the elements of all lists in a value.
func (r *restorer) collectElements(value *tree.Node, s Schema) {
	for _, m := range value.Members() {
		r.collectElements(m.Value, s.member(m.Name))
	}
	for _, element := range value.Elems() {
		r.schemas[element] = s.elem()
		r.collectElements(element, s.elem())
	}
}

// asElement returns an inserted element as the value of the element with its keys, if a client has made one.
func (r *restorer) asElement(e *Entry) *Entry {
	list, s := r.find(r.base, r.schema, e.At)
	at := r.keyed(e.At, list, s, e.Value)
	isRenamed := func(key string) bool { return r.isMade(at.with(Segment{Name: key})) } // that element gets another key
	if at != nil && !slices.ContainsFunc(s.keys(), isRenamed) {
		element := r.partOf(e, at, e.Value)
		element.Kind, element.Index = Value, 0
		return element
	}
	return e
}

// keyed returns the address of the element of a list that has the keys of a value, nil if there is none.
func (r *restorer) keyed(at Address, list *tree.Node, s Schema, value *tree.Node) Address {
	name := keyName(r.Arena, value, s.keys())
	if name == "" || r.element(list, s, name) == nil {
		return nil
	}
	return at.with(Segment{Name: name, Element: true})
}

// elementsOf returns the elements of a list that a client has made again as entries of their own.
func (r *restorer) elementsOf(e *Entry, at location) (parts []*Entry) {
	for i, value := range e.Value.Elems() {
		if element := r.keyed(e.At, at.value, at.schema, value); element != nil {
			parts = append(parts, r.partOf(e, element, value))
			continue
		}
		part := r.partOf(e, e.At, value)
		part.Kind, part.Index = Insert, i
		parts = append(parts, part)
	}
	return parts
}

// location is the place of an entry in base.
type location struct {
	// value is what base has there, and parent the value around it. schema and around are theirs.
	value, parent  *tree.Node
	schema, around Schema
	// gone is true if the element or the object that the entry is about does not exist, misfit if the schema does
	// not allow the entry, read if the other version may show it, and derived if it says what is there.
	gone, misfit, read, derived bool
}

// locate finds the place of an entry, and whether it fits there.
func (r *restorer) locate(e *Entry) location {
	at := r.place(e)
	if !at.gone && !at.misfit {
		at.misfit = !r.fits(e, at) || e.Kind == Insert && at.value != nil && !at.value.Is(tree.List)
	}
	return at
}

// place finds the place of an entry, which the schema may not allow there.
func (r *restorer) place(e *Entry) (at location) {
	unread, dropped := r.seen.Unread(), r.seen.Dropped()
	at.value, at.schema = r.base, r.schema
	for i, segment := range e.At {
		at.parent, at.around = at.value, at.schema
		at.value, at.schema = r.in(at.value, at.schema, segment)
		switch {
		case segment.Element && at.value == nil, at.value == nil && i < len(e.At)-1 && at.around.isMap() && !r.isMade(e.At[:i+1]), at.parent != nil && !segment.Element && !at.parent.Is(tree.Object) && !at.around.isNull(at.parent):
			at.gone = true
			return at
		case at.schema.pruned():
			at.misfit = true
			return at
		}
		unread, dropped = unread.in(segment), dropped.in(segment)
		at.derived = at.value != nil && dropped.isWhole()
		if at.value == nil && i < len(e.At)-1 && (unread == nil || !unread.Whole && !unread.Bare) {
			at.read = true // the other version would show the object that the entry needs
		}
	}
	if at.gone = e.Kind == Absent && at.value == nil || e.Kind == Order && !at.value.Is(tree.List); at.gone {
		return at
	}
	at.read = at.read || !isUnread(e, unread)
	return at
}

// isMade reports whether an entry is for a value, or for one around it.
func (r *restorer) isMade(at Address) bool {
	if r.made == nil {
		r.made = map[string]bool{}
		for i := range r.entries {
			if e := &r.entries[i]; e.Kind == Value {
				r.made[e.At.Pointer()] = true
			}
		}
	}
	for length := 1; length <= len(at); length++ {
		if r.made[at[:length].Pointer()] {
			return true
		}
	}
	return false
}

func isUnread(e *Entry, unread *Paths) bool {
	switch {
	case unread == nil:
		return false
	case unread.Whole:
		return true
	case e.Kind == Insert:
		return isValueUnread(e.Value, unread.in(Segment{Element: true}))
	}
	return e.Kind == Value && isValueUnread(e.Value, unread)
}

// isValueUnread reports whether nothing reads a value, nor anything in it.
func isValueUnread(value *tree.Node, unread *Paths) bool {
	switch {
	case unread == nil:
		return false
	case unread.Whole:
		return true
	case !unread.Bare || !value.Is(tree.Object):
		return false
	}
	return !slices.ContainsFunc(value.Members(), func(m tree.Member) bool { return !isValueUnread(m.Value, unread.in(Segment{Name: m.Name})) })
}

// fits reports whether the schema allows the entry: each client that may write an object may write its annotations.
func (r *restorer) fits(e *Entry, at location) bool {
	switch e.Kind {
	case Insert:
		return at.schema.allowsInsert(e.Value)
	case Absent, Order:
		return r.isWritable(e.At)
	}
	return r.isWritable(e.At) && at.around.allowsIn(e.At[len(e.At)-1], e.Value)
}

// isWritable reports whether preserved data may be for the place.
func (r *restorer) isWritable(at Address) bool {
	if r.schema.part != root || len(at) == 0 {
		return r.schema.part != root
	}
	if r.frozenStatus && at[0].Name == "status" {
		return false
	}
	const inTexts = 3
	if !isEnvelope(nil, at[0].Name) {
		return true
	}
	return len(at) == inTexts && r.schema.in(at[0]).in(at[1]).knowsText(at[2])
}

// isReplaced reports whether base has in the place of an entry what it had when the entry was written.
func (r *restorer) isReplaced(e *Entry, at location) bool {
	switch {
	case e.Kind == Insert, e.Kind == Order:
		return true
	case at.value == nil:
		return e.Replaced == ""
	}
	return e.Replaced == r.identify(at.value)
}

// isDefault reports whether an entry only says what an API server would fill in: whatever a client wrote, the field has that.
func (r *restorer) isDefault(e *Entry, at location) bool {
	if e.Kind != Value || at.value != nil || at.parent == nil {
		return false
	}
	fallback := at.schema.fallback(r.Arena)
	return fallback != nil && r.Equal(fallback, e.Value)
}

// with returns base with the restored entries, and more.
func (r *restorer) with(more ...*Entry) *tree.Node {
	if len(r.restored)+len(more) == 0 {
		return r.base
	}
	r.NewRun()
	p := &patch{}
	for _, e := range r.restored {
		p.add(e)
	}
	for _, e := range more {
		p.add(e)
	}
	return p.apply(r.namer, r.base, r.schema)
}

// show returns what the other version has of base with the restored entries, and more.
func (r *restorer) show(keepEmptied bool, more ...*Entry) *tree.Node {
	object := r.with(more...)
	r.NewRun()
	return r.seen.Apply(object, keepEmptied)
}
