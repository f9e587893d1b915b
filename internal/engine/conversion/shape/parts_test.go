// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape_test

import (
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestReaderSharesEqualParts reads two versions that differ in one field.
func TestReaderSharesEqualParts(t *testing.T) {
	const resources = "resources: {type: object, required: [cpu], properties: {cpu: {type: string, pattern: '^[0-9]+m?$'}}}"
	var reader shape.Reader
	var versions []*shape.Schema
	for _, schema := range []string{
		"{type: object, properties: {" + resources + ", image: {type: string}}}",
		"{type: object, properties: {" + resources + ", image: {type: string, maxLength: 9}, sidecar: {type: object, properties: {" + resources + "}}}}",
	} {
		versions = append(versions, readBy(t, &reader, schemaOf(t, schema)))
	}
	old, current := versions[0], versions[1]
	if old.Field("resources") != current.Field("resources") || old.Field("resources") != current.Field("sidecar").Field("resources") {
		t.Error("equal schemas are not shared")
	}
	if long := []byte(`"0123456789"`); fits(old.Field("image"), long) != nil || fits(current.Field("image"), long) == nil {
		t.Error("schemas with other limits are shared")
	}
}

// TestReaderKeepsPositionsApart checks that a schema which stands at two positions is two: null is
// pruned from fields, and not from lists.
func TestReaderKeepsPositionsApart(t *testing.T) {
	s := read(t, schemaOf(t, "{type: object, properties: {field: {}, list: {type: array, items: {}}}}"))
	expect.Equal(t, "that null fits a field that is not nullable", false, fits(s.Field("field"), []byte("null")) == nil)
	expect.NoError(t, fits(s.Field("list"), []byte("[null]")))
}
