// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"cmp"
	"slices"
	"strings"
)

// ways prepares both directions of a scope: to the hub, and from it.
func (s *Scope) ways() (toHub, fromHub *way) {
	toHub, fromHub = s.way(true), s.way(false)
	for i := range s.Collections {
		c := &s.Collections[i]
		in := collection{path: c.Path.steps(), pointer: c.Path.pointer(), isMap: c.Map, keys: Path(c.Keys).steps(), look: newLook()}
		in.look.addScope(&c.Scope)
		in.look.merge()
		to, from := in, in
		to.way, from.way = c.Scope.ways()
		toHub.collections = append(toHub.collections, to)
		fromHub.collections = append(fromHub.collections, from)
	}
	toHub.back, fromHub.back = fromHub, toHub
	keeps := toHub.mayKeep() || fromHub.mayKeep()
	toHub.keeps, fromHub.keeps = keeps, keeps
	return toHub, fromHub
}

// mayKeep reports whether a hop may keep something aside.
func (w *way) mayKeep() bool {
	return len(w.exchanges)+len(w.defaults)+len(w.shells)+len(w.holders)+len(w.shared) > 0 ||
		slices.ContainsFunc(w.collections, func(c collection) bool { return c.way.keeps })
}

// way prepares one direction, without the collections.
func (s *Scope) way(toHub bool) *way {
	w := &way{}
	for _, m := range s.Moves {
		from, to := ends(toHub, m.Spoke, m.Hub)
		w.moves = append(w.moves, move{newSlot(from, 0), newSlot(to, 0)})
	}
	for i := range s.Exchanges {
		w.exchanges = append(w.exchanges, newExchange(&s.Exchanges[i], toHub))
	}
	w.numberParents()
	for _, d := range s.Defaults {
		f := newSlot(d.Path, d.Anchor)
		f.nullAnchor = d.NullAnchor
		w.defaults = append(w.defaults, filling{slot: f, leaves: d.Hub != toHub, value: d.Value})
	}
	drops, _ := ends(toHub, s.DropSpoke, s.DropHub)
	for _, path := range drops {
		w.drops = append(w.drops, path.steps())
	}
	leaving, arriving := ends(toHub, s.OnlySpoke, s.OnlyHub)
	w.leave(leaving)
	for _, leaf := range arriving {
		f := newSlot(leaf.Path, leaf.Anchor)
		f.text, f.label = leaf.Text, leaf.Label
		f.nullAnchor = leaf.NullAnchor
		w.coming = append(w.coming, coming{slot: f, shell: leaf.Shell, null: leaf.Null, known: setOf(leaf.Known)})
	}
	for _, shared := range s.Shared {
		from, to := ends(toHub, shared.Spoke, shared.Hub)
		w.shared = append(w.shared, sharing{newSlot(shared.Path, 0), trieOf(from, len(shared.Path)), trieOf(to, len(shared.Path))})
	}
	return w
}

func newExchange(e *Exchange, toHub bool) exchange {
	from, to := ends(toHub, e.Spoke, e.Hub)
	x := exchange{Exchange: e, toHub: toHub, from: slotsOf(from), to: slotsOf(to), table: quotedPairs(e.Table)}
	x.faithful = x.isFaithful()
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

func (w *way) numberParents() {
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
func (w *way) leave(leaves []Leaf) {
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
			of(leaf.Path).known = setOf(leaf.Known)
			continue
		}
		last := len(leaf.Path) - 1
		leaves := always
		switch {
		case leaf.Shell:
			leaves = emptied
		case leaf.Null:
			leaves = nulled
		}
		of(leaf.Path[:last]).members.set(leaf.Path[last], leaves)
		if leaf.Shell {
			w.shells = append(w.shells, newSlot(leaf.Path, 0))
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
