// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
)

// directions prepares both directions of a scope: to the hub, and from the hub. The schemas are
// those of the scope in spoke and hub, nil if unknown. names are the names of the spoke.
func (s *Scope) directions(spoke, hub *shape.Schema, names *shape.Names) (toHub, fromHub *direction) {
	toHub, fromHub = s.direction(true, spoke, hub, names), s.direction(false, hub, spoke, names)
	for i := range s.Collections {
		c := &s.Collections[i]
		in := collection{pointer: c.Path.Pointer(), isMap: c.Map, isObject: c.Object, keys: Path(c.Keys).segments(), projection: &projection{}}
		in.common = s.commonOf(c.Path)
		in.projection.addScope(&c.Scope)
		in.projection.merge()
		to, from := in, in
		to.path, from.path = c.At(false).segments(), c.At(true).segments()
		inside := namesAt(names, c.At(false))
		spokeElement, hubElement := shapeAt(spoke, c.At(false)), shapeAt(hub, c.At(true))
		if c.Object {
			to.opensNull, from.opensNull = !mayBeNull(spokeElement), !mayBeNull(hubElement)
		} else {
			inside, spokeElement, hubElement = inside.Member(Each), elementShape(spoke, c.At(false)), elementShape(hub, c.At(true))
		}
		to.sourceNames, from.targetNames = newNaming(inside), newNaming(inside)
		to.exclusion, to.targetExclusion = newExclusion(c.ExcludeSpoke), newExclusion(c.ExcludeHub)
		from.exclusion, from.targetExclusion = to.targetExclusion, to.exclusion
		to.direction, from.direction = c.Scope.directions(spokeElement, hubElement, inside)
		toHub.collections = append(toHub.collections, to)
		fromHub.siblings = append(fromHub.siblings, from.direction.siblings...)
		fromHub.collections = append(fromHub.collections, from)
	}
	slices.Sort(fromHub.siblings)
	fromHub.siblings = slices.Compact(fromHub.siblings)
	toHub.sourcePlaces, toHub.targetPlaces = s.places(false), s.places(true)
	fromHub.sourcePlaces, fromHub.targetPlaces = toHub.targetPlaces, toHub.sourcePlaces
	toHub.reverse, fromHub.reverse = fromHub, toHub
	preserves := toHub.mayPreserve() || fromHub.mayPreserve()
	toHub.preserves, fromHub.preserves = preserves, preserves
	toHub.removesEmptied, fromHub.removesEmptied = toHub.mayRemoveEmptied(), fromHub.mayRemoveEmptied()
	return toHub, fromHub
}

func mayBeNull(schema *shape.Schema) bool { return schema != nil && schema.IsNullable() }

// mayRemoveEmptied computes removesEmptied.
func (d *direction) mayRemoveEmptied() bool {
	return len(d.shared) > 0 || slices.ContainsFunc(d.collections, func(c collection) bool { return c.direction.removesEmptied })
}

// shapeAt returns the schema of the field at path, nil if unknown.
func shapeAt(schema *shape.Schema, path Path) *shape.Schema {
	for _, name := range path {
		if schema == nil {
			return nil
		}
		schema = schema.Field(name)
	}
	return schema
}

// elementShape returns the schema of the elements of the list or map at path, nil if unknown.
func elementShape(schema *shape.Schema, path Path) *shape.Schema {
	container := shapeAt(schema, path)
	if container == nil {
		return nil
	}
	if items := container.Items(); items != nil {
		return items
	}
	return container.Field("")
}

// commonOf returns the shape that the list or map at path must have, nil if it may have any.
func (s *Scope) commonOf(path Path) *Common {
	for i := range s.OnlySpoke {
		if leaf := &s.OnlySpoke[i]; leaf.Common != nil && slices.Equal(leaf.Path, path) {
			return leaf.Common
		}
	}
	return nil
}

// mayPreserve computes preserves.
func (d *direction) mayPreserve() bool {
	return len(d.exchanges)+len(d.defaults)+len(d.shells)+len(d.holders)+len(d.shared) > 0 ||
		slices.ContainsFunc(d.collections, func(c collection) bool { return c.exclusion != nil || c.direction.preserves })
}

// direction prepares one direction, without the collections.
func (s *Scope) direction(toHub bool, from, to *shape.Schema, names *shape.Names) *direction {
	d := &direction{shape: to}
	for _, m := range s.Moves {
		from, to := ends(toHub, m.Spoke, m.Hub)
		d.moves = append(d.moves, move{newSlot(from, 0), newSlot(to, 0)})
	}
	for i := range s.Exchanges {
		d.exchanges = append(d.exchanges, newExchange(&s.Exchanges[i], toHub, names))
		d.exchanges[i].setStructure(from, to)
		for j, fields := 0, d.exchanges[i].to; j < len(fields); j++ {
			if !fields[j].text {
				fields[j].shape = shapeAt(to, s.Exchanges[i].fields(toHub)[j].Path)
			}
		}
	}
	d.numberParents()
	for _, rule := range s.Defaults {
		f := newSlot(rule.Path, rule.Anchor)
		f.nullAnchor, f.shape = rule.NullAnchor, shapeAt(to, rule.Path)
		d.defaults = append(d.defaults, defaultRule{slot: f, atSource: rule.Hub != toHub, value: rule.Value, from: rule.From})
	}
	drops, _ := ends(toHub, s.DropSpoke, s.DropHub)
	for _, path := range drops {
		d.drops = append(d.drops, path.segments())
	}
	sourceOnly, targetOnly := ends(toHub, s.OnlySpoke, s.OnlyHub)
	d.groupOneSided(sourceOnly)
	for _, leaf := range targetOnly {
		f := newSlot(leaf.Path, leaf.Anchor)
		f.text, f.label = leaf.Text, leaf.Label
		f.nullAnchor = leaf.NullAnchor
		if !leaf.Text {
			f.shape = shapeAt(to, leaf.Path)
		}
		d.arriving = append(d.arriving, arrivingField{slot: f, shell: leaf.Shell, null: leaf.Null, common: leaf.Common, named: setOf(leaf.Known), siblings: leaf.Siblings})
		d.siblings = append(d.siblings, leaf.Siblings...)
	}
	for _, shared := range s.Shared {
		from, to := ends(toHub, shared.Spoke, shared.Hub)
		d.shared = append(d.shared, sharedRule{newSlot(shared.Path, 0), trieOf(from, len(shared.Path)), trieOf(to, len(shared.Path))})
	}
	return d
}

