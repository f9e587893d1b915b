// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// parts are the schemas that were read, by their content. Equal ones are shared.
type parts struct {
	byContent map[string]*Schema
	ids       map[*Schema]int
}

// share returns the schema with the same content that was read first.
func (p *parts) share(s *Schema) *Schema {
	if p.byContent == nil {
		p.byContent, p.ids = map[string]*Schema{}, map[*Schema]int{}
	}
	content, err := p.content(s)
	if err != nil {
		return s // cannot happen: the limits were read from JSON
	}
	if same, found := p.byContent[content]; found {
		return same
	}
	p.byContent[content] = s
	return s
}

// id identifies a schema; 0 is none.
func (p *parts) id(s *Schema) int {
	if s == nil {
		return 0
	}
	if p.ids[s] == 0 {
		p.ids[s] = len(p.ids) + 1
	}
	return p.ids[s]
}

// content describes a schema completely. The schemas in it have been shared before, so that their
// numbers identify them.
func (p *parts) content(s *Schema) (string, error) {
	text := []byte{byte(s.kind)}
	for _, flag := range []bool{s.nullable, s.closed, s.preserve, s.element, s.inJunctor} {
		text = strconv.AppendBool(text, flag)
	}
	of := func(name string, all ...*Schema) {
		text = strconv.AppendQuote(text, name)
		for _, each := range all {
			text = strconv.AppendInt(append(text, ' '), int64(p.id(each)), 10)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.properties)) {
		of(name, s.properties[name])
	}
	text = append(text, " besides properties "...)
	of("", s.additional, s.items)
	if s.limits == noLimits {
		return string(text), nil
	}
	of("all", s.limits.allOf...)
	of("any", s.limits.anyOf...)
	of("one", s.limits.oneOf...)
	of("not", s.limits.not)
	own, err := json.Marshal(s.limits.Limits)
	return string(append(text, own...)), err
}
