// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preserve

import (
	"strconv"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// An element is named by what identifies it: the keys of its list, the value of a scalar, or the digest of the element
// of the other version that it was converted from, which is the same under other rules. Equal names have an ordinal.

// namer names the elements of lists that were made in a run.
type namer struct {
	*tree.Arena
	run   uint32
	lists map[*tree.Node]named
}

// named has the names of the elements of a list.
type named struct {
	names []string
	// at has the indexes of the elements by their names.
	at map[string]int
}

func newNamer(a *tree.Arena, run uint32) *namer { return &namer{Arena: a, run: run} }

// of names the elements of a list.
func (n *namer) of(list *tree.Node, s Schema) named {
	if known, found := n.lists[list]; found {
		return known
	}
	elems, keys := list.Elems(), s.keys()
	of := named{make([]string, len(elems)), make(map[string]int, len(elems))}
	count := make(map[string]int, len(elems))
	for i, element := range elems {
		name := n.name(element, element.Source(n.run), keys)
		if count[name]++; count[name] > 1 {
			name += "," + strconv.Itoa(count[name])
		}
		of.names[i], of.at[name] = name, i
	}
	if n.lists == nil {
		n.lists = map[*tree.Node]named{}
	}
	n.lists[list] = of
	return of
}

// name names an element by its keys, its value, or the digest of content.
func (n *namer) name(element, content *tree.Node, keys []string) string {
	if name := keyName(n.Arena, element, keys); name != "" {
		return name
	}
	if element.IsScalar() {
		return "=" + string(n.Canonical(nil, element))
	}
	return "#" + n.Digest(content)
}

// keyName names an element by its keys; it is empty if the element does not have all of them.
func keyName(a *tree.Arena, element *tree.Node, keys []string) string {
	var name []byte
	for i, key := range keys {
		value := element.Get(key)
		if value == nil {
			return ""
		}
		if i > 0 {
			name = append(name, ',')
		}
		name = a.Canonical(append(append(name, key...), '='), value)
	}
	return string(name)
}

// KeysIn returns the keys in the name of an element, with their values as JSON; nil if it has none.
func KeysIn(name string) (keys, values []string) {
	a := tree.NewArena()
	defer a.Free()
	for rest := name; rest != ""; {
		key, after, found := strings.Cut(rest, "=")
		if !found || key == "" {
			return nil, nil
		}
		_, end, err := a.ReadFirst([]byte(after), 0)
		if err != nil {
			return nil, nil
		}
		keys, values = append(keys, key), append(values, after[:end])
		rest = strings.TrimPrefix(after[end:], ",")
	}
	return keys, values
}

// element returns an element by its name, nil if there is none.
func (n *namer) element(list *tree.Node, s Schema, name string) *tree.Node {
	if !list.Is(tree.List) {
		return nil
	}
	if pos, found := n.of(list, s).at[name]; found {
		return list.Elems()[pos]
	}
	return nil
}

// in returns a member or an element of a value, and its schema.
func (n *namer) in(value *tree.Node, s Schema, at Segment) (*tree.Node, Schema) {
	if at.Element {
		return n.element(value, s, at.Name), s.elem()
	}
	return value.Get(at.Name), s.member(at.Name)
}

// find returns the value at an address, nil if there is none, and its schema.
func (n *namer) find(value *tree.Node, s Schema, at Address) (*tree.Node, Schema) {
	for _, segment := range at {
		value, s = n.in(value, s, segment)
	}
	return value, s
}

// pair returns for each element of a list the index of the one in base that belongs to it, -1 if there is none: the
// one that was converted from it, or has its keys, or is equal, or stands in its place between others.
func (n *namer) pair(base, list *tree.Node, s Schema) []int {
	pairs := make([]int, list.Len())
	if isConverted(base, list) {
		for i := range pairs {
			pairs[i] = i
		}
		return pairs
	}
	for i := range pairs {
		pairs[i] = -1
	}
	taken := make([]bool, len(base.Elems()))
	take := func(i, j int) { pairs[i], taken[j] = j, true }
	keys := s.keys()
	at := indexes(list)
	left := map[string][]int{}
	for j, element := range base.Elems() {
		if i, found := originIn(element, at); found && pairs[i] < 0 {
			take(i, j)
			continue
		}
		name := n.name(element, element, keys)
		left[name] = append(left[name], j)
	}
	if len(left) == 0 {
		return pairs
	}
	for i, element := range list.Elems() {
		if pairs[i] >= 0 {
			continue
		}
		name := n.name(element, element, keys)
		if same := left[name]; len(same) > 0 {
			take(i, same[0])
			left[name] = same[1:]
		}
	}
	if len(keys) == 0 {
		pairGaps(base, list, pairs, taken)
	}
	return pairs
}

// pairGaps pairs what stands in the same place between elements that are pairs.
func pairGaps(base, list *tree.Node, pairs []int, taken []bool) {
	next := 0
	for i, element := range list.Elems() {
		if pairs[i] >= 0 {
			next = pairs[i] + 1
			continue
		}
		if kind := element.Kind(); next < len(taken) && !taken[next] && base.Elems()[next].Kind() == kind && (kind == tree.Object || kind == tree.List) {
			pairs[i], taken[next] = next, true
			next++
		}
	}
}

// indexes returns the indexes of the elements of a list.
func indexes(list *tree.Node) map[*tree.Node]int {
	at := make(map[*tree.Node]int, list.Len())
	for i, element := range list.Elems() {
		at[element] = i
	}
	return at
}

// originIn returns the index of the element that another one was converted from, perhaps in several runs.
func originIn(element *tree.Node, at map[*tree.Node]int) (pos int, found bool) {
	if len(at) == 0 {
		return 0, false
	}
	const runs = 8
	for range runs {
		if element == nil {
			break
		}
		if pos, found = at[element]; found {
			return pos, true
		}
		element = element.Origin()
	}
	return 0, false
}

// isConverted reports whether the elements of base were converted from those of a list, one by one.
func isConverted(base, list *tree.Node) bool {
	if base.Len() != list.Len() {
		return false
	}
	for i, element := range base.Elems() {
		for element != nil && element != list.Elems()[i] {
			element = element.Origin()
		}
		if element == nil {
			return false
		}
	}
	return true
}
