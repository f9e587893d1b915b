// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"slices"
	"sync"

	"github.com/conversion-operator/conversion-operator/internal/conversion/shape"
)

// Place says whether what is preserved of a field could be data of an object.
type Place byte

const (
	// NoPlace means: the rules preserve the field, or the schema does not have it any more.
	NoPlace Place = iota
	// SomePlace means: for some of the values. A rule may not be able to express all of
	// them, and of the fields of an element some may have a place.
	SomePlace
	// WholePlace means: for every value that the schema allows.
	WholePlace
)

// maxKnownPlaces bounds what is remembered of paths, which objects can make up.
const maxKnownPlaces = 4096

// Places tell which preserved fields have a place in objects of one version, by the
// rules and schemas of a ruleset.
type Places struct {
	versions map[string]*oneSided

	mu    sync.Mutex
	known map[string]Place
}

// oneSided are the fields of a version that have no full counterpart in another.
type oneSided struct {
	// shape is nil where the schema is not known.
	shape *shape.Schema
	// none have no place, and some have one for some values.
	none, some []LeafField
}

// NewPlaces returns the places in objects that are stored at a version.
func NewPlaces(ruleset *Ruleset, stored string) (*Places, error) {
	p := &Places{versions: map[string]*oneSided{}, known: map[string]Place{}}
	for _, name := range ruleset.Versions {
		side := &oneSided{}
		if text := ruleset.Schemas[name]; text != nil {
			var err error
			if side.shape, err = shape.Read(text); err != nil {
				return nil, err
			}
		}
		spoke, ofHub := ruleset.spoke(name), name == ruleset.Hub
		if ofHub {
			spoke = ruleset.spoke(stored)
		}
		if spoke != nil && name != stored {
			side.addScope(&spoke.Root, nil, ofHub)
		}
		p.versions[name] = side
	}
	return p, nil
}

// addScope adds what one side of a scope has and the other has not.
func (o *oneSided) addScope(s *Scope, at Path, ofHub bool) {
	_, lacking := ends(ofHub, s.OnlySpoke, s.OnlyHub)
	_, dropped := ends(ofHub, s.DropSpoke, s.DropHub)
	for _, leaf := range lacking {
		leaf.Path = below(at, leaf.Path)
		if leaf.Null {
			o.some = append(o.some, leaf)
		} else {
			o.none = append(o.none, leaf)
		}
	}
	for _, path := range dropped {
		o.none = append(o.none, LeafField{Path: below(at, path)})
	}
	for _, d := range s.Defaults {
		if d.Hub == ofHub {
			o.none = append(o.none, LeafField{Path: below(at, d.Path)})
		}
	}
	for i := range s.Exchanges {
		_, fields := ends(ofHub, s.Exchanges[i].Spoke, s.Exchanges[i].Hub)
		for _, f := range fields {
			o.some = append(o.some, LeafField{Path: below(at, f.Path)})
		}
	}
	for i := range s.Collections {
		c := &s.Collections[i]
		o.addScope(&c.Scope, append(below(at, c.Path), Each), ofHub)
	}
}

func below(at, path Path) Path { return slices.Concat(at, path) }

// Of says whether a field that is preserved of a version has a place.
func (p *Places) Of(version, field string) Place {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := version + field
	place, found := p.known[key]
	if !found {
		place = p.find(version, field)
		if len(p.known) < maxKnownPlaces {
			p.known[key] = place
		}
	}
	return place
}

// Has reports whether the schema of a version has a field, or may hold it. One that is
// not known may.
func (p *Places) Has(version, field string) bool {
	side := p.versions[version]
	path, err := ParsePath(field)
	return side == nil || side.shape == nil || err == nil && hasField(side.shape, path)
}

func (p *Places) find(version, field string) Place {
	side, path := p.versions[version], Path(nil)
	if side != nil {
		path, _ = ParsePath(field)
	}
	if path == nil || side.shape != nil && path[0] != "metadata" && !hasField(side.shape, path) {
		return NoPlace
	}
	place := WholePlace
	for _, leaf := range side.none {
		switch {
		case leaf.has(path):
			return NoPlace
		case path.Meets(leaf.Path) && !leaf.Shell:
			place = SomePlace
		}
	}
	if slices.ContainsFunc(side.some, func(leaf LeafField) bool { return path.Meets(leaf.Path) }) {
		place = SomePlace
	}
	return place
}

// has reports whether a path is of what the other side lacks.
func (l *LeafField) has(path Path) bool {
	switch {
	case len(path) < len(l.Path) || !path.Meets(l.Path):
		return false
	case l.Shell:
		return len(path) == len(l.Path)
	case l.Known != nil:
		return len(path) > len(l.Path) && !slices.Contains(l.Known, path[len(l.Path)])
	}
	return true
}

// hasField reports whether a schema has a field, or may hold it.
func hasField(s *shape.Schema, path Path) bool {
	for _, segment := range path {
		if segment == Each {
			s = elementShape(s, nil)
		} else {
			s = s.Field(segment)
		}
		if s == nil {
			return false
		}
	}
	return true
}
