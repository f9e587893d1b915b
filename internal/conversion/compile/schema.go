// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

// structuralOf reads a version's schema. A version without one preserves everything.
func structuralOf(version *apiextensionsv1.CustomResourceDefinitionVersion) (*schema.Structural, error) {
	if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
		return &schema.Structural{Generic: schema.Generic{Type: "object"}, Extensions: schema.Extensions{XPreserveUnknownFields: true}}, nil
	}
	internal := &apiextensions.JSONSchemaProps{}
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, internal, nil)
	if err != nil {
		return nil, err
	}
	return schema.NewStructural(internal)
}

// text is the schema of a label or annotation.
var text = &schema.Structural{Generic: schema.Generic{Type: "string"}}

// resolve finds the schema of a path, or says why there is none.
func resolve(root *schema.Structural, path conversion.Path) (*schema.Structural, error) {
	if path[0] == "metadata" {
		return text, conversion.CheckMetadata(path)
	}
	if len(path) == 1 && (path[0] == "apiVersion" || path[0] == "kind") {
		return nil, fmt.Errorf("%s is converted by itself: remove the rule", path)
	}
	at := root
	for i, segment := range path {
		if at.XEmbeddedResource {
			return nil, fmt.Errorf("%s is an object of a kind of its own: write a rule for all of it", path[:i])
		}
		next := step(at, segment)
		if next == nil {
			return nil, &unknown{root, at, path[:i+1]}
		}
		at = next
	}
	return at, nil
}

func step(at *schema.Structural, segment string) *schema.Structural {
	if segment == conversion.Each {
		if at.Items != nil {
			return at.Items
		}
		return valuesOf(at)
	}
	if next, found := at.Properties[segment]; found {
		return &next
	}
	return valuesOf(at)
}

// valuesOf is the schema of a map's values.
func valuesOf(at *schema.Structural) *schema.Structural {
	if at.AdditionalProperties == nil {
		return nil
	}
	return at.AdditionalProperties.Structural
}

// unknown is a path that leads nowhere behind a place that it still reaches. Most
// of those who ask want no more than that. What the path may mean takes a walk
// through the schema, so only who reads the error pays for it.
type unknown struct {
	root, at *schema.Structural
	path     conversion.Path
}

func (e *unknown) Error() string {
	at, segment := e.at, e.path[len(e.path)-1]
	where := e.path[:len(e.path)-1].String()
	if where == "" {
		where = "the object"
	}
	switch {
	case segment == conversion.Each:
		return where + " is neither a list nor a map: remove [*]"
	case at.Items != nil:
		return where + " is a list: write " + where + "[*]." + segment
	case at.Type != "object" && !holdsAnything(at):
		return fmt.Sprintf("%s is of type %s and has no fields: correct the path", where, typeName(at))
	case holdsAnything(at):
		return fmt.Sprintf("the schema does not say what is in %s: add %s to the schema", where, segment)
	}
	return unknownField(e.root, at, e.path)
}

// difference is the first place where two schemas are not of the same shape,
// and what differs; empty where a value of one can be a value of the other.
func difference(a, b *schema.Structural, at conversion.Path) string {
	switch {
	case a.XIntOrString != b.XIntOrString, a.Type != b.Type:
		return fmt.Sprintf("%s is %s on one side and %s on the other", where(at), typeName(a), typeName(b))
	case a.XEmbeddedResource != b.XEmbeddedResource:
		return where(at) + " is an object of a kind of its own on one side only"
	case holdsAnything(a) != holdsAnything(b), a.XPreserveUnknownFields != b.XPreserveUnknownFields:
		return where(at) + " may hold anything on one side only"
	case (a.Items == nil) != (b.Items == nil), (valuesOf(a) == nil) != (valuesOf(b) == nil):
		return where(at) + " is a list or map on one side only"
	}
	if a.Items != nil {
		return difference(a.Items, b.Items, append(slices.Clip(at), conversion.Each))
	}
	if values := valuesOf(a); values != nil {
		return difference(values, valuesOf(b), append(slices.Clip(at), conversion.Each))
	}
	for _, name := range unionOf(a.Properties, b.Properties) {
		left, inLeft := a.Properties[name]
		right, inRight := b.Properties[name]
		if inLeft != inRight {
			return where(append(slices.Clip(at), name)) + " exists on one side only"
		}
		if found := difference(&left, &right, append(slices.Clip(at), name)); found != "" {
			return found
		}
	}
	return ""
}

// holdsAnything reports whether a schema allows fields that it does not name.
func holdsAnything(s *schema.Structural) bool {
	return s.XPreserveUnknownFields || s.AdditionalProperties != nil && s.AdditionalProperties.Structural == nil
}

func where(at conversion.Path) string {
	if len(at) == 0 {
		return "the value"
	}
	return at.String()
}

func typeName(s *schema.Structural) string {
	switch {
	case s.XIntOrString:
		return conversion.IntOrString
	case s.Type == "":
		return "anything"
	}
	return s.Type
}

func unionOf(a, b map[string]schema.Structural) []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(names)
	return slices.Compact(names)
}

// leafWalker goes through a schema to its leaves. What would be one leaf field is
// looked into where part of it has an owner of its own.
type leafWalker struct {
	owned []conversion.Path
	found func(conversion.Path)
}

func (w leafWalker) value(s *schema.Structural, at conversion.Path) {
	elements := elementsOf(s)
	switch {
	case s.Type == "object" && (len(s.Properties) > 0 || w.opened(at) && elements == nil) && (!s.XEmbeddedResource || w.opened(at)):
		w.object(s, at)
	case elements != nil && (w.opened(at) || hasFields(elements)):
		w.value(elements, append(slices.Clip(at), conversion.Each))
	default:
		w.found(at)
	}
}

// object has its fields, and one leaf field for all that its schema does not name.
func (w leafWalker) object(s *schema.Structural, at conversion.Path) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if len(at) == 0 && conversion.IsEnvelope(name) {
			continue
		}
		property := s.Properties[name]
		w.value(&property, append(slices.Clip(at), name))
	}
	if holdsAnything(s) {
		w.found(append(slices.Clip(at), conversion.Each))
	}
}

// opened reports whether something in the field has an owner of its own.
func (w leafWalker) opened(at conversion.Path) bool {
	return slices.ContainsFunc(w.owned, func(path conversion.Path) bool { return len(path) > len(at) && path.HasPrefix(at) })
}

// hasFields reports whether the elements of a list or map have leaves of their own.
func hasFields(s *schema.Structural) bool {
	if elements := elementsOf(s); elements != nil {
		return hasFields(elements)
	}
	return s.Type == "object" && len(s.Properties) > 0 && !s.XEmbeddedResource
}
