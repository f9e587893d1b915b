// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"encoding/json"
	"testing"

	"github.com/google/cel-go/common/types"
	"github.com/google/go-cmp/cmp"
)

// A schema that went through its shape gives the same shape, and says the same
// of values.
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
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("shape of %s (-want +got):\n%s", text, diff)
		}
		read, err := ReadShape(got)
		if err != nil {
			t.Errorf("ReadShape(%s): %v", got, err)
			continue
		}
		again, err := Shape(read)
		if diff := cmp.Diff(string(got), string(again)); err != nil || diff != "" {
			t.Errorf("shape of the shape of %s (-want +got):\n%s%v", text, diff, err)
		}
	}
}

func TestReadShapeRefuses(t *testing.T) {
	for _, text := range []string{``, `[]`, `{"type":"array","items":[{"type":"string"}]}`, `{"type":7}`} {
		if s, err := ReadShape(json.RawMessage(text)); err == nil {
			t.Errorf("%s is %v", text, s)
		}
	}
}

func TestSample(t *testing.T) {
	for text, want := range map[string]string{
		integer: `80`, double: `80`, boolean: `true`, text: `"80"`, texts: `["80"]`, textMap: `{"sample":"80"}`, open: `80`, either: `80`,
		port: `{"name":"80","port":80,"tags":["80"]}`,
		`{type: array, items: {type: string, format: duration}}`: `["1m0s"]`,
		`{type: string, format: date-time}`:                      `"2006-01-02T15:04:05Z"`,
		`{type: string, format: date}`:                           `"2006-01-02"`,
		`{type: string, format: byte}`:                           `"ODA="`,
	} {
		s := structural(t, text)
		got := Sample(s)
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("sample of %s (-want +got):\n%s", text, diff)
		}
		if s.Type != "" && types.IsError(read(got, s)) {
			t.Errorf("%s is no value of %s", got, text)
		}
	}
}
