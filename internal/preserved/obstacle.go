// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preserved

import (
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/conversion/shape"
)

// Obstacle says why an entry of a version stays in the annotation though the object
// is at that version. It goes on where a field was named: "v1 has no such field".
func Obstacle(plan *conversion.Plan, version string, e conversion.Entry, object any) string {
	var schema *shape.Schema
	if plan != nil {
		schema, _ = shape.Read(plan.Schemas[version]) // a converter has read it before
	}
	if schema == nil {
		return "the rules know no place for it"
	}
	place := split(e.Pointer)
	for i, segment := range place {
		if isElementOf(schema, segment) {
			if _, there := find(object, place[:i+1]); !there {
				return "the list has no such element any more"
			}
			schema = schema.Items()
		} else {
			schema = schema.Field(segment)
		}
		if schema == nil {
			return version + " has no such field"
		}
	}
	if e.Kind == conversion.EntryValue {
		if err := schema.Fits(e.Value); err != nil {
			return "the schema of " + version + " does not allow it: " + err.Error()
		}
	}
	return "the rules know no place for it"
}

func isElementOf(schema *shape.Schema, segment string) bool {
	return isSelector(segment) || schema.Items() != nil && !schema.IsObject() && strings.Trim(segment, "0123456789") == ""
}
