// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preserve

import (
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// near reports whether seen differs from shown only where it is what live has. skip is not compared.
func (s Schema) near(a *tree.Arena, shown, seen, live *tree.Node, skip *Paths) bool {
	if !s.exact && s.shape != nil && s.shape.Kind == shape.ArrayKind {
		// Of elements that only this version has, the other one may have an empty list, or none. Without a type, both differ.
		shown, seen, live = withoutEmptied(shown), withoutEmptied(seen), withoutEmptied(live)
	}
	if s.shows(a, shown, seen, skip) || s.shows(a, seen, live, skip) {
		return true
	}
	switch {
	case seen.Is(tree.Object) && (shown.Is(tree.Object) || shown == nil && live.Is(tree.Object)):
		for _, m := range seen.Members() {
			if !s.member(m.Name).near(a, shown.Get(m.Name), m.Value, live.Get(m.Name), skip.in(Segment{Name: m.Name})) {
				return false
			}
		}
		for _, m := range shown.Members() {
			if seen.Get(m.Name) == nil && !s.member(m.Name).near(a, m.Value, nil, live.Get(m.Name), skip.in(Segment{Name: m.Name})) {
				return false
			}
		}
		return true
	case (shown == nil || shown.Is(tree.List)) && seen.Is(tree.List) && live.Is(tree.List):
		return s.nearElements(a, shown, seen, live, skip.in(Segment{Element: true}))
	}
	return false
}

func withoutEmptied(value *tree.Node) *tree.Node {
	if value.Is(tree.List) && value.Len() == 0 {
		return nil
	}
	return value
}

func (s Schema) nearElements(a *tree.Arena, shown, seen, live *tree.Node, skip *Paths) bool {
	inner := s.elem()
	if shown.Len() == seen.Len() && live.Len() == seen.Len() {
		for i, element := range seen.Elems() {
			if !inner.near(a, shown.Elems()[i], element, live.Elems()[i], skip) {
				return false
			}
		}
		return true
	}
	if len(s.keys()) == 0 {
		return s.nearWithoutKeys(a, shown, seen, live, skip)
	}
	was, is, now := byKeys(a, shown, s), byKeys(a, live, s), byKeys(a, seen, s)
	for name, element := range now {
		if !inner.near(a, was[name], element, is[name], skip) {
			return false
		}
	}
	for name, element := range was {
		if now[name] == nil && !inner.near(a, element, nil, is[name], skip) {
			return false
		}
	}
	return true
}

// nearWithoutKeys compares the elements that were converted from the same one of live, and counts the others.
func (s Schema) nearWithoutKeys(a *tree.Arena, shown, seen, live *tree.Node, skip *Paths) bool {
	at := indexes(live)
	was, madeBefore := byOrigin(shown, at)
	now, made := byOrigin(seen, at)
	var others []*tree.Node
	for i, element := range live.Elems() {
		switch {
		case was[i] == nil && now[i] == nil:
			others = append(others, element)
		case !s.elem().near(a, was[i], now[i], element, skip):
			return false
		}
	}
	return isBetween(a, madeBefore, made, others)
}

// byOrigin returns the elements of a list by the indexes of those that they were converted from, and all others.
func byOrigin(list *tree.Node, at map[*tree.Node]int) (converted map[int]*tree.Node, others []*tree.Node) {
	converted = make(map[int]*tree.Node, list.Len())
	for _, element := range list.Elems() {
		if pos, found := originIn(element, at); found && converted[pos] == nil {
			converted[pos] = element
		} else {
			others = append(others, element)
		}
	}
	return converted, others
}

// isBetween reports whether live has each element that seen has and shown lacks, and lacks each that shown has and seen
// lacks.
func isBetween(a *tree.Arena, shown, seen, live []*tree.Node) bool {
	was, is, now := count(a, shown), count(a, live), count(a, seen)
	for digest, times := range now {
		if times > was[digest] && times > is[digest] {
			return false
		}
	}
	for digest, times := range was {
		if now[digest] < times && now[digest] < is[digest] {
			return false
		}
	}
	return true
}

func byKeys(a *tree.Arena, list *tree.Node, s Schema) map[string]*tree.Node {
	found := make(map[string]*tree.Node, list.Len())
	for i, name := range newNamer(a, 0).of(list, s).names {
		found[name] = list.Elems()[i]
	}
	return found
}

func count(a *tree.Arena, elements []*tree.Node) map[string]int {
	found := make(map[string]int, len(elements))
	for _, element := range elements {
		found[a.Digest(element)]++
	}
	return found
}

// adds reports whether y is x with more members and elements, where live has nothing.
func adds(a *tree.Arena, x, y, live *tree.Node) bool {
	switch {
	case x == y:
		return true
	case x == nil && y.Is(tree.Object) && live.Is(tree.Object):
		return !slices.ContainsFunc(y.Members(), func(m tree.Member) bool { return !adds(a, nil, m.Value, live.Get(m.Name)) })
	case x == nil:
		return live == nil
	case x.Is(tree.Object) && y.Is(tree.Object):
		return !slices.ContainsFunc(x.Members(), func(m tree.Member) bool { return y.Get(m.Name) == nil }) &&
			!slices.ContainsFunc(y.Members(), func(m tree.Member) bool { return !adds(a, x.Get(m.Name), m.Value, live.Get(m.Name)) })
	case x.Is(tree.List) && y.Is(tree.List) && x.Len() < y.Len():
		next := 0
		for _, element := range y.Elems() {
			if next < x.Len() && a.Equal(x.Elems()[next], element) {
				next++
			}
		}
		return next == x.Len()
	case x.Is(tree.List) && y.Is(tree.List) && x.Len() == y.Len() && live.Is(tree.List):
		return addsElements(a, x, y, live)
	}
	return a.Equal(x, y)
}

func addsElements(a *tree.Arena, x, y, live *tree.Node) bool {
	for i, element := range x.Elems() {
		if element == y.Elems()[i] {
			continue
		}
		var there *tree.Node
		if same := slices.IndexFunc(live.Elems(), func(l *tree.Node) bool { return a.Equal(l, element) }); same >= 0 {
			there = live.Elems()[same]
		} else if live.Len() == x.Len() {
			there = live.Elems()[i]
		}
		if !adds(a, element, y.Elems()[i], there) {
			return false
		}
	}
	return true
}
