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

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// structuralOf reads the schema of a version. A version without a schema preserves all fields.
func structuralOf(props *apiextensionsv1.JSONSchemaProps) (*schema.Structural, error) {
	if props == nil {
		return &schema.Structural{Generic: schema.Generic{Type: "object"}, Extensions: schema.Extensions{XPreserveUnknownFields: true}}, nil
	}
	internal := &apiextensions.JSONSchemaProps{}
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, internal, nil)
	if err != nil {
		return nil, err
	}
	return schema.NewStructural(internal)
}

// textSchema is the schema of a label or annotation.
var textSchema = &schema.Structural{Generic: schema.Generic{Type: "string"}}

// resolve returns the schema at a path, or an error that explains why there is none.
func resolve(root *schema.Structural, path conversion.Path) (*schema.Structural, error) {
	if isText(path) {
		return textSchema, conversion.CheckMetadata(path)
	}
	if len(path) == 1 && (path[0] == "apiVersion" || path[0] == "kind") {
		return nil, fmt.Errorf("%s is converted by itself: remove the rule", path)
	}
	return resolveIn(root, path)
}

// resolveIn is resolve for a path in an element, which has no metadata of its own.
func resolveIn(root *schema.Structural, path conversion.Path) (*schema.Structural, error) {
	current := root
	for i, segment := range path {
		if current.XEmbeddedResource {
			return nil, fmt.Errorf("%s is an object of a kind of its own: write a rule for all of it", path[:i])
		}
		next := childOf(current, segment)
		if next == nil {
			return nil, &unknownFieldError{root, current, path[:i+1]}
		}
		current = next
	}
	return current, nil
}

func childOf(parent *schema.Structural, segment string) *schema.Structural {
	if segment == conversion.Each {
		if parent.Items != nil {
			return parent.Items
		}
		return valuesOf(parent)
	}
	if parent.Items != nil && selects(parent, segment) {
		return parent.Items
	}
	if next, found := parent.Properties[segment]; found {
		return &next
	}
	return valuesOf(parent)
}

// selects reports whether a segment selects an element of a list by its only key, a string.
func selects(list *schema.Structural, segment string) bool {
	member, _, is := tree.CutSelector(segment)
	return is && isListMap(list) && slices.Equal(list.XListMapKeys, []string{member}) && list.Items.Properties[member].Type == "string"
}

// withChild returns a copy of a schema with another schema of a field, or of all elements.
func withChild(parent *schema.Structural, segment string, child *schema.Structural) *schema.Structural {
	with := *parent
	switch {
	case segment != conversion.Each:
		with.Properties = map[string]schema.Structural{}
		maps.Copy(with.Properties, parent.Properties)
		with.Properties[segment] = *child
	case parent.Items != nil:
		with.Items = child
	default:
		with.AdditionalProperties = &schema.StructuralOrBool{Bool: parent.AdditionalProperties.Bool, Structural: child}
	}
	return &with
}

// valuesOf returns the schema of a map's values, nil if there is none.
func valuesOf(s *schema.Structural) *schema.Structural {
	if s.AdditionalProperties == nil {
		return nil
	}
	return s.AdditionalProperties.Structural
}

// unknownFieldError reports a path that leaves the schema below parent. Most callers only test for
// the error, so its message, which searches the schema for a suggestion, is built on demand.
type unknownFieldError struct {
	root, parent *schema.Structural
	path         conversion.Path
}

func (e *unknownFieldError) Error() string {
	parent, segment := e.parent, e.path[len(e.path)-1]
	place := e.path[:len(e.path)-1].String()
	if place == "" {
		place = "the object"
	}
	switch {
	case segment == conversion.Each:
		return place + " is neither a list nor a map: remove [*]"
	case conversion.IsSelector(segment):
		return fmt.Sprintf("%s is no list whose only x-kubernetes-list-map-keys is the string that %s names: use an each rule with where", place, segment)
	case parent.Items != nil:
		return place + " is a list: write " + place + "[*]." + segment
	case parent.Type != "object" && !holdsAnything(parent):
		return fmt.Sprintf("%s is of type %s and has no fields: correct the path", place, typeName(parent))
	case holdsAnything(parent):
		return fmt.Sprintf("the schema does not say what is in %s: add %s to the schema", place, segment)
	}
	message := place + " has no field " + segment + " in the schema"
	switch suggestion := suggest(e.root, e.path); {
	case suggestion != nil:
		return message + ": did you mean " + suggestion.String() + "?"
	case len(parent.Properties) == 0:
		return message + ": correct the path"
	}
	return message + ", it has " + few(slices.Collect(maps.Keys(parent.Properties))) + ": correct the path"
}

// difference describes the first difference between two schemas. It is empty if every value of one
// schema has the right shape for the other.
func difference(a, b *schema.Structural, at conversion.Path) string {
	switch {
	case a.XIntOrString != b.XIntOrString, a.Type != b.Type:
		return fmt.Sprintf("%s is %s on one side and %s on the other", pathText(at), typeName(a), typeName(b))
	case a.XEmbeddedResource != b.XEmbeddedResource:
		return pathText(at) + " is an object of a kind of its own on one side only"
	case holdsAnything(a) != holdsAnything(b), a.XPreserveUnknownFields != b.XPreserveUnknownFields:
		return pathText(at) + " may hold anything on one side only"
	case (a.Items == nil) != (b.Items == nil), (valuesOf(a) == nil) != (valuesOf(b) == nil):
		return pathText(at) + " is a list or map on one side only"
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
			return pathText(append(slices.Clip(at), name)) + " exists on one side only"
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

func pathText(at conversion.Path) string {
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

// leafWalker visits the leaf fields of a schema. It descends into a field that would be one leaf field if
// a part of the field has its own owner.
type leafWalker struct {
	*side
	owned []conversion.Path
	found func(conversion.Path)
}

func (w leafWalker) value(s *schema.Structural, at conversion.Path) {
	elements := elementsOf(s)
	switch {
	case s.Type == "object" && (len(s.Properties) > 0 || w.hasOwnerBelow(at) && elements == nil) && (!s.XEmbeddedResource || w.hasOwnerBelow(at)):
		w.object(s, at)
	case elements != nil && (w.hasOwnerBelow(at) || hasFields(elements)):
		w.value(elements, append(slices.Clip(at), conversion.Each))
	default:
		w.found(at)
	}
}

// object visits the fields of an object, and one leaf field for everything that its schema does not name.
func (w leafWalker) object(s *schema.Structural, at conversion.Path) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if w.isEnvelope(at, name) {
			continue
		}
		property := s.Properties[name]
		w.value(&property, append(slices.Clip(at), name))
	}
	if holdsAnything(s) {
		w.found(append(slices.Clip(at), conversion.Each))
	}
}

// hasOwnerBelow reports whether a part of the field has its own owner.
func (w leafWalker) hasOwnerBelow(at conversion.Path) bool {
	return slices.ContainsFunc(w.owned, func(path conversion.Path) bool { return len(path) > len(at) && path.HasPrefix(at) })
}

// hasFields reports whether the elements of a list or map have leaves of their own.
func hasFields(s *schema.Structural) bool {
	if elements := elementsOf(s); elements != nil {
		return hasFields(elements)
	}
	return s.Type == "object" && len(s.Properties) > 0 && !s.XEmbeddedResource
}
