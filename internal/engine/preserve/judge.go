// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preserve

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// judge restores the entries that do not change what the other version shows, or make it show what it has. Those of
// an element that is converted alone are judged by that element alone.
func (r *restorer) judge(entries []*Entry) {
	rest := r.judgeElements(entries)
	if len(rest) == 0 {
		return
	}
	// Without an edit, all comes back: then only what the way back does not read may differ.
	if r.other.shows(r.Arena, r.show(false, rest...), r.live, r.back.Unread()) {
		r.accept(rest)
		return
	}
	r.shown = r.show(true)
	rest = r.agreed(rest)
	const few = 32
	if len(rest) > few {
		rest = r.tryClean(rest)
	}
	// Objects that the others need may come back from what other rules have preserved.
	slices.SortStableFunc(rest, func(a, b *Entry) int { return cmp.Compare(r.age(a), r.age(b)) })
	r.try(r.byGroup(rest))
}

// age is 0 for an entry that other rules have preserved, and 1 for any other.
func (r *restorer) age(e *Entry) int {
	if e.Rules != r.rules {
		return 0
	}
	return 1
}

func (r *restorer) accept(entries []*Entry) {
	for _, e := range entries {
		e.Fate = Restored
	}
	r.restored = append(r.restored, entries...)
}

// agreed returns the entries at places where base has what it had when they were written, or what the way there and back
// has. Anything else there was written by a client of the other version, and comes from
// something that has no place in this one.
func (r *restorer) agreed(entries []*Entry) (agreed []*Entry) {
	var again *tree.Node
	for _, e := range entries {
		if value, _ := r.find(r.base, r.schema, e.At); r.isReplaced(e, location{value: value}) {
			agreed = append(agreed, e)
			continue
		}
		if again == nil {
			shown := r.show(false)
			r.NewRun()
			again = r.back.Apply(shown, false)
		}
		if r.agrees(again, e.At) {
			agreed = append(agreed, e)
		} else {
			r.supersede(e)
		}
	}
	return agreed
}

// supersede discards an entry that contradicts the other version. It stays if that may not be an edit: data of that
// version is missing there, or the entry is a part of one, or was written by other rules and nothing is in its place.
func (r *restorer) supersede(e *Entry) {
	if r.complete(e) {
		return
	}
	e.Fate = Superseded
	isOld := func() bool {
		value, _ := r.find(r.base, r.schema, e.At)
		return e.Rules != r.rules && value == nil
	}
	if r.isPart || e.isRest || isOld() {
		r.carry(e)
	}
}

// complete restores what the other version cannot say of a value that it has edited.
func (r *restorer) complete(e *Entry) bool {
	if e.Kind != Value || r.shown == nil {
		return false
	}
	made, _ := r.find(r.base, r.schema, e.At)
	if made == nil {
		return false
	}
	completed := r.back.Complete(e.At, made, e.Value)
	if completed == nil {
		return false
	}
	part := r.partOf(e, e.At, completed)
	if !r.isUnnoticed([]*Entry{part}) {
		return false
	}
	r.accept([]*Entry{part})
	return true
}

func (r *restorer) agrees(again *tree.Node, at Address) bool {
	value, s := r.base, r.schema
	for _, segment := range at {
		if value == nil || again == nil {
			break
		}
		if !segment.Element {
			value, s, again = value.Get(segment.Name), s.member(segment.Name), again.Get(segment.Name)
			continue
		}
		pos, found := r.of(value, s).at[segment.Name]
		if !found {
			value = nil
			break
		}
		value, s = value.Elems()[pos], s.elem()
		if elements := again.Elems(); pos < len(elements) {
			again = elements[pos]
		} else {
			again = nil
		}
	}
	return r.Equal(value, again)
}

// isUnnoticed reports whether the other version shows the same with more entries, or what it has.
func (r *restorer) isUnnoticed(entries []*Entry) bool {
	skip, other := r.back.Unread(), r.other
	other.exact = slices.ContainsFunc(entries, r.replaces)
	shown, seen := r.show(false), r.show(false, entries...)
	if other.near(r.Arena, shown, seen, r.live, skip) {
		return true
	}
	isMade := makesObject(shown, seen, r.live)
	if seen = r.show(true, entries...); !isMade && other.near(r.Arena, r.shown, seen, r.live, skip) {
		return true
	}
	// From what was hidden, other rules may make something now: that is no edit.
	if slices.ContainsFunc(entries, func(e *Entry) bool { return !e.Hidden || e.Rules == r.rules }) || !adds(r.Arena, r.shown, seen, r.live) {
		return false
	}
	r.shown = seen
	return true
}

