// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// A type may have fields of the same type: a route has routes. A CustomResourceDefinition cannot say that, so its
// schema says nothing about what is in these fields. If a group of rules uses itself for such a field, the compiler
// repeats the group and the schema of the object that the group is for, some levels deep. All that follows knows no
// recursion.

// maxDepth is how many levels of objects in an object a group is repeated for.
const maxDepth = 8

// recursion is a use of a group in the object that the group is already used for.
type recursion struct {
	// of is the first of these uses, at is another one, some levels deeper. Their paths are from the root.
	of, at *v1alpha1.UseRule
	levels int
}

// recurse returns how often a group is in itself already, by the uses that have led to this one, and notes a use that repeats
// it.
func (x *expansion) recurse(use *v1alpha1.UseRule, through []*v1alpha1.UseRule) (levels int) {
	same := slices.DeleteFunc(slices.Clone(through), func(outer *v1alpha1.UseRule) bool { return outer.Group != use.Group })
	if levels = len(same); 0 < levels && levels <= maxDepth {
		last := len(x.recursions) - 1
		x.recursions[last] = append(x.recursions[last], recursion{same[0], use, levels})
	}
	return levels
}

// repeated returns the fields of one side, with its own names, in which everything only repeats, some levels below, what is
// one level above.
func (c *compiler) repeated(ofHub bool) (paths []conversion.Path) {
	in := pathIn(ofHub)
	for _, r := range c.recursions {
		if path, err := conversion.ParsePath(string(in(r.at))); err == nil && r.levels > 1 {
			paths = append(paths, path)
		}
	}
	return paths
}

// pathIn returns the function that chooses the path of a use in the spoke or in the hub.
func pathIn(hub bool) func(*v1alpha1.UseRule) v1alpha1.Path {
	if hub {
		return func(use *v1alpha1.UseRule) v1alpha1.Path { return use.To }
	}
	return func(use *v1alpha1.UseRule) v1alpha1.Path { return use.From }
}

// typed returns a schema in which objects have the type of the object around them, if a group says so and the schema says
// nothing about them. The function chooses the path of a use in this version.
func typed(s *schema.Structural, recursions []recursion, in func(*v1alpha1.UseRule) v1alpha1.Path) *schema.Structural {
	types := map[*v1alpha1.UseRule]*schema.Structural{}
	for _, r := range recursions {
		if _, known := types[r.of]; !known {
			types[r.of] = typeAt(s, in(r.of))
		}
		if at, err := conversion.ParsePath(string(in(r.at))); err == nil && at[0] != "metadata" && types[r.of] != nil {
			s = with(s, at, types[r.of])
		}
	}
	return s
}

// typeAt returns the type that is repeated: that of a field, or of the whole object. It is nil if there is no such field.
func typeAt(s *schema.Structural, text v1alpha1.Path) *schema.Structural {
	if text == "" {
		return unchecked(s)
	}
	path, err := conversion.ParsePath(string(text))
	if err != nil || path[0] == "metadata" {
		return nil
	}
	if s, err = resolve(s, path); err != nil {
		return nil
	}
	return unchecked(s)
}

// unchecked returns a schema without what API servers would have to check or set: they do not know the type where it is
// repeated. What the types of expressions depend on stays.
func unchecked(s *schema.Structural) *schema.Structural {
	return limitedTo(s, func(of schema.ValueValidation) schema.ValueValidation {
		return schema.ValueValidation{Format: of.Format}
	})
}

// limitedTo returns a schema with some of its limits, and without defaults.
func limitedTo(s *schema.Structural, limits func(schema.ValueValidation) schema.ValueValidation) *schema.Structural {
	bare := s.DeepCopy()
	visitor := schema.Visitor{Structural: func(s *schema.Structural) (changed bool) {
		of := limits(validationOf(s))
		s.Default, s.XValidations, s.ValueValidation = schema.JSON{}, nil, &of
		return true
	}}
	visitor.Visit(bare)
	return bare
}

// with returns a schema with a type at a path, if the schema does not say what is there. A field that may hold anything
// is a list if the path goes through its elements.
func with(s *schema.Structural, at conversion.Path, kind *schema.Structural) *schema.Structural {
	if len(at) == 0 {
		if saysNothing(s) {
			return kind
		}
		return s
	}
	if at[0] == conversion.Each && saysNothing(s) {
		return &schema.Structural{Generic: schema.Generic{Type: "array"}, Items: with(anything, at[1:], kind)}
	}
	child, segment := childOf(s, at[0]), at[0]
	if child == nil {
		return s
	}
	if _, named := s.Properties[segment]; !named {
		segment = conversion.Each
	}
	return withChild(s, segment, with(child, at[1:], kind))
}

// saysNothing reports whether a schema does not say what is in a value.
func saysNothing(s *schema.Structural) bool {
	return holdsAnything(s) && len(s.Properties) == 0 && s.Items == nil && !s.XEmbeddedResource && !s.XIntOrString && (s.Type == "" || s.Type == "object")
}
