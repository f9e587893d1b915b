// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
)

// accepts reports whether a preserved value belongs to this field: a shell is preserved only if it
// is empty, because its fields are preserved by themselves.
func (f *arrivingField) accepts(value []byte) bool {
	switch {
	case f.shell:
		return isEmptyValue(value)
	case f.null:
		return isNull(value)
	case f.common != nil:
		return !f.common.fits(new(arena), value)
	}
	return true
}

// fits reports whether the field allows a preserved value. Users can write annotations: a label
// that is not a string would make the object unreadable, and a value that the schema refuses would
// make it unwritable. In a conversion through the hub, only the result has to fit.
func (s *step) fits(f *slot, value []byte) bool {
	return f.legal(value) && s.fitsShape(f.shape, value)
}

func (s *step) fitsShape(schema *shape.Schema, value []byte) bool {
	if schema == nil || s.applicableSchema(schema).Fits(value) == nil {
		return true
	}
	s.misfitRestored = true
	return s.lenient
}

// applicableSchema returns the schema for a value: that of a fragment does not require anything.
func (s *step) applicableSchema(schema *shape.Schema) *shape.Schema {
	if s.complete {
		return schema
	}
	return schema.Part()
}

// legal reports whether the API server accepts the value as a label or annotation. It is true for
// all other fields.
func (s *slot) legal(value []byte) bool {
	switch {
	case s.label:
		return isString(value) && len(validation.IsValidLabelValue(decodeString(value))) == 0
	case s.text:
		return isString(value)
	}
	return true
}

// isEmptyValue reports whether a value is a scalar or empty.
func isEmptyValue(value []byte) bool {
	if n, err := parse(value, openMembers); err != nil || n.kind != array {
		return err == nil && n.first == nil
	}
	list, err := parse(value, openElements)
	return err == nil && list.first == nil
}

// Common is the shape of values that both sides allow.
type Common struct {
	// Type is that of a schema, or int-or-string. Empty allows any type.
	Type string `json:"type,omitempty"`
	// NotNull excludes null.
	NotNull bool `json:"notNull,omitempty"`
	// Each is the shape of the elements of a list, or of the values of a map.
	Each *Common `json:"each,omitempty"`
}

// IntOrString is the Type of a schema with x-kubernetes-int-or-string.
const IntOrString = "int-or-string"

// fits reports whether a value has the shape. A value with a duplicate name does not: readers
// differ in which one they use.
func (c *Common) fits(a *arena, text []byte) bool {
	switch {
	case isNull(text):
		return !c.NotNull
	case !c.isOfType(text):
		return false
	case c.Each == nil:
		return true
	}
	held, err := a.parse(text, openElements)
	if err != nil || held.kind == scalar {
		return false
	}
	for child := held.first; child != nil; child = child.next {
		if !c.Each.fits(a, child.text) {
			return false
		}
	}
	return true
}

func (c *Common) isOfType(text []byte) bool {
	switch c.Type {
	case "":
		return true
	case "string":
		return isString(text)
	case "integer":
		return isIntegral(text)
	case IntOrString:
		return isString(text) || isIntegral(text)
	case "number":
		return isNumber(text)
	case "boolean":
		return string(text) == "true" || string(text) == "false"
	case "object":
		return kindOf(text) == object
	}
	return kindOf(text) == array
}

func isNumber(text []byte) bool {
	return len(text) > 0 && (text[0] == '-' || '0' <= text[0] && text[0] <= '9')
}

// isIntegral reports whether a number is written as an integer, of any size.
func isIntegral(text []byte) bool { return isNumber(text) && !bytes.ContainsAny(text, ".eE") }
