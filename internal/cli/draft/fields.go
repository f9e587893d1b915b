// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"encoding/binary"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// props is the schema of a field.
type props = apiextensionsv1.JSONSchemaProps

// field is a field of one version. The elements of a list or map are a child with the name [*], if they
// have fields of their own.
type field struct {
	path     conversion.Path
	schema   *props
	kind     string
	parent   *field
	children map[string]*field
	// scope is the innermost element of a list or map around the field, or the root.
	scope *field
	// shape is the same for fields with the same kinds and names below them.
	shape uint64
	words words
	// order is the position in the list of all fields of the version.
	order int
}

// The kinds of fields that are no types of a schema.
const (
	kindMap         = "map"
	kindIntOrString = "integer or string"
	kindAnything    = "anything"
)

func kindOf(s *props) string {
	switch {
	case s.XIntOrString:
		return kindIntOrString
	case s.Type == "object" && s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		return kindMap
	case s.Type == "" || s.XEmbeddedResource:
		return kindAnything
	}
	return s.Type
}

// treeOf returns the root of a version's fields, and all of them, parents first.
func treeOf(s *props) (root *field, all []*field) {
	root = &field{schema: s, kind: "object"}
	root.scope = root
	root.grow(&all)
	return root, all
}

func (f *field) grow(all *[]*field) {
	f.order = len(*all)
	*all = append(*all, f)
	add := func(name string, s *props) {
		child := &field{path: append(slices.Clip(f.path), name), schema: s, kind: kindOf(s), parent: f, scope: f.scope}
		if name == conversion.Each {
			child.scope = child
		}
		if f.children == nil {
			f.children = map[string]*field{}
		}
		f.children[name] = child
		child.grow(all)
	}
	hash := fnv.New64a()
	hash.Write([]byte(f.kind))
	switch elements := elementsOf(f.schema); {
	case f.kind == kindAnything:
	case elements != nil:
		if elements.Type == "object" || elements.Type == "array" {
			add(conversion.Each, elements)
		}
		hash.Write([]byte(kindOf(elements)))
	default:
		for _, name := range slices.Sorted(maps.Keys(f.schema.Properties)) {
			if len(f.path) > 0 || !conversion.IsEnvelope(name) {
				property := f.schema.Properties[name]
				add(name, &property)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.children)) {
		hash.Write([]byte{0})
		hash.Write([]byte(name))
		hash.Write(binary.LittleEndian.AppendUint64(nil, f.children[name].shape))
	}
	f.shape = hash.Sum64()
}

// elementsOf returns the schema of the elements of a list or map, nil for anything else.
func elementsOf(s *props) *props {
	switch {
	case s.Items != nil:
		return s.Items.Schema
	case kindOf(s) == kindMap:
		return s.AdditionalProperties.Schema
	}
	return nil
}

// String returns the path as a policy has it.
func (f *field) String() string {
	var text strings.Builder
	for _, name := range f.path {
		switch {
		case name == conversion.Each:
			text.WriteString(name)
		case plainName.MatchString(name):
			text.WriteString("." + name)
		default:
			text.WriteString(`["` + name + `"]`)
		}
	}
	return text.String()
}

// name is the last name of the path, empty for the root.
func (f *field) name() string {
	if len(f.path) == 0 {
		return ""
	}
	return f.path[len(f.path)-1]
}

// isElement reports whether the field stands for the elements of a list or map: no rule can name it.
func (f *field) isElement() bool { return f.name() == conversion.Each }

// isScalar reports whether a rule can translate the value by a table or a template.
func (f *field) isScalar() bool {
	return slices.Contains([]string{"string", "integer", "number", "boolean"}, f.kind)
}

// within reports whether the field is other, or below it.
func (f *field) within(other *field) bool {
	for at := f; at != nil; at = at.parent {
		if at == other {
			return true
		}
	}
	return false
}

// pairs says which fields of the two versions correspond without a rule: they have the same path, also
// below objects, lists and maps that only have another name.
type pairs struct {
	partner map[*field]*field
	// renamed has the fields of the spoke that have another name in the hub.
	renamed map[*field]*field
	// kept has the fields with rules that the policy already has: they correspond by these.
	kept map[*field]bool
}

func pairUp(spoke, hub *field, renamed map[*field]*field, kept map[*field]bool) *pairs {
	p := &pairs{partner: map[*field]*field{spoke: hub, hub: spoke}, renamed: renamed, kept: kept}
	p.pairChildren(spoke, hub)
	for p.pairElsewhere() {
	}
	return p
}

// pairElsewhere pairs values that are in different objects, and reports whether it has paired one. Others in
// these may follow.
func (p *pairs) pairElsewhere() (found bool) {
	for from, to := range p.renamed {
		if p.partner[from] == nil && p.partner[to] == nil && p.mayBeElsewhere(from, to) {
			p.partner[from], p.partner[to] = to, from
			p.pairChildren(from, to)
			found = true
		}
	}
	return found
}

// mayBeElsewhere reports whether two objects, or lists or maps of objects, may be the same in different
// objects, with differences in them: others move as a whole. In elements, it must be the same element.
func (p *pairs) mayBeElsewhere(spoke, hub *field) bool {
	may := func(f *field) bool {
		elements := f.children[conversion.Each]
		return !f.isElement() && (f.kind == "object" && f.children != nil || elements != nil && elements.kind == "object")
	}
	return may(spoke) && may(hub) && p.sameScope(spoke, hub) && spoke.kind == hub.kind && spoke.shape != hub.shape && spoke.schema.Nullable == hub.schema.Nullable
}

func (p *pairs) pairChildren(spoke, hub *field) {
	taken := map[*field]bool{}
	for _, to := range p.renamed {
		taken[to] = true
	}
	for name, child := range spoke.children {
		partner := hub.children[name]
		if to := p.renamed[child]; to != nil {
			partner = to
		} else if taken[partner] || p.kept[child] || p.kept[partner] {
			partner = nil
		}
		if partner != nil && partner.parent == hub && alike(child, partner) {
			p.partner[child], p.partner[partner] = partner, child
			p.pairChildren(child, partner)
		}
	}
}

// alike reports whether two fields with the same path are copied, at least in part.
func alike(spoke, hub *field) bool {
	if spoke.kind != hub.kind {
		return isWide(spoke.kind, hub.kind) || isWide(hub.kind, spoke.kind)
	}
	if a, b := elementsOf(spoke.schema), elementsOf(hub.schema); a != nil && b != nil {
		return kindOf(a) == kindOf(b) && (spoke.children == nil) == (hub.children == nil)
	}
	return true
}

// isWide reports whether the first kind allows all values of the second.
func isWide(wide, narrow string) bool {
	switch wide {
	case kindAnything:
		return true
	case kindIntOrString:
		return narrow == "integer" || narrow == "string"
	case "number":
		return narrow == "integer"
	}
	return false
}

// open returns the fields without a partner, those below them included.
func (p *pairs) open(all []*field) []*field {
	return slices.DeleteFunc(slices.Clone(all), func(f *field) bool { return p.partner[f] != nil })
}

// sameScope reports whether the elements around two fields correspond, so that one rule can have both.
func (p *pairs) sameScope(spoke, hub *field) bool { return p.partner[spoke.scope] == hub.scope }
