// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import "slices"

// look is where a plan looks into an object. A nil look sees one value of bytes.
type look struct {
	members []seen
	// byName are the members where they are many: of a few, it is faster to compare
	// their names one by one.
	byName map[string]*look
	// each looks into the elements of a list, or the values of a map.
	each *look
}

// seen is a member that a plan looks into.
type seen struct {
	name
	*look
}

// fewSeen is the most members that are compared one by one.
const fewSeen = 12

func newLook() *look { return &look{} }

// addScope looks wherever a scope has something to do.
func (l *look) addScope(scope *Scope) {
	for _, move := range scope.Moves {
		l.parent(move.Spoke)
		l.parent(move.Hub)
	}
	for i := range scope.Exchanges {
		for _, f := range slices.Concat(scope.Exchanges[i].Spoke, scope.Exchanges[i].Hub) {
			l.parent(f.Path)
		}
	}
	for _, path := range slices.Concat(scope.DropSpoke, scope.DropHub) {
		l.parent(path)
	}
	for _, d := range scope.Defaults {
		l.parent(d.Path)
	}
	for _, leaf := range slices.Concat(scope.OnlySpoke, scope.OnlyHub) {
		l.parent(leaf.Path)
		if leaf.Shell || leaf.Known != nil {
			l.path(leaf.Path)
		}
	}
	for i := range scope.Shared {
		l.path(scope.Shared[i].Path)
	}
	for i := range scope.Collections {
		collection := &scope.Collections[i]
		at := l.path(collection.Path)
		if at.each == nil {
			at.each = newLook()
		}
		at.each.addScope(&collection.Scope)
	}
}

// merge makes a look into one element of a map see all that a look into each
// element sees: another rule, or another spoke, may name one of them.
func (l *look) merge() {
	for _, member := range l.members {
		if l.each != nil {
			member.add(l.each)
		}
		member.merge()
	}
	if l.each != nil {
		l.each.merge()
	}
}

func (l *look) add(other *look) {
	for _, member := range other.members {
		l.path(Path{member.text}).add(member.look)
	}
	if other.each != nil {
		if l.each == nil {
			l.each = newLook()
		}
		l.each.add(other.each)
	}
}

// parent looks into the object that holds a field.
func (l *look) parent(path Path) { l.path(path[:max(len(path)-1, 0)]) }

func (l *look) path(path Path) *look {
	for _, text := range path {
		next := newLook()
		if at := slices.IndexFunc(l.members, func(m seen) bool { return m.text == text }); at >= 0 {
			next = l.members[at].look
		} else {
			l.addMember(newName(text), next)
		}
		l = next
	}
	return l
}

func (l *look) addMember(name name, member *look) {
	l.members = append(l.members, seen{name, member})
	switch {
	case l.byName != nil:
		l.byName[name.text] = member
	case len(l.members) > fewSeen:
		l.byName = map[string]*look{}
		for _, m := range l.members {
			l.byName[m.text] = m.look
		}
	}
}

// member is the look into a member, nil where there is none.
func (l *look) member(m *node) *look {
	switch {
	case l.byName == nil:
	case m.escaped:
		return l.byName[m.label()]
	default:
		return l.byName[string(m.key[1:len(m.key)-1])]
	}
	for i := range l.members {
		if m.named(&l.members[i].name) {
			return l.members[i].look
		}
	}
	return nil
}
