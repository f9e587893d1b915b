// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preserve

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// Schema is the schema of a value, as far as preserved data needs it. The zero Schema is that of a value that an API
// server would prune.
type Schema struct {
	shape *shape.Schema
	part  part
	// fragment is true for a value of a fragment, in which nothing is required or filled in.
	fragment bool
	// lenient is set if a value was restored that the schema does not allow; nil if none may be.
	lenient *bool
	// ruled is what rules know.
	ruled *Paths
	// exact is true where an empty list is not the same as none, for near.
	exact bool
}

// part says which part of an object a schema is for.
type part byte

const (
	inside part = iota
	root
	metadata
	labels
	annotations
)

// Of returns the schema of a whole object. fragment is true for a part of one, such as server-side apply sends.
func Of(object *shape.Schema, fragment bool) Schema {
	if object == nil {
		object = shape.Anything()
	}
	return Schema{shape: object, part: root, fragment: fragment}
}

// Lenient returns a schema in which any value may be restored, and what says whether one was that it does not allow:
// between two other versions, the object exists for the rules only.
func (s Schema) Lenient() (lenient Schema, misfit *bool) {
	s.lenient = new(bool)
	return s, s.lenient
}

// pruned reports whether an API server would prune the value.
func (s Schema) pruned() bool { return s.shape == nil && s.part == inside }

// in returns the schema of a member or element.
func (s Schema) in(at Segment) Schema {
	if at.Element {
		return s.elem()
	}
	return s.member(at.Name)
}

func (s Schema) member(name string) Schema {
	inner := Schema{fragment: s.fragment, lenient: s.lenient, ruled: s.ruled.in(Segment{Name: name}), exact: s.exact}
	switch s.part {
	case root:
		switch name {
		case "apiVersion", "kind":
			return inner
		case "metadata":
			inner.part = metadata
			return inner
		}
	case metadata:
		switch name {
		case "labels":
			inner.part = labels
		case "annotations":
			inner.part = annotations
		}
		return inner
	case labels, annotations:
		inner.shape = shape.Text
		return inner
	}
	if s.shape == nil {
		return inner
	}
	inner.shape = s.shape.Field(name)
	return inner
}

func (s Schema) elem() Schema {
	inner := Schema{fragment: s.fragment, lenient: s.lenient, ruled: s.ruled.in(Segment{Element: true}), exact: s.exact}
	if s.shape != nil {
		inner.shape = s.shape.Items()
	}
	return inner
}

// isMap reports whether a value is a map, whose members are elements.
func (s Schema) isMap() bool { return s.shape != nil && s.shape.IsMap() }

// isSet reports whether the elements of a list must differ.
func (s Schema) isSet() bool { return s.shape != nil && s.shape.ListType == "set" }

// keys returns the fields that identify the elements of a list.
func (s Schema) keys() []string {
	if s.shape != nil && len(s.shape.Keys()) > 0 {
		return s.shape.Keys()
	}
	if s.ruled != nil {
		return s.ruled.Keys
	}
	return nil
}

// fallback returns the default of a value, nil if it has none.
func (s Schema) fallback(a *tree.Arena) *tree.Node {
	if s.shape == nil || s.fragment {
		return nil
	}
	text := s.shape.Fallback
	if text == nil {
		return nil
	}
	value, err := a.Read(text)
	if err != nil {
		return nil // cannot happen: it was read from JSON
	}
	return value
}

// withoutDefaults returns a value without members that an API server would fill in.
func (s Schema) withoutDefaults(a *tree.Arena, value *tree.Node) *tree.Node {
	return a.Filter(value, func(name string, inner *tree.Node) *tree.Node {
		of := s.in(Segment{Name: name, Element: value.Is(tree.List)})
		if fallback := of.fallback(a); fallback != nil && value.Is(tree.Object) && a.Equal(fallback, inner) {
			return nil
		}
		return of.withoutDefaults(a, inner)
	})
}

// allows reports whether an API server accepts the value, and prunes nothing of it.
func (s Schema) allows(value *tree.Node) bool {
	switch {
	case s.isTexts():
		for _, m := range value.Members() {
			if !s.allowsIn(Segment{Name: m.Name}, m.Value) {
				return false
			}
		}
		return value.Is(tree.Object)
	case s.shape == nil:
		return false
	}
	return s.fits(value) || s.isLenient()
}

// fits reports whether an API server accepts a value of the shape, or a part of one in a fragment.
func (s Schema) fits(value *tree.Node) bool {
	if s.fragment {
		return s.shape.PartFits(value) == nil
	}
	return s.shape.Fits(value) == nil
}

