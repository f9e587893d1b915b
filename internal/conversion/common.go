// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import "bytes"

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
