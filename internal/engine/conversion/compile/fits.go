// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"encoding/json"
	"slices"
	"strconv"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// fits reports whether the schema allows a value of a rule. It adds an error otherwise.
func (c *compiler) fits(raw []byte, s *schema.Structural, fldPath place) bool {
	value, err := conversion.Canonical(raw)
	switch {
	case err != nil || !hasType([]byte(value), s):
		c.invalid(fldPath, string(raw), "is not of type %s: write a value that the field can have", typeName(s))
	case s.ValueValidation != nil && len(s.ValueValidation.Enum) > 0 && !inEnum(value, s.ValueValidation.Enum):
		c.invalid(fldPath, string(raw), "is not in the enum of the field: write a value that the schema allows")
	default:
		return true
	}
	return false
}

// hasType reports whether a value in the form of conversion.Canonical, with everything in it, has
// the type of a schema.
func hasType(value []byte, s *schema.Structural) bool {
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
			!slices.ContainsFunc(items, func(item json.RawMessage) bool { return !isOfOrNull(item, s.Items) })
	case s.Type == "object":
		return value[0] == '{' && membersHaveTypes(value, s)
	}
	return string(value) != "null"
}

// membersHaveTypes reports whether the members of an object have the types of the schema.
func membersHaveTypes(object []byte, s *schema.Structural) bool {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		return false
	}
	for name, value := range members {
		of := childOf(s, name)
		if of == nil && s.XPreserveUnknownFields {
			of = anything
		}
		if !isOfOrNull(value, of) {
			return false
		}
	}
	return true
}

// isOfOrNull reports whether an element or member has the type of its schema. A value without a
// schema does not: the API server would prune it.
func isOfOrNull(value []byte, s *schema.Structural) bool {
	return s != nil && (s.Nullable && string(value) == "null" || hasType(value, s))
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