func (s Schema) isLenient() bool {
	if s.lenient == nil {
		return false
	}
	*s.lenient = true
	return true
}

// Allows reports whether an API server accepts a whole object.
func (s Schema) Allows(object *tree.Node) bool {
	return !slices.ContainsFunc(object.Members(), func(m tree.Member) bool { return !isEnvelope(nil, m.Name) && !s.member(m.Name).allows(m.Value) })
}

// allowsIn reports whether an API server accepts a value in a place of this schema.
func (s Schema) allowsIn(at Segment, value *tree.Node) bool {
	if s.isTexts() {
		return s.knowsText(at) && value.Is(tree.String) && (s.part == annotations || len(validation.IsValidLabelValue(value.Text())) == 0)
	}
	return s.in(at).allows(value)
}

// knowsText reports whether rules know a label or an annotation.
func (s Schema) knowsText(at Segment) bool {
	text := s.ruled.in(at)
	return text != nil && text.Text
}

// allowsInsert reports whether an API server accepts a value as an element of a list.
func (s Schema) allowsInsert(value *tree.Node) bool {
	return s.shape != nil && s.shape.Items() != nil && s.elem().allowsElement(value)
}

var emptyObject = new(tree.Arena).NewObject()

// allowsElement is allows for an element of a list. Required fields may be missing, because rules may drop them.
func (s Schema) allowsElement(value *tree.Node) bool {
	if !value.Is(tree.Object) {
		return s.allows(value)
	}
	for _, m := range value.Members() {
		if !s.member(m.Name).allows(m.Value) {
			return false
		}
	}
	return s.shape != nil && (s.shape.Kind == shape.ObjectKind || s.fits(emptyObject) || s.allows(value))
}

// isNull reports whether a value is null where an API server keeps no null: it is as if it were missing.
func (s Schema) isNull(value *tree.Node) bool {
	return value.Is(tree.Null) && (s.shape == nil || !s.shape.IsNullable())
}

// isTexts reports whether a value is the labels or the annotations.
func (s Schema) isTexts() bool { return s.part == labels || s.part == annotations }

// isNone reports whether a value is the same as none: empty labels and annotations.
func (s Schema) isNone(value *tree.Node) bool {
	return s.isTexts() && value.Is(tree.Object) && value.Len() == 0
}

// shows reports whether an API server shows the same of two values: it fills in the defaults of the schema, and
// compares numbers by value. skip is not compared.
func (s Schema) shows(a *tree.Arena, x, y *tree.Node, skip *Paths) bool {
	if x == y || skip.isWhole() {
		return true
	}
	if x, y = s.shown(a, x), s.shown(a, y); x == y {
		return true
	}
	if skip != nil && (skip.Bare || s.isTexts()) && (x == nil || x.Is(tree.Object)) && (y == nil || y.Is(tree.Object)) {
		return s.showMembers(a, x, y, skip)
	}
	if x == nil || y == nil || x.Kind() != y.Kind() {
		return false
	}
	a.Spend(1, 0)
	switch x.Kind() {
	case tree.Number:
		return tree.SameNumber(x, y)
	case tree.Object:
		return s.showMembers(a, x, y, skip)
	case tree.List:
		return s.showElements(a, x, y, skip)
	}
	return a.Equal(x, y)
}

// shown returns what an API server shows in place of a value that is missing.
func (s Schema) shown(a *tree.Arena, value *tree.Node) *tree.Node {
	if s.isNone(value) {
		return nil
	}
	if value == nil || s.isNull(value) {
		if fallback := s.fallback(a); fallback != nil || value == nil {
			return fallback
		}
	}
	return value
}

func (s Schema) showMembers(a *tree.Arena, x, y *tree.Node, skip *Paths) bool {
	for i, m := range x.Members() {
		if other := y.Near(i, m.Name); other != m.Value && !s.member(m.Name).shows(a, m.Value, other, skip.in(Segment{Name: m.Name})) {
			return false
		}
	}
	for i, m := range y.Members() {
		if x.Near(i, m.Name) == nil && !s.member(m.Name).shows(a, nil, m.Value, skip.in(Segment{Name: m.Name})) {
			return false
		}
	}
	return true
}

func (s Schema) showElements(a *tree.Arena, x, y *tree.Node, skip *Paths) bool {
	if len(x.Elems()) != len(y.Elems()) {
		return false
	}
	inner, skipped := s.elem(), skip.in(Segment{Element: true})
	for i, element := range x.Elems() {
		if other := y.Elems()[i]; element != other && !inner.shows(a, element, other, skipped) {
			return false
		}
	}
	return true
}
