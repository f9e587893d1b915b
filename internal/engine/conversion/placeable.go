// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
)

// Place says whether preserved values of a field could be live data of an object.
type Place byte

const (
	// NoPlace means none: the rules preserve the field, or the schema no longer has it.
	NoPlace Place = iota
	// SomePlace means some values: a rule may not be able to express all values, or only some
	// fields of an element have a place.
	SomePlace
	// WholePlace means every value that the schema allows.
	WholePlace
)

// Places finds out which preserved fields have a place in objects of one version, by the rules and
// schemas of a ruleset. It is safe for concurrent use.
type Places struct{ versions map[string]*oneSided }

// oneSided are the fields of a version without a full counterpart in the stored version.
type oneSided struct {
	// shape is nil if the schema is unknown.
	shape *shape.Schema
	// none are fields without a place; some are fields with a place for some values.
	none, some []LeafField
}

// NewPlaces returns the places in objects that are stored in a version.
func NewPlaces(ruleset *Ruleset, stored string) (*Places, error) {
	p := &Places{map[string]*oneSided{}}
	var schemas shape.Reader
	for _, name := range ruleset.Versions {
		side := &oneSided{}
		if text := ruleset.Schemas[name]; text != nil {
			var err error
			if side.shape, err = schemas.Read(text); err != nil {
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

// addScope adds the one-sided fields of a scope.
func (o *oneSided) addScope(s *Scope, base Path, ofHub bool) {
	_, lacking := ends(ofHub, s.OnlySpoke, s.OnlyHub)
	_, dropped := ends(ofHub, s.DropSpoke, s.DropHub)
	for _, leaf := range lacking {
		leaf.Path = slices.Concat(base, leaf.Path)
		if leaf.Null {
			o.some = append(o.some, leaf)
		} else {
			o.none = append(o.none, leaf)
		}
	}
	for _, path := range dropped {
		o.none = append(o.none, LeafField{Path: slices.Concat(base, path)})
	}
	for _, d := range s.Defaults {
		if d.Hub == ofHub {
			o.none = append(o.none, LeafField{Path: slices.Concat(base, d.Path)})
		}
	}
	for i := range s.Derived {
		if x := &s.Derived[i]; x.CEL.computesHub() == ofHub {
			_, fields := ends(ofHub, x.Spoke, x.Hub)
			for _, f := range fields {
				o.none = append(o.none, LeafField{Path: slices.Concat(base, f.Path)})
			}
		}
	}
	for i := range s.Exchanges {
		_, fields := ends(ofHub, s.Exchanges[i].Spoke, s.Exchanges[i].Hub)
		for _, f := range fields {
			o.some = append(o.some, LeafField{Path: slices.Concat(base, f.Path)})
		}
	}
	for i := range s.Collections {
		c := &s.Collections[i]
		o.addScope(&c.Scope, c.Inside(ofHub, base), ofHub)
	}
}

// Has reports whether the schema of a version has, or may have, a field. It is true if the schema
// is unknown.
func (p *Places) Has(version, field string) bool {
	side := p.versions[version]
	path, err := ParsePath(field)
	return side == nil || side.shape == nil || err == nil && hasField(side.shape, path)
}

// Of returns whether a field that is preserved of a version has a place.
func (p *Places) Of(version, field string) Place {
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

// has reports whether a path is part of the one-sided field.
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

// hasField reports whether a schema has, or may have, a field.
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
