// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

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

// allows reports whether a value has the shape.
func (c *Common) allows(value *tree.Node) bool {
	switch {
	case value.Is(tree.Null):
		return !c.NotNull
	case value.Is(tree.List) && c.Type != "" && c.Type != "array", value.Is(tree.Object) && c.Type != "" && c.Type != "object":
		return false
	case value.IsScalar():
		return c.Each == nil && c.isOfType(value.JSON())
	case c.Each == nil:
		return true
	}
	return !slices.ContainsFunc(value.Elems(), func(element *tree.Node) bool { return !c.Each.allows(element) }) &&
		!slices.ContainsFunc(value.Members(), func(m tree.Member) bool { return !c.Each.allows(m.Value) })
}
func (c *Common) isOfType(text []byte) bool {
	switch c.Type {
	case "":
		return true
	case "string":
		return text[0] == '"'
	case "integer":
		return isIntegral(text)
	case IntOrString:
		return text[0] == '"' || isIntegral(text)
	case "number":
		return isNumber(text)
	case "boolean":
		return string(text) == "true" || string(text) == "false"
	case "object":
		return text[0] == '{'
	}
	return text[0] == '['
}

func isNumber(text []byte) bool {
	return len(text) > 0 && (text[0] == '-' || '0' <= text[0] && text[0] <= '9')
}

// isIntegral reports whether a number is written as an integer, of any size.
func isIntegral(text []byte) bool { return isNumber(text) && !bytes.ContainsAny(text, ".eE") }