// makesObject reports whether seen has an object that neither shown nor live has: it would come back to the other version, which
// cannot say that it is absent. An object that is missing in seen, but not in live, is preserved for the other version.
func makesObject(shown, seen, live *tree.Node) bool {
	return seen.Is(tree.Object) && (shown == nil && live == nil ||
		slices.ContainsFunc(seen.Members(), func(m tree.Member) bool { return makesObject(shown.Get(m.Name), m.Value, live.Get(m.Name)) }))
}

// replaces reports whether an entry would take the place of a value that was not there when it was written.
func (r *restorer) replaces(e *Entry) bool {
	value, _ := r.find(r.base, r.schema, e.At)
	return e.Kind == Value && e.Replaced == "" && value != nil
}

// try restores as many entries as the other version does not notice: all groups, or halves of them, and in the end
// single entries.
func (r *restorer) try(groups [][]*Entry) {
	all := slices.Concat(groups...)
	switch {
	case len(all) == 0:
	case r.Work > r.work, r.seen.IsCostly():
		for _, e := range all {
			r.carry(e)
		}
	case r.isUnnoticed(all):
		r.accept(all)
	case len(groups) > 1:
		r.try(groups[:len(groups)/2])
		r.try(groups[len(groups)/2:])
	case len(all) > 1:
		r.try(split(all))
	default:
		r.supersede(all[0])
	}
}

// split divides entries by the first segment in which their addresses differ.
func split(all []*Entry) (groups [][]*Entry) {
	for depth := 0; len(groups) < 2; depth++ {
		groups = nil
		index, ended := map[Segment]int{}, false
		for i, e := range all {
			segment := Segment{Name: strconv.Itoa(i), Element: true}
			if depth < len(e.At) {
				segment, ended = e.At[depth].key(), false
			} else {
				segment.Name, ended = "\x00"+segment.Name, true
			}
			pos, known := index[segment]
			if !known {
				pos = len(groups)
				index[segment], groups = pos, append(groups, nil)
			}
			groups[pos] = append(groups[pos], e)
		}
		if ended && len(groups) < 2 {
			return [][]*Entry{all[:1], all[1:]}
		}
	}
	return groups
}

// byGroup divides entries into those that one rule reads together.
func (r *restorer) byGroup(entries []*Entry) (groups [][]*Entry) {
	at := map[string]int{}
	for _, e := range entries {
		name := r.groupOf(e)
		pos, known := at[name]
		if !known {
			pos = len(groups)
			at[name], groups = pos, append(groups, nil)
		}
		groups[pos] = append(groups[pos], e)
	}
	return groups
}

// groupOf identifies the rule that reads an entry, in its element.
func (r *restorer) groupOf(e *Entry) string {
	together := r.seen.Together()
	for i, segment := range e.At {
		if together = together.in(segment); together == nil {
			break
		}
		if together.Group > 0 {
			element := i
			for element > 0 && !e.At[element-1].Element {
				element--
			}
			return e.At[:element].Pointer() + " " + strconv.Itoa(together.Group)
		}
	}
	return e.At.Pointer()
}

// tryClean restores all entries at once that have no name of an element that looks different. This guess makes one try
// of many: whether they come back, the law decides.
func (r *restorer) tryClean(entries []*Entry) (rest []*Entry) {
	seen := r.show(true, entries...)
	if r.other.near(r.Arena, r.shown, seen, r.live, r.back.Unread()) {
		return entries
	}
	different := map[string]bool{}
	r.collectDifferent(r.other, r.shown, seen, different)
	var clean []*Entry
	for _, e := range entries {
		if slices.ContainsFunc(e.At, func(s Segment) bool { return different[nameIn(s)] }) {
			rest = append(rest, e)
		} else {
			clean = append(clean, e)
		}
	}
	if len(clean) == 0 || len(rest) == 0 || !r.isUnnoticed(clean) {
		return entries
	}
	r.accept(clean)
	return rest
}

// nameIn returns the name in a segment, as JSON.
func nameIn(s Segment) string {
	if !s.Element {
		return string(tree.Quote(nil, s.Name))
	}
	_, name, _ := strings.Cut(s.Name, "=")
	return name
}

// collectDifferent collects names of members, and texts of elements, in which two values differ.
func (r *restorer) collectDifferent(s Schema, x, y *tree.Node, names map[string]bool) {
	if s.shows(r.Arena, x, y, nil) {
		return
	}
	switch {
	case x.Is(tree.Object) && y.Is(tree.Object):
		for _, m := range x.Members() {
			if other := y.Get(m.Name); !s.member(m.Name).shows(r.Arena, m.Value, other, nil) {
				names[string(tree.Quote(nil, m.Name))] = true
				r.collectDifferent(s.member(m.Name), m.Value, other, names)
			}
		}
		for _, m := range y.Members() {
			if x.Get(m.Name) == nil {
				names[string(tree.Quote(nil, m.Name))] = true
			}
		}
	case x.Is(tree.List) && y.Is(tree.List):
		was, is := count(r.Arena, x.Elems()), count(r.Arena, y.Elems())
		for _, element := range slices.Concat(x.Elems(), y.Elems()) {
			if digest := r.Digest(element); was[digest] != is[digest] {
				for _, m := range element.Members() {
					if m.Value.Is(tree.String) {
						names[string(m.Value.JSON())] = true
					}
				}
			}
		}
	}
}

