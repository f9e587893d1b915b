// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
)

// A rule may move an object, list or map to another name, while other rules change what is in it. Then
// an object of the spoke first gets the names of the hub: everything that corresponds is at the same
// path in both, and the scopes of a ruleset know no other paths. After a conversion to the spoke, the
// object gets the names of the spoke again. Names are only exchanged for each other, so this loses
// nothing, whatever is in the object.
//
// Preserved data of the spoke has the names of the spoke: it belongs to the version, and outlives the
// rules.

// Renamed is a field of the spoke that has another name in the hub. Spoke and Hub have the same
// length. Spoke has the names of the spoke, and Hub those of the hub.
type Renamed struct {
	Spoke Path `json:"spoke"`
	Hub   Path `json:"hub"`
	// InElement is true for a field directly in the elements of a list, which may be a key.
	InElement bool `json:"inElement,omitempty"`
}

// sound reports whether a converter can exchange the names.
func (r Renamed) sound() bool {
	return len(r.Spoke) > 0 && len(r.Spoke) == len(r.Hub) && r.Spoke[len(r.Spoke)-1] != Each && r.Hub[len(r.Hub)-1] != Each && !IsEnvelope(r.Spoke[0]) && !IsEnvelope(r.Hub[0])
}

// soundNames reports whether a converter can exchange the names, and exchange them back.
func soundNames(renamed []Renamed) bool {
	if slices.ContainsFunc(renamed, func(r Renamed) bool { return !r.sound() }) {
		return false
	}
	toHub, toSpoke := NamesOf(renamed)
	for _, r := range renamed {
		if !slices.Equal(r.Spoke.Rename(toHub), r.Hub) || !slices.Equal(r.Hub.Rename(toSpoke), r.Spoke) {
			return false
		}
	}
	return isPermutation(toHub) && isPermutation(toSpoke)
}

func isPermutation(names *shape.Names) bool {
	if names == nil {
		return true
	}
	got := map[string]bool{}
	for _, name := range names.Of {
		got[name] = true
	}
	for name := range names.Of {
		if !got[name] {
			return false
		}
	}
	for _, in := range names.In {
		if !isPermutation(in) {
			return false
		}
	}
	return len(got) == len(names.Of) && isPermutation(names.Each)
}

// NamesOf returns the names of the hub by those of the spoke, and the reverse; nil if no field is
// renamed. The renamed fields of each object must be a permutation of its names.
func NamesOf(renamed []Renamed) (toHub, toSpoke *shape.Names) {
	for _, r := range renamed {
		toHub = addName(toHub, r.Spoke, r.Hub[len(r.Hub)-1], r.InElement)
		toSpoke = addName(toSpoke, r.Hub, r.Spoke[len(r.Spoke)-1], r.InElement)
	}
	return toHub, toSpoke
}

func addName(to *shape.Names, path Path, name string, inElement bool) *shape.Names {
	if to == nil {
		to = &shape.Names{Of: map[string]string{}, Keys: map[string]bool{}, In: map[string]*shape.Names{}}
	}
	switch first := path[0]; {
	case len(path) == 1:
		to.Of[first], to.Keys[first] = name, inElement
	case first == Each:
		to.Each = addName(to.Each, path[1:], name, inElement)
	default:
		to.In[first] = addName(to.In[first], path[1:], name, inElement)
	}
	return to
}

// Rename returns the path with other names.
func (p Path) Rename(names *shape.Names) Path {
	if names == nil {
		return p
	}
	renamed := slices.Clone(p)
	for i, segment := range p {
		renamed[i] = names.Name(segment)
		names = names.Member(segment)
	}
	return renamed
}

// naming is a set of names, prepared for objects.
type naming struct {
	*shape.Names
	projection *projection
}

func newNaming(names *shape.Names) *naming {
	if names == nil {
		return nil
	}
	return &naming{names, projectionOf(names)}
}

// projectionOf opens everything in which names change.
func projectionOf(names *shape.Names) *projection {
	if names == nil {
		return nil
	}
	p := &projection{each: projectionOf(names.Each)}
	for name, in := range names.In {
		p.members.set(name, projectionOf(in))
	}
	return p
}

