// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"maps"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

// leafWalker goes through a schema to its leaves. What would be one leaf is
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

// object has its fields, and one leaf for all that its schema does not name.
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
