// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preserve

import (
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// differ finds what comes back in another way. Addresses share their memory until something is found.
type differ struct {
	namer
	found []Entry
}

// object finds what turns a whole object base into x: in metadata, labels and annotations only. skip is not compared.
func (d *differ) object(base, x *tree.Node, s Schema, skip *Paths) {
	var usual [16]Segment
	at := append(Address(usual[:0]), Segment{Name: "metadata"})
	for _, name := range [...]string{"labels", "annotations"} {
		from, to := base.Get("metadata").Get(name), x.Get("metadata").Get(name)
		if from == to || to != nil && !to.Is(tree.Object) {
			continue
		}
		texts := Segment{Name: name}
		d.members(append(at, texts), from, to, s.member("metadata").in(texts), skip.in(at[0]).in(texts))
	}
	d.members(at[:0], base, x, s, skip)
}

// placeUnits is the work for each byte of an address: it is as long as all names above the value.
const placeUnits = 4

func (d *differ) add(at Address, e Entry) {
	size := at.size()
	d.Spend(placeUnits*size, entryBytes+segmentBytes*len(at)+copies*size)
	e.At = slices.Clone(at)
	d.found = append(d.found, e)
}

// isEnvelope reports whether a member of an object is in every version.
func isEnvelope(at Address, name string) bool {
	return len(at) == 0 && (name == "apiVersion" || name == "kind" || name == "metadata")
}

// value finds what turns base into x. Both exist.
func (d *differ) value(at Address, base, x *tree.Node, s Schema, skip *Paths) {
	if base.IsSame(x) || skip.isWhole() {
		return
	}
	d.Spend(1, 0)
	switch {
	case base.Is(tree.Object) && x.Is(tree.Object):
		d.members(at, base, x, s, skip)
	case base.Is(tree.List) && x.Is(tree.List):
		if !slices.Equal(base.Elems(), x.Elems()) {
			d.elements(at, base, x, s, skip.in(Segment{Element: true}))
		}
	case !d.Equal(base, x):
		d.add(at, Entry{Value: x, Replaced: d.identify(base)})
	}
}

// identify identifies a value among few.
func (n *namer) identify(value *tree.Node) string {
	const digits = 8
	return n.Digest(value)[:digits]
}

func (d *differ) members(at Address, base, x *tree.Node, s Schema, skip *Paths) {
	for i, m := range x.Members() {
		other := base.Near(i, m.Name)
		if other == m.Value || other.IsScalar() && d.Equal(other, m.Value) {
			continue
		}
		segment := Segment{Name: m.Name}
		inner := skip.in(segment)
		switch {
		case inner.isWhole(), isEnvelope(at, m.Name), s.isNone(m.Value):
		case other == nil:
			d.missing(append(at, segment), m.Value, inner)
		default:
			d.value(append(at, segment), other, m.Value, s.member(m.Name), inner)
		}
	}
	for i, m := range base.Members() {
		if segment := (Segment{Name: m.Name}); x.Near(i, m.Name) == nil && !skip.in(segment).isWhole() && !isEnvelope(at, m.Name) {
			d.add(append(at, segment), Entry{Kind: Absent, Replaced: d.identify(m.Value)})
		}
	}
}

// missing adds a value that does not come back, without what skip has of it.
func (d *differ) missing(at Address, value *tree.Node, skip *Paths) {
	if skip != nil {
		value = d.without(value, skip)
	}
	d.add(at, Entry{Value: value})
}

// without returns a value without a set of paths.
func (d *differ) without(value *tree.Node, skip *Paths) *tree.Node {
	if skip == nil || value.Len() == 0 {
		return value
	}
	return d.Filter(value, func(name string, inner *tree.Node) *tree.Node {
		in := skip.in(Segment{Name: name, Element: value.Is(tree.List)})
		if in.isWhole() {
			return nil
		}
		return d.without(inner, in)
	})
}

func (d *differ) elements(at Address, base, x *tree.Node, s Schema, skip *Paths) {
	pairs := d.pair(base, x, s)
	var names named
	name := func(j int) Segment {
		if names.names == nil {
			names = d.of(base, s)
		}
		return Segment{Name: names.names[j], Element: true}
	}
	if s.isUnrecognizable(base, x, pairs) {
		d.add(at, Entry{Value: d.without(x, &Paths{Each: skip}), Replaced: d.identify(base)})
		return
	}
	kept, last, ordered := make([]bool, base.Len()), -1, true
	for i, j := range pairs {
		if j < 0 {
			continue
		}
		kept[j] = true
		ordered, last = ordered && j > last, j
		from, to, start := base.Elems()[j], x.Elems()[i], len(d.found)
		if from == to {
			continue
		}
		// The name of an element may be a digest, which few need.
		d.value(append(at, Segment{Element: true}), from, to, s.elem(), skip)
		if rest := d.restOf(to, d.found[start:], len(at)+1, s); rest != nil {
			d.found = d.found[:start]
			d.add(at, Entry{Kind: Insert, Index: i, Value: rest})
			continue
		}
		for k := start; k < len(d.found); k++ {
			d.found[k].At[len(at)] = name(j)
			d.found[k].At[len(at)].place = i + 1
		}
	}
	for j := range kept {
		if !kept[j] {
			d.add(append(at, name(j)), Entry{Kind: Absent, Replaced: d.identify(base.Elems()[j])})
		}
	}
	if !ordered {
		order := Entry{Kind: Order}
		for _, j := range pairs {
			if j >= 0 {
				order.Order = append(order.Order, name(j).Name)
			}
		}
		d.add(at, order)
	}
	for i, j := range pairs {
		if j < 0 {
			d.add(at, Entry{Kind: Insert, Index: i, Value: d.without(x.Elems()[i], skip)})
		}
	}
}

// restOf returns an element with its keys and with what does not come back of it, at a depth of the addresses of entries: if
// rules select the element, it may not be there when this comes back. It returns nil if more than that differs.
func (d *differ) restOf(element *tree.Node, entries []Entry, depth int, s Schema) *tree.Node {
	if s.ruled == nil || !s.ruled.Selected || len(entries) == 0 {
		return nil
	}
	rest := d.NewObject()
	for _, key := range s.keys() {
		rest = d.With(rest, key, element.Get(key))
	}
	for _, e := range entries {
		var path []string
		for _, segment := range e.At[depth:] {
			path = append(path, segment.Name)
			if _, _, selects := tree.CutSelector(segment.Name); selects || segment.Element {
				return nil // also for a name that looks like a selector
			}
		}
		if e.Kind != Value || e.Replaced != "" || len(path) == 0 {
			return nil
		}
		rest = d.WithAt(rest, path, e.Value)
	}
	return rest
}

// isUnrecognizable reports whether less than half of the elements of a list come back, which is of scalars: the list is
// one value.
func (s Schema) isUnrecognizable(base, x *tree.Node, pairs []int) bool {
	if !slices.ContainsFunc(base.Elems(), (*tree.Node).IsScalar) || !slices.ContainsFunc(x.Elems(), (*tree.Node).IsScalar) {
		return false
	}
	found := 0
	for _, j := range pairs {
		if j >= 0 {
			found++
		}
	}
	return 2*found < max(base.Len(), x.Len()) && found < base.Len()
}