// at returns the names in the place of a pointer.
func (n *naming) at(pointer []byte) *naming {
	if n == nil {
		return nil
	}
	_, inside := renamedPointer(pointer, n.Names)
	return newNaming(inside)
}

// openAnnotations opens what a conversion changes after the rules.
var openAnnotations = func() *projection {
	p := &projection{}
	p.addPath(annotationsPath.path())
	return p
}()

// renamed returns an object with other names, parsed with the projection.
func (s *step) renamed(object *node, names *naming, open *projection) (*node, error) {
	text, err := s.renamedText(s.bytes(object), names)
	if err != nil {
		return object, err
	}
	return s.parse(text, open)
}

// renamedText returns a JSON value with other names. A duplicate name stays one.
func (s *step) renamedText(text []byte, names *naming) ([]byte, error) {
	p := parser{arena: &s.arena, src: text, duplicates: true}
	value := p.node()
	if _, err := p.into(value, skipSpace(text, 0), names.projection); err != nil {
		return nil, err
	}
	s.rename(value, names.Names)
	return s.bytes(value), nil
}

func (s *step) rename(n *node, names *shape.Names) {
	if names == nil || !n.open {
		return
	}
	for m := n.first; m != nil; m = m.next {
		if n.kind == array {
			s.rename(m, names.Each)
			continue
		}
		name := string(s.nameOf(m))
		s.rename(m, names.Member(name))
		if other := names.Name(name); other != name {
			key := newName(other)
			m.key, m.escaped, m.fingerprint, m.untouched = key.quoted, false, key.fingerprint, false
		}
	}
}

// renamedEntries returns sorted entries with other names.
func (s *step) renamedEntries(of entries, naming *naming) entries {
	if naming == nil || len(of) == 0 {
		return of
	}
	renamed := slices.Clone(of)
	for i := range renamed {
		e := &renamed[i]
		if !bytes.HasPrefix(e.pointer, []byte("/")) {
			continue
		}
		pointer, inside := renamedPointer(e.pointer, naming.Names)
		e.pointer = pointer
		if inside == nil || !e.kind.isData() {
			continue
		}
		if text, err := s.renamedText(e.value, newNaming(inside)); err == nil {
			e.value = text
		}
	}
	return renamed.sorted()
}

// renamedPointer returns the pointer of an entry with other names, and the names in its place.
func renamedPointer(pointer []byte, names *shape.Names) (renamed []byte, inside *shape.Names) {
	segments := splitPointer(pointer)
	for i, segment := range segments {
		switch {
		case names == nil:
		case names.Each != nil && strings.HasPrefix(segment, "["):
			segments[i] = renamedSelector(segment, names.Each)
			names = names.Each
		default:
			name := unescapePointer(segment)
			segments[i], names = escapePointer(names.Name(name)), names.Member(name)
		}
	}
	return []byte("/" + strings.Join(segments, "/")), names
}

// renamedSelector returns a selector with other names of keys.
func renamedSelector(selector string, names *shape.Names) string {
	inner, closed := strings.CutSuffix(strings.TrimPrefix(selector, "["), "]")
	if !closed || len(names.Keys) == 0 {
		return selector
	}
	parts := splitSelector(inner)
	for i, part := range parts {
		key, value, found := strings.Cut(part, "=")
		if name := unescapePointer(key); found && names.Keys[name] {
			parts[i] = escapePointer(names.Name(name)) + "=" + value
		}
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// splitSelector splits the inside of a selector into its keys with their values. Values are JSON, so a
// comma between two keys is outside of quotes and brackets.
func splitSelector(inner string) (parts []string) {
	quoted, depth, start := false, 0, 0
	for i := 0; i < len(inner); i++ {
		switch c := inner[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == ',' && depth == 0:
			parts, start = append(parts, inner[start:i]), i+1
		case c == '{', c == '[':
			depth++
		case c == '}', c == ']':
			depth--
		}
	}
	return append(parts, inner[start:])
}
