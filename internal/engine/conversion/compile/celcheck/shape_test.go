// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package celcheck

import (
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestShape checks that a ruleset has the types of a schema, and not its validation.
func TestShape(t *testing.T) {
	for text, want := range map[string]string{
		`{type: string, maxLength: 5, description: d, pattern: a, default: x}`: `{"type":"string"}`,
		`{type: string, format: date-time, nullable: true}`:                    `{"type":"string","format":"date-time","nullable":true}`,
		open:   `{"x-kubernetes-preserve-unknown-fields":true}`,
		either: `{"x-kubernetes-int-or-string":true}`,
		texts:  `{"type":"array","items":{"type":"string"}}`,
		`{type: object, additionalProperties: true}`: `{"type":"object","additionalProperties":true}`,
		textMap: `{"type":"object","additionalProperties":{"type":"string"}}`,
		`{type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}`:                                                                                             `{"type":"object","x-kubernetes-preserve-unknown-fields":true,"x-kubernetes-embedded-resource":true}`,
		`{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, x-kubernetes-map-type: granular, required: [name], properties: {name: {type: string}}}}`: `{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"}},"x-kubernetes-map-type":"granular"},"x-kubernetes-list-map-keys":["name"],"x-kubernetes-list-type":"map"}`,
	} {
		got, err := Shape(structural(t, text))
		expect.NoError(t, err)
		expect.Equal(t, "shape of "+text, want, string(got))
	}
}
