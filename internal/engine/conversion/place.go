// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"slices"
	"strings"
)

// A rule may move an object, list or map to another object, while other rules are for fields in it. Then
// what is in it is converted where it is, and the value moves as any value does, with the objects around it.
// Rules for fields in it, and pointers of preserved data, name the value by its place: a member of the scope
// that no version has, but which is the same in both. So what corresponds has the same path.
//
// Annotations have the paths of their version. They are translated when they are read and written, as
// with other names (names.go), and so are pointers that are followed in an object.

// At returns the path in the hub, or in the spoke.
func (c *Collection) At(hub bool) Path {
	switch {
	case len(c.Spoke) == 0:
		return c.Path
	case hub:
		return c.Hub
	}
	return c.Spoke
}

// Inside returns the path of the elements by that of the list or map, or of the object itself.
func (c *Collection) Inside(path Path) Path {
	if c.Object {
		return path
	}
	return append(slices.Clip(path), Each)
}

// PlaceOf returns the place of a value that is in another object in each version, by its path in the hub.
func PlaceOf(hub Path) Path { return Path{hub.String()} }

// IsPlace reports whether a member is a place: its name begins with a dot or a bracket, as paths do.
func IsPlace(member string) bool {
	return member != Each && (strings.HasPrefix(member, ".") || strings.HasPrefix(member, "["))
}

// soundPlaces reports whether a converter can use the places of a scope.
func (s *Scope) soundPlaces() bool {
	taken := map[string]bool{}
	for i := range s.Collections {
		c := &s.Collections[i]
		switch {
		case len(c.Spoke) == 0 && len(c.Hub) == 0 && !c.Object:
			continue
		case len(c.Spoke) == 0, len(c.Hub) == 0, c.Object && (c.Map || len(c.Keys) > 0), !slices.Equal(c.Path, PlaceOf(c.Hub)), taken[c.Path[0]],
			slices.Contains(c.Spoke, Each), slices.Contains(c.Hub, Each):
			return false
		}
		taken[c.Path[0]] = true
	}
	return true
}

// places are the values of a scope, in one version, that have a place, or have values with a place in them.
type places []placed

type placed struct {
	// own leads to the value in the version, with the names of the hub. place is its place, or the same.
	own, place Path
	// hasElements is true for a list or map, whose elements have the places inside.
	hasElements bool
	inside      places
}

func (s *Scope) places(ofHub bool) (all places) {
	for i := range s.Collections {
		c := &s.Collections[i]
		inside, own := c.Scope.places(ofHub), c.At(ofHub)
		if len(c.Spoke) > 0 || len(inside) > 0 {
			all = append(all, placed{own, c.Path, !c.Object, inside})
		}
	}
	return all
}

// path returns a path with places.
func (p places) path(of Path) Path {
	for i := range p {
		if !of.HasPrefix(p[i].own) {
			continue
		}
		rest := of[len(p[i].own):]
		if p[i].hasElements {
			elements := rest[:min(len(rest), 1)]
			return slices.Concat(p[i].place, elements, p[i].inside.path(rest[len(elements):]))
		}
		return slices.Concat(p[i].place, p[i].inside.path(rest))
	}
	return of
}
