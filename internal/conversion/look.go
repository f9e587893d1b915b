// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import "slices"

// look is where a plan looks into an object. A nil look sees one value of bytes.
type look struct {
	members byName[*look]
	// each looks into the elements of a list, or the values of a map.
	each *look
}

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
	for _, member := range l.members.entries {
		if l.each != nil {
			member.value.add(l.each)
		}
		member.value.merge()
	}
	if l.each != nil {
		l.each.merge()
	}
}

func (l *look) add(other *look) {
	for _, member := range other.members.entries {
		l.path(Path{member.text}).add(member.value)
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
	for _, name := range path {
		next := l.members.get(name)
		if next == nil {
			next = newLook()
			l.members.set(name, next)
		}
		l = next
	}
	return l
}
