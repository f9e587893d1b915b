// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/conversion-operator/conversion-operator/internal/conversion/shape"
)

// comesAs reports whether a value is what the field is preserved as: a shell only
// where it has nothing in it, for its fields have owners of their own.
func (l *coming) comesAs(value []byte) bool {
	switch {
	case l.shell:
		return isBare(value)
	case l.null:
		return isNull(value)
	case l.common != nil:
		return !l.common.fits(new(arena), value)
	}
	return true
}

// fits reports whether a value that was preserved is one that the field can have.
// Users can write what is preserved: a label that is no string would make the object
// unreadable, and a value that the schema refuses one that cannot be written. On the
// way through the hub, it is the object at its end that must fit.
func (h *step) fits(f *slot, value []byte) bool {
	return f.legal(value) && h.fitsShape(f.shape, value)
}

func (h *step) fitsShape(s *shape.Schema, value []byte) bool {
	if s == nil || h.judged(s).Fits(value) == nil {
		return true
	}
	h.stretched = true
	return h.lenient
}

// judged is the schema that a value must fit. That of a fragment may lack what the
// value as a whole must have.
func (h *step) judged(s *shape.Schema) *shape.Schema {
	if h.whole {
		return s
	}
	return s.Part()
}

// legal reports whether the API server accepts a value: any as a field, and few
// as labels.
func (s *slot) legal(value []byte) bool {
	switch {
	case s.label:
		return isString(value) && len(validation.IsValidLabelValue(decodeString(value))) == 0
	case s.text:
		return isString(value)
	}
	return true
}

// isBare reports whether a value has nothing in it.
func isBare(value []byte) bool {
	if n, err := parse(value, one); err != nil || n.kind != array {
		return err == nil && n.first == nil
	}
	list, err := parse(value, elements)
	return err == nil && list.first == nil
}

// Common is what values have in common that both sides can hold.
type Common struct {
	// Type is that of a schema, or int-or-string. Without it there may be anything.
	Type string `json:"type,omitempty"`
	// NotNull tells that there is no null. Otherwise there may be one.
	NotNull bool `json:"notNull,omitempty"`
	// Each is the shape of the elements of a list, or the values of a map.
	Each *Common `json:"each,omitempty"`
}

// IntOrString is the Type of a Common for a schema with x-kubernetes-int-or-string.
const IntOrString = "int-or-string"

// fits reports whether a value is of the shape. One with a name that is there twice
// is not: readers differ in which of the two they take.
func (s *Common) fits(a *arena, text []byte) bool {
	switch {
	case isNull(text):
		return !s.NotNull
	case !s.isOfType(text):
		return false
	case s.Each == nil:
		return true
	}
	held, err := a.parse(text, elements)
	if err != nil || held.kind == scalar {
		return false
	}
	for child := held.first; child != nil; child = child.next {
		if !s.Each.fits(a, child.text) {
			return false
		}
	}
	return true
}

func (s *Common) isOfType(text []byte) bool {
	switch s.Type {
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

// isIntegral tells a number that is written as an integer, of any size.
func isIntegral(text []byte) bool { return isNumber(text) && !bytes.ContainsAny(text, ".eE") }
