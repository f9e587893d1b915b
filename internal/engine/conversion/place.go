// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"slices"
	"strconv"
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
	// pointer and placePointer are those of own and place.
	pointer, placePointer []byte
	// hasElements is true for a list or map, whose elements have the places inside.
	hasElements bool
	inside      places
}

func (s *Scope) places(ofHub bool) (all places) {
	for i := range s.Collections {
		c := &s.Collections[i]
		inside, own := c.Scope.places(ofHub), c.At(ofHub)
		if len(c.Spoke) > 0 || len(inside) > 0 {
			all = append(all, placed{own, c.Path, []byte(own.Pointer()), []byte(c.Path.Pointer()), !c.Object, inside})
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

// toRules returns a pointer in the version with places, and ofVersion the reverse.
func (p places) toRules(pointer []byte) []byte {
	moved, _ := p.moved(pointer, nil, true)
	return moved
}

func (p places) ofVersion(pointer []byte) []byte {
	moved, _ := p.moved(pointer, nil, false)
	return moved
}

// moved returns a pointer with places, or with the paths in the version, and the anchor of an entry there.
func (p places) moved(pointer, anchor []byte, toPlaces bool) (moved, movedAnchor []byte) {
	if len(p) == 0 || len(pointer) == 0 || pointer[0] != '/' {
		return pointer, anchor
	}
	length, err := strconv.Atoi(string(anchor))
	if err != nil || length < 0 {
		length = -1
	}
	moved, end := p.move(pointer, length, toPlaces)
	if length >= 0 && end != length {
		anchor = strconv.AppendInt(nil, int64(end), 10)
	}
	return moved, anchor
}

// move returns a pointer in a scope, and the number of segments that lead to the anchor, which is negative if
// the anchor is outside of the scope. An anchor around the value, in its scope, becomes that scope.
func (p places) move(pointer []byte, anchor int, toPlaces bool) (moved []byte, movedAnchor int) {
	for i := range p {
		from, to := ends(toPlaces, p[i].pointer, p[i].placePointer)
		rest, is := cutPointer(pointer, from)
		if !is {
			continue
		}
		element := 0
		if p[i].hasElements && len(rest) > 0 {
			if element = bytes.IndexByte(rest[1:], '/') + 1; element == 0 {
				element = len(rest)
			}
		}
		depth, into := bytes.Count(from, []byte("/")), bytes.Count(to, []byte("/"))
		around := depth + min(element, 1)
		inner, innerAnchor := p[i].inside.move(rest[element:], anchor-around, toPlaces)
		switch {
		case anchor >= around:
			anchor = into + min(element, 1) + innerAnchor
		case anchor >= depth:
			anchor = into
		case anchor > 0 && depth != into:
			anchor = 0
		}
		return slices.Concat(to, rest[:element], inner), anchor
	}
	return pointer, anchor
}

// cutPointer reports whether a pointer is another one or leads into it, and returns the rest.
func cutPointer(pointer, prefix []byte) (rest []byte, is bool) {
	rest, is = bytes.CutPrefix(pointer, prefix)
	return rest, is && (len(rest) == 0 || rest[0] == '/')
}

// entries returns sorted entries with places, or with the paths of their version.
func (p places) entries(of entries, toPlaces bool) entries {
	if len(p) == 0 || len(of) == 0 {
		return of
	}
	moved := slices.Clone(of)
	for i := range moved {
		moved[i].pointer, moved[i].anchor = p.moved(moved[i].pointer, moved[i].anchor, toPlaces)
	}
	return moved.sorted()
}

// asRulesName returns sorted entries of a version with the names of the hub, and places.
func (s *step) asRulesName(of entries, v *version) entries {
	return s.placesOf(v).entries(s.renamedEntries(of, v.hubNames), true)
}

// asVersionNames returns sorted entries with the names and paths of their version.
func (s *step) asVersionNames(of entries, v *version) entries {
	return s.renamedEntries(s.placesOf(v).entries(of, false), v.ownNames)
}

// placesOf returns the places of a version. Those of the hub depend on the spoke of the step.
func (s *step) placesOf(v *version) places {
	if v.toHub != nil {
		return v.toHub.sourcePlaces
	}
	return s.hubPlaces
}
