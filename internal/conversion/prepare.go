// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/conversion/shape"
)

// ways prepares both directions of a scope: to the hub, and from it. The schemas are
// those of the scope on either side, nil where they are not known.
func (s *Scope) ways(spoke, hub *shape.Schema) (toHub, fromHub *direction) {
	toHub, fromHub = s.way(true, hub), s.way(false, spoke)
	for i := range s.Collections {
		c := &s.Collections[i]
		in := collection{path: c.Path.segments(), pointer: c.Path.Pointer(), isMap: c.Map, keys: Path(c.Keys).segments(), look: newLook()}
		in.common = s.commonOf(c.Path)
		in.look.addScope(&c.Scope)
		in.look.merge()
		to, from := in, in
		to.way, from.way = c.Scope.ways(elementShape(spoke, c.Path), elementShape(hub, c.Path))
		toHub.collections = append(toHub.collections, to)
		fromHub.siblings = append(fromHub.siblings, from.way.siblings...)
		fromHub.collections = append(fromHub.collections, from)
	}
	slices.Sort(fromHub.siblings)
	fromHub.siblings = slices.Compact(fromHub.siblings)
	toHub.back, fromHub.back = fromHub, toHub
	keeps := toHub.mayKeep() || fromHub.mayKeep()
	toHub.keeps, fromHub.keeps = keeps, keeps
	toHub.tidies, fromHub.tidies = toHub.mayTidy(), fromHub.mayTidy()
	return toHub, fromHub
}

// mayTidy reports whether a step may take objects away that rules have emptied.
func (w *direction) mayTidy() bool {
	return len(w.shared) > 0 || slices.ContainsFunc(w.collections, func(c collection) bool { return c.way.tidies })
}

// shapeAt is what a schema says of a field, nil where that is not known.
func shapeAt(s *shape.Schema, path Path) *shape.Schema {
	for _, name := range path {
		if s == nil {
			return nil
		}
		s = s.Field(name)
	}
	return s
}

// elementShape is what a schema says of the elements of a list or map.
func elementShape(s *shape.Schema, path Path) *shape.Schema {
	held := shapeAt(s, path)
	if held == nil {
		return nil
	}
	if items := held.Items(); items != nil {
		return items
	}
	return held.Field("")
}

// commonOf is the one that a list or map must have, nil where it may have any.
func (s *Scope) commonOf(path Path) *Common {
	for i := range s.OnlySpoke {
		if leaf := &s.OnlySpoke[i]; leaf.Common != nil && slices.Equal(leaf.Path, path) {
			return leaf.Common
		}
	}
	return nil
}

// mayKeep reports whether a step may keep something aside.
func (w *direction) mayKeep() bool {
	return len(w.exchanges)+len(w.defaults)+len(w.shells)+len(w.holders)+len(w.shared) > 0 ||
		slices.ContainsFunc(w.collections, func(c collection) bool { return c.way.keeps })
}

// way prepares one direction, without the collections.
func (s *Scope) way(toHub bool, to *shape.Schema) *direction {
	w := &direction{shape: to}
	for _, m := range s.Moves {
		from, to := ends(toHub, m.Spoke, m.Hub)
		w.moves = append(w.moves, move{newSlot(from, 0), newSlot(to, 0)})
	}
	for i := range s.Exchanges {
		w.exchanges = append(w.exchanges, newExchange(&s.Exchanges[i], toHub))
		for j, fields := 0, w.exchanges[i].to; j < len(fields); j++ {
			if !fields[j].text {
				fields[j].shape = shapeAt(to, s.Exchanges[i].fields(toHub)[j].Path)
			}
		}
	}
	w.numberParents()
	for _, d := range s.Defaults {
		f := newSlot(d.Path, d.Anchor)
		f.nullAnchor, f.shape = d.NullAnchor, shapeAt(to, d.Path)
		w.defaults = append(w.defaults, filling{slot: f, leaves: d.Hub != toHub, value: d.Value})
	}
	drops, _ := ends(toHub, s.DropSpoke, s.DropHub)
	for _, path := range drops {
		w.drops = append(w.drops, path.segments())
	}
	leaving, arriving := ends(toHub, s.OnlySpoke, s.OnlyHub)
	w.leave(leaving)
	for _, leaf := range arriving {
		f := newSlot(leaf.Path, leaf.Anchor)
		f.text, f.label = leaf.Text, leaf.Label
		f.nullAnchor = leaf.NullAnchor
		if !leaf.Text {
			f.shape = shapeAt(to, leaf.Path)
		}
		w.coming = append(w.coming, coming{slot: f, shell: leaf.Shell, null: leaf.Null, common: leaf.Common, known: setOf(leaf.Known), siblings: leaf.Siblings})
		w.siblings = append(w.siblings, leaf.Siblings...)
	}
	for _, shared := range s.Shared {
		from, to := ends(toHub, shared.Spoke, shared.Hub)
		w.shared = append(w.shared, sharing{newSlot(shared.Path, 0), trieOf(from, len(shared.Path)), trieOf(to, len(shared.Path))})
	}
	return w
}

