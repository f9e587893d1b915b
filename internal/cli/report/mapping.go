// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/internal/cli/rulekinds"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
)

// mapping describes all fields between a spoke and the hub.
type mapping struct {
	Spoke, Hub string
	// Ruled are the links of rules, by their position, including drops and defaults.
	Ruled []*link
	// Preserved are the fields that are preserved without a rule.
	Preserved []*link
	// Same are the fields that both versions have, grouped by the field that contains
	// them.
	Same  []sameFields
	Drawn drawing
}

// sameFields are the fields in one field of the object.
type sameFields struct {
	In    string
	Paths []string
}

// link connects a rule's fields in both versions, or is a field that only one has.
type link struct {
	Kind *rulekinds.Kind
	// Rule is nil if there is none.
	Rule       *rule
	Spoke, Hub []end
	// Odd reports whether single values are preserved.
	Odd bool
}

// end is a field of one version that a link covers as a whole.
type end struct {
	Path string
	Type string
	// Leaves is the number of its leaf fields, and 1 if it is one.
	Leaves int
}

// SameCount is the number of fields that both versions have.
func (m *mapping) SameCount() int {
	n := 0
	for _, same := range m.Same {
		n += len(same.Paths)
	}
	return n
}

func newMapping(spoke, hub string, all []compile.FieldVerdict, rules []*rule, types map[string]fieldTypes) *mapping {
	m := &mapping{Spoke: spoke, Hub: hub}
	links := map[string]*link{}
	byPlace := map[string]*rule{}
	for _, r := range rules {
		byPlace[r.Place] = r
	}
	for _, leaf := range all {
		switch {
		case leaf.Spoke != spoke:
		case leaf.Rule == "" && leaf.Owner == compile.OwnerExact:
			m.addSame(leaf)
		default:
			m.link(links, leaf, byPlace).add(leaf, types[leaf.Version])
		}
	}
	slices.SortStableFunc(m.Ruled, func(a, b *link) int { return a.Rule.number - b.Rule.number })
	m.Drawn = draw(m)
	return m
}

// link returns the link of a leaf field.
func (m *mapping) link(links map[string]*link, leaf compile.FieldVerdict, rules map[string]*rule) *link {
	key := leaf.Version + ":" + leaf.Root
	if leaf.Rule != "" {
		key = leaf.Rule
	}
	if known := links[key]; known != nil {
		return known
	}
	l := &link{Kind: rulekinds.All["preserved"]}
	if r := rules[leaf.Rule]; r != nil {
		l.Kind, l.Rule = r.Kind, r
		m.Ruled = append(m.Ruled, l)
	} else {
		m.Preserved = append(m.Preserved, l)
	}
	links[key] = l
	return l
}

func (l *link) add(leaf compile.FieldVerdict, types fieldTypes) {
	ends := &l.Hub
	if leaf.Version == leaf.Spoke {
		ends = &l.Spoke
	}
	l.Odd = l.Odd || leaf.PartlyPreserved
	if i := slices.IndexFunc(*ends, func(e end) bool { return e.Path == leaf.Root }); i >= 0 {
		(*ends)[i].Leaves++
		return
	}
	*ends = append(*ends, end{leaf.Root, types[leaf.Root], 1})
}

// addSame records a field once, although both versions have it.
func (m *mapping) addSame(leaf compile.FieldVerdict) {
	in := split(leaf.Path)[0]
	i := slices.IndexFunc(m.Same, func(same sameFields) bool { return same.In == in })
	if i < 0 {
		i = len(m.Same)
		m.Same = append(m.Same, sameFields{In: in})
	}
	if at, known := slices.BinarySearch(m.Same[i].Paths, leaf.Path); !known {
		m.Same[i].Paths = slices.Insert(m.Same[i].Paths, at, leaf.Path)
	}
}

// fieldTypes has the type of each field of a version, by its path in the format of a
// policy.
type fieldTypes map[string]string

func typesOf(crd *apiextensionsv1.CustomResourceDefinition) map[string]fieldTypes {
	all := map[string]fieldTypes{}
	for _, version := range crd.Spec.Versions {
		types := fieldTypes{}
		if version.Schema != nil && version.Schema.OpenAPIV3Schema != nil {
			types.add(version.Schema.OpenAPIV3Schema, nil)
		}
		all[version.Name] = types
	}
	return all
}

func (t fieldTypes) add(of *apiextensionsv1.JSONSchemaProps, at conversion.Path) {
	t[at.String()] = typeOf(of)
	for name := range of.Properties {
		property := of.Properties[name]
		t.add(&property, append(slices.Clip(at), name))
	}
	if elements := crds.Elements(of); elements != nil {
		t.add(elements, append(slices.Clip(at), "[*]"))
	}
}

func typeOf(of *apiextensionsv1.JSONSchemaProps) string {
	elements := crds.Elements(of)
	switch {
	case of.XIntOrString:
		return "integer or string"
	case elements != nil && of.Type == "array":
		return "list of " + typeOf(elements)
	case elements != nil:
		return "map of " + typeOf(elements)
	case of.Type == "":
		return "anything"
	}
	return of.Type
}
