// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"encoding/json"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/conversion/shape"
)

// bindSchemas sets the schemas and names of a scope and its fields. Which values they accept is decided by
// package shape, and not part of the law. Labels and annotations have no schema.
func (s *scope) bindSchemas(spoke, hub *shape.Schema, names names) {
	s.spoke, s.hub, s.names = spoke, hub, names
	for i := range s.Exchanges {
		bindFields(s.Exchanges[i].Spoke, spoke, names)
		bindFields(s.Exchanges[i].Hub, hub, nil)
	}
	for i := range s.Defaults {
		d := &s.Defaults[i]
		if d.schema = schemaAt(spoke, d.Path); d.Hub {
			d.schema = schemaAt(hub, d.Path)
		}
	}
	bindLeaves(s.OnlySpoke, spoke)
	bindLeaves(s.OnlyHub, hub)
	for i := range s.Collections {
		c := &s.Collections[i]
		if c.Object {
			c.Scope.bindSchemas(schemaAt(spoke, c.spoke()), schemaAt(hub, c.hub()), names.at(c.spoke()))
			continue
		}
		c.Scope.bindSchemas(elementSchema(spoke, c.spoke()), elementSchema(hub, c.hub()), names.at(c.spoke()).in("[*]"))
	}
}

func bindFields(fields []field, s *shape.Schema, names names) {
	for i := range fields {
		fields[i].image = names.path(fields[i].Path).pointer()
		if !fields[i].Text {
			fields[i].schema = schemaAt(s, fields[i].Path)
		}
	}
}

func bindLeaves(leaves []leaf, s *shape.Schema) {
	for i := range leaves {
		if !leaves[i].Text {
			leaves[i].schema = schemaAt(s, leaves[i].Path)
		}
	}
}

func schemaAt(s *shape.Schema, at path) *shape.Schema {
	for _, name := range at {
		if s == nil {
			return nil
		}
		s = s.Field(name)
	}
	return s
}

func isNullable(s *shape.Schema, at path) bool {
	s = schemaAt(s, at)
	return s != nil && s.IsNullable()
}

// elementSchema returns the schema of the elements of a list or map.
func elementSchema(s *shape.Schema, at path) *shape.Schema {
	s = schemaAt(s, at)
	switch {
	case s == nil:
		return nil
	case s.Items() != nil:
		return s.Items()
	}
	return s.Field("")
}

// accepts reports whether a preserved value may come back.
func (p *preserved) accepts(s *shape.Schema, value any) bool {
	return p != nil && p.lenient || fits(s, value, p == nil || !p.partial)
}

// fits reports whether a schema accepts a value of a whole object or a fragment. An unknown schema
// accepts all values.
func fits(s *shape.Schema, value any, whole bool) bool {
	if s != nil && !whole {
		s = s.Part()
	}
	return s == nil || s.Fits([]byte(marshal(value))) == nil
}

// common is the shape of the values that both sides allow. Each is the shape of the elements of a
// list or the values of a map.
type common struct {
	Type    string  `json:"type"`
	NotNull bool    `json:"notNull"`
	Each    *common `json:"each"`
}

// fits reports whether a value has the shape. A nil shape fits all values.
func (s *common) fits(value any) bool {
	if s == nil {
		return true
	}
	switch value := value.(type) {
	case nil:
		return !s.NotNull
	case []any:
		for _, element := range value {
			if !s.Each.fits(element) {
				return false
			}
		}
	case map[string]any:
		for _, member := range value {
			if s.Each != nil && !s.Each.fits(member) {
				return false
			}
		}
	}
	return s.Type == "" || strings.Contains(typesOf(value), " "+s.Type+" ")
}

// typesOf returns the types that a value can have, with a space around each.
func typesOf(value any) string {
	switch value := value.(type) {
	case bool:
		return " boolean "
	case string:
		return " string int-or-string "
	case json.Number:
		if strings.ContainsAny(value.String(), ".eE") {
			return " number "
		}
		return " number integer int-or-string "
	case []any:
		return " array "
	}
	return " object "
}
