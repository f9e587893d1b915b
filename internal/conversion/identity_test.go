// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/conversion/internal/generate"
)

// FuzzIdentity: a field that no rule has keeps its bytes, there and back, in the
// object and in every element, next to fields that change.
func FuzzIdentity(f *testing.F) {
	const fields = "x: {type: string}, same: {x-kubernetes-preserve-unknown-fields: true}"
	const elements = "{type: object, properties: {" + fields + ", FIELD: {type: string}}}"
	const schema = fields + `, FIELD: {type: string}, o: {type: object, properties: {` + fields + `, FIELD: {type: string}}},
		l: {type: array, items: ` + elements + `}, m: {type: object, additionalProperties: ` + elements + `},
		k: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [x], items: ` + elements + "}"
	v1 := strings.NewReplacer("\t", " ", "FIELD", "old").Replace(schema)
	v2 := strings.NewReplacer("\t", " ", "FIELD", "new").Replace(schema)
	c := converterOf(f, between(f, v1, v2, `{move: {from: .old, to: .new}}, {move: {from: ".l[*].old", to: ".l[*].new"}}`))
	for seed := range uint64(16) {
		f.Add(seed, []byte{})
	}
	f.Fuzz(func(t *testing.T, seed uint64, choices []byte) {
		g := generate.Objects{Choices: generate.Choose(seed, choices)}
		same := func(name string) string {
			return `{"x":"` + name + `","` + generate.One(g.Choices, "old", "other") + `":"1", "same" :` + string(g.Text(g.Anything(3))) + "}"
		}
		object := widget("v1", `"l":[`+same("1")+`, `+same("2")+`], "k":[`+same("1")+`,`+same("2")+`], "m":{"a\/":`+same("3")+`},"o":`+same("4"))
		there := convert(t, c, object, "v2")
		if want, got := sames(t, object), sames(t, there); !slices.Equal(want, got) {
			t.Fatalf("%s\nis\n%s\nwant %q\ngot  %q", object, there, want, got)
		}
		back := convert(t, c, there, "v1")
		if want, got := sames(t, object), sames(t, back); !slices.Equal(want, got) {
			t.Fatalf("%s\ncame back as\n%s\nwant %q\ngot  %q", object, back, want, got)
		}
	})
}

// sames are the bytes of the fields that stay the same, by where they are.
func sames(t *testing.T, object string) []string {
	t.Helper()
	type element struct{ Same json.RawMessage }
	var fields struct {
		O    element
		L, K []element
		M    map[string]element
	}
	if err := json.Unmarshal([]byte(object), &fields); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, element := range slices.Concat(fields.L, fields.K, []element{fields.M["a/"], fields.O}) {
		all = append(all, string(element.Same))
	}
	return all
}
