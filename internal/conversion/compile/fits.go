// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

// fits reports whether a value of a rule is one that the schema allows.
func (c *compiler) fits(raw []byte, s *schema.Structural, at *field.Path) bool {
	value, err := conversion.Canonical(raw)
	switch {
	case err != nil || !isOf([]byte(value), s):
		c.invalid(at, string(raw), "is not of type %s: write a value that the field can have", typeName(s))
	case s.ValueValidation != nil && len(s.ValueValidation.Enum) > 0 && !inEnum(value, s.ValueValidation.Enum):
		c.invalid(at, string(raw), "is not in the enum of the field: write a value that the schema allows")
	default:
		return true
	}
	return false
}

// isOf reports whether a value, as Canonical writes it, is of the type that a schema
// names, with all in it.
func isOf(value []byte, s *schema.Structural) bool {
	_, err := strconv.ParseInt(string(value), 10, 64)
	switch {
	case s.XIntOrString:
		return value[0] == '"' || err == nil
	case s.Type == "string":
		return value[0] == '"'
	case s.Type == "integer":
		return err == nil
	case s.Type == "number":
		return value[0] == '-' || '0' <= value[0] && value[0] <= '9'
	case s.Type == "boolean":
		return string(value) == "true" || string(value) == "false"
	case s.Type == "array":
		var items []json.RawMessage
		return value[0] == '[' && json.Unmarshal(value, &items) == nil &&
			!slices.ContainsFunc(items, func(item json.RawMessage) bool { return !isOfHeld(item, s.Items) })
	case s.Type == "object":
		return value[0] == '{' && hasMembers(value, s)
	}
	return string(value) != "null"
}

// hasMembers reports whether the members of an object are of the types that the schema
// names.
func hasMembers(object []byte, s *schema.Structural) bool {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		return false
	}
	for name, value := range members {
		of := step(s, name)
		if of == nil && s.XPreserveUnknownFields {
			of = anything
		}
		if !isOfHeld(value, of) {
			return false
		}
	}
	return true
}

// isOfHeld reports whether an element or a member is of the type that its schema names.
// One without a schema would be taken away by the API server.
func isOfHeld(value []byte, s *schema.Structural) bool {
	return s != nil && (s.Nullable && string(value) == "null" || isOf(value, s))
}

func inEnum(value string, enum []schema.JSON) bool {
	return slices.ContainsFunc(enum, func(allowed schema.JSON) bool {
		text, err := json.Marshal(allowed.Object)
		if err != nil {
			return false
		}
		same, err := conversion.Canonical(text)
		return err == nil && same == value
	})
}

// quoted writes a text as JSON.
func quoted(text string) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		return nil // cannot be: every text has a JSON form
	}
	return bytes.TrimSpace(out.Bytes())
}
