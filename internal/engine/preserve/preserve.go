// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preserve keeps what the other version of an object cannot express.
//
// Rules between two versions are two functions, one for each direction, which always have a result and know nothing of
// preserved data. Convert makes y = f(x). What x has and g(y) does not have is preserved in y, as entries (entry.go): an
// address in x and a value, the absence of one, an element, or an order (diff.go). On the way back, an entry is restored
// (restore.go) if f of the object with it is what f of the object without it is, wherever it is not just what the other
// version has (judge.go): an edit at the other version discards the entries that contradict it, and no others. Both
// are compared as an API server shows them, with defaults (schema.go), so that a default is not an edit.
//
// Nothing here depends on what the functions do: whatever they lose is preserved.
package preserve

import (
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// Function converts a value to the other version.
type Function interface {
	// Apply returns what the value becomes, nil for nothing. It does not change the value. keepEmptied keeps objects
	// that only existed for what rules have taken out of them.
	Apply(value *tree.Node, keepEmptied bool) *tree.Node
	// IsCostly reports whether Apply has taken so much that it is for nothing but the conversion itself from now on.
	IsCostly() bool
	// Unread are the paths that Apply does not read.
	Unread() *Paths
	// Dropped are the paths that are lost on purpose.
	Dropped() *Paths
	// Together are the paths that a rule reads with others, by Paths.Group.
	Together() *Paths
	// Known is what rules know of the source version and its schema does not: keys of lists, and labels and annotations.
	Known() *Paths
	// Parts are the lists and maps whose elements Apply converts one by one, and reads nowhere else.
	Parts() []Part
	// Complete returns a value that Apply has made at an address, with what a preserved value has that Apply cannot make; nil if
	// there is no such thing. A text with a document may have names that its schema has not.
	Complete(at Address, made, preserved *tree.Node) *tree.Node
}

// Part is a list or map whose elements are converted one by one.
type Part struct {
	// Path and Other lead to it in both versions. Map and OtherMap are true where it is a map.
	Path, Other   []string
	Map, OtherMap bool
	// Key is the field of a list's elements that is their name in the map of the other version: Functions convert elements
	// without it. It is empty if both versions have a list, or both a map.
	Key string
	// Reads are the paths of what is read besides an element to convert it.
	Reads [][]string
	// Functions returns what converts an element of a value, and what converts one of the other version's back.
	Functions func(value, other *tree.Node) (function, back Function)
}

// Versions are those of a conversion.
type Versions struct {
	*tree.Arena
	// There converts from Source to Target, and Back from Target to Source.
	There, Back    Function
	Source, Target Schema
	// Rules identifies both functions.
	Rules string
	// FrozenStatus restores nothing in .status: a client that may write the annotations of an object may not be allowed
	// to write its status.
	FrozenStatus bool
}

// Convert returns what x is in the target version, with the entries that come back to it from preserved. It returns
// those of them that stay preserved, and the entries of the source version: what does not come back from the result, and
// those of own that have no place.
func (v *Versions) Convert(x *tree.Node, preserved, own []Entry) (y *tree.Node, carried, lost []Entry) {
	v.Source.ruled, v.Target.ruled = v.There.Known(), v.Back.Known()
	run, before := v.NewRun(), v.Work
	made := v.There.Apply(x, false)
	cost := v.Work - before
	y, carried = v.restored(x, made, run, preserved, own)
	d, again := v.lost(x, y)
	absent := restoredAbsent(preserved)
	if len(absent) > 0 && v.reads(d.found) && !v.comesBack(d, x, y, again) {
		v.supersedeOne(absent, func() bool {
			y, carried = v.restored(x, made, run, preserved, own)
			d, again = v.lost(x, y)
			return v.comesBack(d, x, y, again)
		})
	}
	const conversions = 2
	if conversions*cost < maxHiding && !v.Back.IsCostly() {
		v.hide(d, again, y)
	}
	return y, carried, d.withOwn(own, x, v.Source)
}

// restored returns what is made of x, in a run, with the entries that come back, and those that stay preserved.
func (v *Versions) restored(x, made *tree.Node, run uint32, preserved, own []Entry) (y *tree.Node, carried []Entry) {
	if len(preserved) == 0 {
		return made, nil
	}
	r := &restorer{
		namer: newNamer(v.Arena, run), base: made, live: x, schema: v.Target, other: v.Source,
		seen: v.Back, back: v.There, rules: v.Rules, work: v.Work + maxJudging, isPart: len(own) > 0, frozenStatus: v.FrozenStatus,
	}
	return r.restore(preserved), r.carried
}

// restoredAbsent returns the entries with which something is absent that would be there without them.
func restoredAbsent(entries []Entry) (absent []*Entry) {
	for _, e := range pointersTo(entries) {
		if e.Kind == Absent && e.Fate == Restored {
			absent = append(absent, e)
		}
	}
	return absent
}

// maxSuperseding is the most work for finding an entry to supersede, in units of the arena.
const maxSuperseding = 1 << 20

// supersedeOne supersedes the first of some entries without which an object comes back, if there is one: what is absent with
// the entry would contradict a value that is lost. convert converts the object, and reports whether it comes back.
func (v *Versions) supersedeOne(absent []*Entry, convert func() bool) {
	end := v.Work + maxSuperseding
	for _, e := range absent {
		if v.Work > end || v.There.IsCostly() {
			break
		}
		if e.isSuperseded = true; convert() {
			return
		}
		e.isSuperseded = false
	}
	convert()
}

// reads reports whether the other version may show one of the values.
func (v *Versions) reads(entries []Entry) bool {
	return slices.ContainsFunc(entries, func(e Entry) bool {
		unread := v.There.Unread()
		for _, segment := range e.At {
			unread = unread.in(segment)
		}
		return e.HasValue() && !isUnread(&e, unread)
	})
}

// comesBack reports whether x comes back from y with what was lost.
func (v *Versions) comesBack(lost *differ, x, y, again *tree.Node) bool {
	r := v.wayBack(lost, again, y)
	r.work, r.frozenStatus = v.Work+maxJudging, v.FrozenStatus
	back := r.restore(slices.Clone(lost.found))
	left := &differ{namer: namer{Arena: v.Arena, run: v.NewRun()}}
	left.object(back, x, v.Source, v.There.Dropped())
	return len(left.found) == 0
}

// wayBack returns what restores the entries that were found to again, which comes back from y.
func (v *Versions) wayBack(d *differ, again, y *tree.Node) *restorer {
	return &restorer{namer: &d.namer, base: again, live: y, schema: v.Source, other: v.Target, seen: v.There, back: v.Back, rules: v.Rules}
}

// lost finds what does not come back of x, and returns what does.
func (v *Versions) lost(x, y *tree.Node) (d *differ, again *tree.Node) {
	run := v.NewRun()
	again = v.Back.Apply(y, false)
	d = &differ{namer: namer{Arena: v.Arena, run: run}}
	d.object(again, x, v.Source, v.There.Dropped())
	for i := range d.found {
		d.found[i].Rules = v.Rules
	}
	return d, again
}

// withOwn adds earlier entries of the version of x, which found no place in it, if there still is nothing. A list that has
// been made again since, and that an entry has as a whole, is without the elements that had no list.
func (d *differ) withOwn(own []Entry, x *tree.Node, s Schema) []Entry {
	if len(own) == 0 {
		return d.found
	}
	n, found := newNamer(d.Arena, 0), d.found
	for _, e := range own {
		value, at := n.find(x, s, e.At)
		isLive := value != nil && e.Kind != Order
		if e.Kind == Insert {
			isLive = isLive && at.allowsInsert(e.Value) && slices.ContainsFunc(found, func(o Entry) bool { return o.Kind == Value && e.At.isIn(o.At) })
		}
		if !isLive && !slices.ContainsFunc(found, func(o Entry) bool { return o.Is(&e) }) {
			d.found = append(d.found, e)
		}
	}
	return d.found
}

// maxHiding is the most work for finding hidden entries, in units of the arena. All others count as shown.
const maxHiding = 64 << 10

// hide finds the entries from which the other version gets nothing: it shows the same without them.
func (v *Versions) hide(d *differ, again, y *tree.Node) {
	r := v.wayBack(d, again, y)
	var read []*Entry
	for i := range d.found {
		e := &d.found[i]
		if e.Kind != Value && e.Kind != Insert {
			continue
		}
		if e.Hidden = !r.place(e).read; !e.Hidden {
			read = append(read, e)
		}
	}
	if len(read) == 0 {
		return
	}
	all := pointersTo(d.found)
	shown := r.show(true, all...)
	end := v.Work + maxHiding
	var find func(some []*Entry)
	find = func(some []*Entry) {
		if v.Work > end || v.Back.IsCostly() {
			return // they count as shown
		}
		left := make(map[*Entry]bool, len(some))
		for _, e := range some {
			left[e] = true
		}
		without := slices.DeleteFunc(slices.Clone(all), func(e *Entry) bool { return left[e] })
		if v.Target.shows(v.Arena, r.show(true, without...), shown, nil) {
			for _, e := range some {
				e.Hidden = true
			}
			return
		}
		if half := len(some) / 2; half > 0 {
			find(some[:half])
			find(some[half:])
		}
	}
	find(read)
}
