// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/internal/generate"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestIdentity checks that a ruleset is the identity only if it changes no object.
func TestIdentity(t *testing.T) {
	const x = "x: {type: string}"
	cases := map[string]struct {
		v1, v2, rules string
		want          bool
	}{
		"the same":                       {x, x, "", true},
		"the same, told differently":     {x, "x: {type: string, description: what it is, maxLength: 3}", "", true},
		"the same, in elements":          {"l: {type: array, items: {type: object, properties: {x: {type: string}}}}", "l: {type: array, items: {type: object, properties: {x: {type: string}}}}", "", true},
		"a field more":                   {x, x + ", y: {type: string}", "", false},
		"a field less":                   {x + ", y: {type: string}", x, "", false},
		"another type":                   {x, "x: {type: integer}", "", false},
		"a field more, in elements":      {"l: {type: array, items: {type: object, properties: {x: {type: string}}}}", "l: {type: array, items: {type: object, properties: {x: {type: string}, y: {type: string}}}}", "", false},
		"anything on one side":           {"x: {type: object}", "x: {type: object, x-kubernetes-preserve-unknown-fields: true}", "", false},
		"null on one side":               {x, "x: {type: string, nullable: true}", "", false},
		"a rule between the same fields": {x, x, `{values: {from: .x, to: .x, table: [{from: a, to: b}]}}`, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			result := between(t, c.v1, c.v2, c.rules)
			if result.Ruleset == nil {
				t.Fatalf("the rules are refused: %v", result.Errors)
			}
			expect.Equal(t, fmt.Sprintf("identity of %+v", result.Ruleset.Spokes), c.want, result.Ruleset.Identity())
		})
	}
}

// TestLoad checks that a ruleset of another version of the program is refused: it may say what this one does not know.
func TestLoad(t *testing.T) {
	text := string(must(between(t, "a: {type: string}", "b: {type: string}", "{move: {from: .a, to: .b}}").Ruleset.Marshal()))
	for name, c := range map[string]struct{ old, new, want string }{
		"the same":         {"", "", "<nil>"},
		"another format":   {fmt.Sprintf(`"format":%d`, conversion.RulesetFormat), `"format":1`, "has format 1"},
		"an unknown field": {`"moves"`, `"moved"`, `unknown field "moved"`},
		"a part of it":     {`}]}`, ``, "the ruleset is not readable"},
	} {
		_, err := conversion.Load([]byte(strings.Replace(text, c.old, c.new, 1)))
		expect.Contains(t, name, fmt.Sprint(err), c.want)
	}
}

func must(text []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return text
}

// FuzzIdentity checks that a field without a rule keeps its bytes there and back, in the object and
// in elements, next to fields that change.
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
		if want, got := sameFields(t, object), sameFields(t, there); !slices.Equal(want, got) {
			t.Fatalf("%s\nis\n%s\nwant %q\ngot  %q", object, there, want, got)
		}
		back := convert(t, c, there, "v1")
		if want, got := sameFields(t, object), sameFields(t, back); !slices.Equal(want, got) {
			t.Fatalf("%s\ncame back as\n%s\nwant %q\ngot  %q", object, back, want, got)
		}
	})
}

// sameFields returns the bytes of the fields named same.
func sameFields(t *testing.T, object string) []string {
	t.Helper()
	type element struct{ Same json.RawMessage }
	var fields struct {
		O    element
		L, K []element
		M    map[string]element
	}
	expect.NoError(t, json.Unmarshal([]byte(object), &fields))
	var all []string
	for _, element := range slices.Concat(fields.L, fields.K, []element{fields.M["a/"], fields.O}) {
		all = append(all, string(element.Same))
	}
	return all
}