// fields returns the target fields of a direction.
func (e *Exchange) fields(toHub bool) []Field {
	_, to := ends(toHub, e.Spoke, e.Hub)
	return to
}

func newExchange(e *Exchange, toHub bool, names *shape.Names) exchange {
	from, to := ends(toHub, slotsOf(e.Spoke, names), slotsOf(e.Hub, nil))
	x := exchange{Exchange: e, toHub: toHub, from: from, to: to, table: e.literalPairs()}
	x.roundTrips, x.tableRoundTrips = x.alwaysRoundTrips(), x.isTableOneToOne()
	x.toPointers = pointers(x.to)
	if e.Format != nil {
		x.format = newFormatting(e.Format)
	}
	if e.Index != nil {
		x.index = &indexing{e.Index, newName(e.Index.Key), newName(e.Index.Value)}
	}
	if e.Cast != nil && e.Cast.Document != "" {
		x.document = &documentCast{Cast: e.Cast}
	}
	if e.Wrap != nil {
		x.wrap = &wrapping{e.Wrap, newName(e.Wrap.Field)}
	}
	return x
}

// setStructure sets the schema of the values of a document. from and to are the schemas of the scope.
func (e *exchange) setStructure(from, to *shape.Schema) {
	switch {
	case e.document == nil:
	case e.toHub == e.Cast.Hub:
		e.document.structure = shapeAt(from, e.fields(!e.toHub)[0].Path)
	default:
		e.document.structure = shapeAt(to, e.fields(e.toHub)[0].Path)
	}
}

// alwaysRoundTrips computes roundTrips: the holes of a format take the whole text that matches,
// into fields that accept any value; and a list contains the value that was put into it.
func (e *exchange) alwaysRoundTrips() bool {
	switch {
	case e.Format != nil:
		return e.toHub && !slices.ContainsFunc(e.to, func(to slot) bool { return to.text || to.label })
	case e.Wrap != nil && e.Wrap.Field == "":
		from := e.from[0]
		return e.toHub == e.Wrap.Hub && !from.text && !from.label
	}
	return false
}

// isTableOneToOne computes tableRoundTrips: no value is twice on a side of the table, and the
// source field accepts every value of the table.
func (e *exchange) isTableOneToOne() bool {
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

// ends returns the source and the target of a direction.
func ends[T any](toHub bool, spoke, hub T) (from, to T) {
	if toHub {
		return spoke, hub
	}
	return hub, spoke
}

// namesAt returns the names in the value at a path.
func namesAt(names *shape.Names, path Path) *shape.Names {
	for _, name := range path {
		names = names.Member(name)
	}
	return names
}

// slotsOf prepares fields. names are those of their version.
func slotsOf(fields []Field, names *shape.Names) []slot {
	prepared := make([]slot, len(fields))
	for i, f := range fields {
		prepared[i] = newSlot(f.Path, f.Anchor)
		prepared[i].image = f.Path.Rename(names).Pointer()
		prepared[i].text, prepared[i].label, prepared[i].notNull, prepared[i].nullAnchor = f.Text, f.Label, f.NotNull, f.NullAnchor
	}
	return prepared
}

func (d *direction) numberParents() {
	var slots []*slot
	for i := range d.moves {
		slots = append(slots, &d.moves[i].from, &d.moves[i].to)
	}
	for i := range d.exchanges {
		for j := range d.exchanges[i].from {
			slots = append(slots, &d.exchanges[i].from[j])
		}
		for j := range d.exchanges[i].to {
			slots = append(slots, &d.exchanges[i].to[j])
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
	d.parents = len(numbers)
}

// groupOneSided groups the one-sided fields by the object that holds them.
func (d *direction) groupOneSided(leaves []LeafField) {
	at := map[string]int{}
	of := func(path Path) *holder {
		f := newSlot(path, 0)
		if _, there := at[f.pointer]; !there {
			at[f.pointer] = len(d.holders)
			d.holders = append(d.holders, holder{slot: f})
		}
		return &d.holders[at[f.pointer]]
	}
	for _, leaf := range leaves {
		if leaf.Known != nil {
			h := of(leaf.Path)
			h.named, h.unknownAnchor = setOf(leaf.Known), leaf.Anchor
			continue
		}
		last := len(leaf.Path) - 1
		leaves := removeAlways
		switch {
		case leaf.Shell:
			leaves = removeIfEmpty
		case leaf.Null:
			leaves = removeIfNull
		case leaf.Common != nil:
			leaves = removeIfUncommon
			of(leaf.Path[:last]).common.set(leaf.Path[last], leaf.Common)
		}
		of(leaf.Path[:last]).fields.set(leaf.Path[last], removedField{leaves, leaf.Anchor})
		if leaf.Shell {
			d.shells = append(d.shells, newSlot(leaf.Path, leaf.Anchor))
		}
	}
	slices.SortStableFunc(d.holders, func(a, b holder) int { return cmp.Compare(len(b.path), len(a.path)) })
}

// trieOf returns the set of the paths, without their first skip segments, which they have in
// common.
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