// fields are those of the side to which a direction leads.
func (e *Exchange) fields(toHub bool) []Field {
	_, to := ends(toHub, e.Spoke, e.Hub)
	return to
}

func newExchange(e *Exchange, toHub bool) exchange {
	from, to := ends(toHub, e.Spoke, e.Hub)
	x := exchange{Exchange: e, toHub: toHub, from: slotsOf(from), to: slotsOf(to), table: quotedPairs(e.Table)}
	x.faithful, x.oneToOne = x.isFaithful(), x.isOneToOne()
	x.toPointers = pointers(x.to)
	if e.Format != nil {
		x.format = newFormatting(e.Format)
	}
	if e.Index != nil {
		x.index = &indexing{e.Index, newName(e.Index.Key)}
	}
	return x
}

// isFaithful: the holes of a format take all of a text that fits, into fields that
// accept any value, and a list has the value that was put into it.
func (e *exchange) isFaithful() bool {
	switch {
	case e.Format != nil:
		return e.toHub && !slices.ContainsFunc(e.to, func(to slot) bool { return to.text || to.label })
	case e.Wrap != nil:
		from := e.from[0]
		return e.toHub == e.Wrap.Hub && !from.text && !from.label
	}
	return false
}

// isOneToOne: no string is in the table twice on a side, and what comes back is
// accepted there whatever it is.
func (e *exchange) isOneToOne() bool {
	if len(e.table) == 0 || e.from[0].label {
		return false
	}
	for i, pair := range e.table {
		for _, other := range e.table[:i] {
			if bytes.Equal(pair[0], other[0]) || bytes.Equal(pair[1], other[1]) {
				return false
			}
		}
	}
	return true
}

// ends orders what the spoke has and what the hub has in a direction.
func ends[T any](toHub bool, spoke, hub T) (from, to T) {
	if toHub {
		return spoke, hub
	}
	return hub, spoke
}

func slotsOf(fields []Field) []slot {
	prepared := make([]slot, len(fields))
	for i, f := range fields {
		prepared[i] = newSlot(f.Path, f.Anchor)
		prepared[i].text, prepared[i].label, prepared[i].notNull, prepared[i].nullAnchor = f.Text, f.Label, f.NotNull, f.NullAnchor
	}
	return prepared
}

func (w *direction) numberParents() {
	var slots []*slot
	for i := range w.moves {
		slots = append(slots, &w.moves[i].from, &w.moves[i].to)
	}
	for i := range w.exchanges {
		for j := range w.exchanges[i].from {
			slots = append(slots, &w.exchanges[i].from[j])
		}
		for j := range w.exchanges[i].to {
			slots = append(slots, &w.exchanges[i].to[j])
		}
	}
	numbers := map[string]int{"": 0}
	for _, s := range slots {
		parent := s.pointer[:strings.LastIndexByte(s.pointer, '/')]
		if _, known := numbers[parent]; !known {
			numbers[parent] = len(numbers)
		}
		s.parent = numbers[parent]
	}
	w.parents = len(numbers)
}

// leave groups the one-sided fields by the object that holds them.
func (w *direction) leave(leaves []LeafField) {
	at := map[string]int{}
	of := func(path Path) *holder {
		f := newSlot(path, 0)
		if _, there := at[f.pointer]; !there {
			at[f.pointer] = len(w.holders)
			w.holders = append(w.holders, holder{slot: f})
		}
		return &w.holders[at[f.pointer]]
	}
	for _, leaf := range leaves {
		if leaf.Known != nil {
			held := of(leaf.Path)
			held.known, held.anchored = setOf(leaf.Known), leaf.Anchor
			continue
		}
		last := len(leaf.Path) - 1
		leaves := always
		switch {
		case leaf.Shell:
			leaves = emptied
		case leaf.Null:
			leaves = nulled
		case leaf.Common != nil:
			leaves = unlikeCommon
			of(leaf.Path[:last]).common.set(leaf.Path[last], leaf.Common)
		}
		of(leaf.Path[:last]).members.set(leaf.Path[last], leaver{leaves, leaf.Anchor})
		if leaf.Shell {
			w.shells = append(w.shells, newSlot(leaf.Path, leaf.Anchor))
		}
	}
	slices.SortStableFunc(w.holders, func(a, b holder) int { return cmp.Compare(len(b.path), len(a.path)) })
}

// trieOf holds paths, without the segments that all of them begin with.
func trieOf(paths []Path, skip int) *trie {
	var root *trie
	for _, path := range paths {
		if root == nil {
			root = &trie{}
		}
		at := root
		for _, name := range path[skip:] {
			next := at.members.get(name)
			if next == nil {
				next = &trie{}
				at.members.set(name, next)
			}
			at = next
		}
		at.end = true
	}
	return root
}
