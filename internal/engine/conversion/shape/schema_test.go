// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape_test

import (
	"encoding/json"
	"slices"
	"sync"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func TestWalk(t *testing.T) {
	s := read(t, schemaOf(t, `{type: object, properties: {
		ports: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}}}},
		labels: {type: object, additionalProperties: {type: string}},
		free: {x-kubernetes-preserve-unknown-fields: true, type: array, items: {type: object, properties: {a: {type: integer}}}},
		open: {type: object, additionalProperties: true},
		embedded: {type: object, x-kubernetes-embedded-resource: true, properties: {metadata: {type: object}, spec: {type: object}}},
		size: {type: integer}}}`))
	if s.Kind != shape.ObjectKind || s.IsMap() || s.IsNullable() {
		t.Error("the root is an object with fields")
	}
	if s.Field("none") != nil || s.Field("size").Field("a") != nil || s.Field("size").Items() != nil {
		t.Error("what the API server prunes has a schema")
	}
	if ports := s.Field("ports"); ports.Kind != shape.ArrayKind || !slices.Equal(ports.Keys(), []string{"name"}) || ports.Items().Field("name") == nil {
		t.Error("ports is a list with the key name")
	}
	if labels := s.Field("labels"); !labels.IsMap() || fits(labels.Field("any"), []byte(`1`)) == nil || labels.Keys() != nil {
		t.Error("labels is a map of strings")
	}
	element := s.Field("free").Items()
	if fits(element.Field("z"), []byte(`{"y":null}`)) != nil || fits(element.Field("a"), []byte(`"a"`)) == nil {
		t.Error("the elements of a list that preserves hold anything, but what they declare is of its type")
	}
	if open := s.Field("open").Field("x"); fits(open, []byte(`[null,1,{}]`)) != nil || fits(open, []byte(`{"a":1}`)) == nil || open.Field("a") != nil {
		t.Error("the API server prunes objects under additionalProperties: true")
	}
	if meta := s.Field("embedded").Field("metadata"); fits(meta, []byte(`{"labels":{"a":"b"}}`)) != nil || meta.Field("labels") == nil || fits(meta, []byte(`{"labels":1}`)) == nil {
		t.Error("the metadata of an embedded object holds what metadata does")
	}
}

func TestSample(t *testing.T) {
	for text, want := range map[string]string{
		"{type: integer}": `80`, "{type: number}": `80`, "{type: boolean}": `true`, "{type: string}": `"80"`, "{}": `"80"`,
		"{type: array, items: {type: string}}": `["80"]`, "{type: object, additionalProperties: {type: string}}": `{"sample":"80"}`,
		"{x-kubernetes-int-or-string: true}": `"80"`, "{type: object, x-kubernetes-preserve-unknown-fields: true}": `{}`,
		"{type: object, properties: {name: {type: string}, port: {type: integer, maximum: 9}, tags: {type: array, items: {type: string, enum: [x]}}}}": `{"name":"80","port":9,"tags":["x"]}`,
		"{type: array, items: {type: string, format: duration}}":                         `["1s"]`,
		"{type: string, format: date-time}":                                              `"2006-01-02T15:04:05Z"`,
		"{type: string, format: date}":                                                   `"2006-01-02"`,
		"{type: string, format: byte}":                                                   `"ODA="`,
		"{type: string, maxLength: 1}":                                                   `"a"`,
		"{type: object, required: [a], properties: {a: {type: string, pattern: '^b$'}}}": ``,
	} {
		a := tree.NewArena()
		got := ""
		if sample := read(t, schemaOf(t, text)).Sample(a, a.NewText("80")); sample != nil {
			got = string(sample.JSON())
		}
		expect.Equal(t, "sample of "+text, want, got)
	}
}

func TestReadRefuses(t *testing.T) {
	for _, text := range []string{``, `null`, `[]`, `{"t":"q"}`, `{"t":"s"`, `{"new":1}`, `{"p":{"a":null}}`, `{"all":[null]}`, `{} {}`} {
		if _, err := shape.Read(json.RawMessage(text)); err == nil {
			t.Errorf("%s was read", text)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	s := read(t, schemaOf(t, `{type: array, items: {type: object, required: [a], properties: {a: {type: object, default: {b: x}, properties: {b: {type: string, default: q, pattern: '^.$'}}}}, oneOf: [{required: [a]}]}}`))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				if err := fits(s, []byte(`[{},{"a":{}},{"a":{"b":"z"}}]`)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
