// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape_test

import (
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func BenchmarkFits(b *testing.B) {
	for _, c := range []struct{ name, schema, value string }{
		{"string", "{type: string}", `"nginx:1.27"`},
		{"integer", "{type: integer}", `8080`},
		{"string-maxLength", "{type: string, maxLength: 63}", `"nginx:1.27"`},
		{"string-enum", "{type: string, enum: [Always, Never, IfNotPresent]}", `"IfNotPresent"`},
		{"string-pattern", "{type: string, pattern: '^[a-z:0-9.]+$'}", `"nginx:1.27"`},
		{"object", "{type: object, properties: {name: {type: string}, port: {type: integer}, labels: {type: object, additionalProperties: {type: string}}}}",
			`{"name":"a","port":8080,"labels":{"a":"b","c":"d"}}`},
		{"object-required", "{type: object, required: [name], properties: {name: {type: string}, port: {type: integer, minimum: 1}}}", `{"name":"a","port":8080}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, value := read(b, schemaOf(b, c.schema)), []byte(c.value)
			b.ReportAllocs()
			for b.Loop() {
				expect.NoError(b, s.Fits(value))
			}
		})
	}
}

// TestFitsAllocatesNothing checks that usual objects cause no allocations.
func TestFitsAllocatesNothing(t *testing.T) {
	for schema, value := range map[string]string{
		"{type: string}": `"nginx:1.27"`, "{type: integer}": `8080`,
		"{type: object, properties: {a: {type: string}, b: {type: object, additionalProperties: {type: integer}}}}": `{"a":"b","b":{"c":1,"d":2}}`,
	} {
		s, text := read(t, schemaOf(t, schema)), []byte(value)
		expect.Equal(t, schema+": allocations", 0, testing.AllocsPerRun(100, func() { _ = s.Fits(text) }))
	}
}