// judgeElements judges the entries of elements that are converted alone, and returns the others.
func (r *restorer) judgeElements(entries []*Entry) (rest []*Entry) {
	parts := slices.DeleteFunc(r.seen.Parts(), func(p Part) bool { return p.readsOne(entries) || p.readsOne(r.restored) })
	if len(parts) == 0 {
		return entries
	}
	judged, rest := byElement(parts, entries)
	restored, _ := byElement(parts, r.restored)
	known := make(map[string][]*Entry, len(restored))
	for _, of := range restored {
		known[of.at.Pointer()] = of.all
	}
	for _, of := range judged {
		if !r.judgeElement(of, known[of.at.Pointer()]) {
			rest = append(rest, of.all...)
		}
	}
	return rest
}

// readsOne reports whether one of the entries is for what elements are judged by, which has to be there before.
func (p Part) readsOne(entries []*Entry) bool {
	return slices.ContainsFunc(p.Reads, func(path []string) bool {
		read := AddressOf(path)
		return slices.ContainsFunc(entries, func(e *Entry) bool { return e.At.isIn(read) || read.isIn(e.At) })
	})
}

// element has entries of an element, or of what is in it.
type element struct {
	part Part
	at   Address
	all  []*Entry
}

// byElement divides entries into those of elements that are converted alone, and the others.
func byElement(parts []Part, entries []*Entry) (elements []*element, rest []*Entry) {
	known := map[string]*element{}
	for _, e := range entries {
		pos := slices.IndexFunc(parts, func(p Part) bool { return p.has(e.At) })
		if pos < 0 {
			rest = append(rest, e)
			continue
		}
		at := e.At[:len(parts[pos].Path)+1]
		name := at.Pointer()
		if known[name] == nil {
			known[name] = &element{part: parts[pos], at: at}
			elements = append(elements, known[name])
		}
		known[name].all = append(known[name].all, e)
	}
	return elements, rest
}

// has reports whether an address leads into an element.
func (p Part) has(at Address) bool {
	if len(at) <= len(p.Path)+1 || at[len(p.Path)].Element == p.Map {
		return false
	}
	for i, name := range p.Path {
		if at[i].Element || at[i].Name != name {
			return false
		}
	}
	return true
}

// judgeElement judges the entries of one element, of which some are restored. It returns false if it does not know the
// element.
func (r *restorer) judgeElement(of *element, restored []*Entry) (done bool) {
	base, s := r.find(r.base, r.schema, of.at)
	if base == nil {
		return false
	}
	last, other, live := of.at[len(of.at)-1], r.other, base.Source(r.run)
	r.NewRun() // base stays as it is
	for _, name := range of.part.Other {
		other = other.member(name)
	}
	switch {
	case of.part.Key != "":
		other = other.in(Segment{Element: !of.part.OtherMap})
		base, live = r.withoutKey(base, of.part.Key), r.withoutKey(live, of.part.Key)
	case of.part.Map:
		other, live = other.in(last), r.live.At(of.part.Other).Get(last.Name)
	default:
		other = other.in(last)
	}
	inner := &restorer{namer: r.namer, base: base, live: live, schema: s, other: other, rules: r.rules, work: r.work}
	inner.seen, inner.back = of.part.Functions(r.base, r.live)
	inner.restored = relativeTo(of.at, restored)
	relative := relativeTo(of.at, of.all)
	inner.judge(relative)
	for i, e := range relative {
		whole := of.all[i]
		switch whole.Fate = e.Fate; e.Fate {
		case Restored:
			r.restored = append(r.restored, whole)
		case Undecided:
			r.carry(whole)
		default:
			r.supersede(whole)
		}
	}
	return true
}

// withoutKey returns an element of a list without the field that is its name in a map.
func (r *restorer) withoutKey(element *tree.Node, key string) *tree.Node {
	if !element.Is(tree.Object) || element.Get(key) == nil {
		return element
	}
	return r.With(element, key, nil)
}

// relativeTo returns entries with their addresses in an element.
func relativeTo(at Address, entries []*Entry) []*Entry {
	relative := make([]*Entry, len(entries))
	for i, e := range entries {
		moved := *e
		moved.At = e.At[len(at):]
		relative[i] = &moved
	}
	return relative
}
