// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preserve

import (
	"cmp"
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// patch is a set of entries by their addresses: a value to change, or the values in it.
type patch struct {
	value, absent *Entry
	inside        map[Segment]*patch
	segments      []Segment
	inserts       []*Entry
	order         []string
}

func (p *patch) add(e *Entry) {
	for _, segment := range e.At {
		segment = segment.key()
		next := p.inside[segment]
		if next == nil {
			next = &patch{}
			if p.inside == nil {
				p.inside = map[Segment]*patch{}
			}
			p.inside[segment], p.segments = next, append(p.segments, segment)
		}
		p = next
	}
	switch e.Kind {
	case Value:
		p.value = e
	case Absent:
		p.absent = e
	case Insert:
		p.inserts = append(p.inserts, e)
	case Order:
		p.order = e.Order
	}
}

// apply returns a value with the entries. It makes the objects around them, but no elements.
func (p *patch) apply(n *namer, value *tree.Node, s Schema) *tree.Node {
	switch {
	case p.absent != nil:
		return nil
	case p.value != nil:
		value = p.value.Value
	}
	if value == nil && len(p.inserts) > 0 {
		value = n.NewList(nil)
	}
	if s.isNull(value) && slices.ContainsFunc(p.segments, func(at Segment) bool { return !p.inside[at].removes() }) {
		value = nil // server-side apply leaves null in the place of an object without fields
	}
	switch {
	case value.Is(tree.List):
		return p.applyToList(n, value, s)
	case value == nil && len(p.segments) > 0:
		value = n.NewObject()
	}
	if !value.Is(tree.Object) {
		return value
	}
	found := 0
	value = n.Filter(value, func(name string, member *tree.Node) *tree.Node {
		inner := p.inside[Segment{Name: name}]
		if inner == nil {
			return member
		}
		found++
		return inner.apply(n, member, s.member(name))
	})
	for _, segment := range p.segments {
		if found == len(p.segments) {
			break
		}
		if inner := p.inside[segment]; !segment.Element && value.Get(segment.Name) == nil && !inner.removes() {
			if made := inner.apply(n, nil, s.member(segment.Name)); made != nil {
				value = n.With(value, segment.Name, made)
			}
		}
	}
	if s.isNone(value) {
		return nil
	}
	return value
}

func (p *patch) removes() bool { return p.absent != nil }

// applyToList changes elements, removes some, sorts them, and inserts others at their indexes in the result.
func (p *patch) applyToList(n *namer, list *tree.Node, s Schema) *tree.Node {
	type element struct {
		name  string
		value *tree.Node
	}
	var names []string
	if len(p.segments) > 0 || p.order != nil {
		names = n.of(list, s).names
	}
	elements := make([]element, 0, list.Len()+len(p.inserts))
	for i, value := range list.Elems() {
		name := ""
		if names != nil {
			name = names[i]
		}
		if inner := p.inside[Segment{Name: name, Element: true}]; inner != nil && names != nil {
			changed := inner.apply(n, value, s.elem())
			if value = n.From(changed, value); value == nil {
				continue
			}
		}
		elements = append(elements, element{name, value})
	}
	if p.order != nil {
		rank := make(map[string]int, len(p.order))
		for i, name := range p.order {
			rank[name] = i - len(p.order)
		}
		slices.SortStableFunc(elements, func(x, y element) int { return cmp.Compare(rank[x.name], rank[y.name]) })
	}
	slices.SortStableFunc(p.inserts, func(x, y *Entry) int { return cmp.Compare(x.Index, y.Index) })
	all := n.Room(len(elements) + len(p.inserts))
	inserts := p.inserts
	for len(elements) > 0 || len(inserts) > 0 {
		if len(inserts) > 0 && (len(elements) == 0 || inserts[0].Index <= len(all)) {
			all, inserts = append(all, inserts[0].Value), inserts[1:]
			continue
		}
		all, elements = append(all, elements[0].value), elements[1:]
	}
	return n.From(n.NewList(all), list)
}
