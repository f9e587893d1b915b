// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// FuzzBytes checks that only JSON is converted, and all JSON is converted. Unlike encoding/json,
// the converter refuses text that is not UTF-8, deep nesting, and, in objects that it reads,
// duplicate names.
func FuzzBytes(f *testing.F) {
	c := rich(f)
	for _, seed := range []string{
		`{}`, `[]`, ` {"a":[1,-0,1e+5,0.10,true,false,null,"\u0041é"]} `, `{"a":1,"a":2}`, `{"a":1}x`, `01`, `1.`, `"\x"`, "\"\xff\"", "\"\x01\"",
		`1,"spec":{"hostPort":"a:1","rows":[{"only":1}],"ports":[{"name":"a"}]}`, `"\ud800"`, `[[[[]]]]`, `1,"\u0073pec":null`, `1}`,
		`1,"metadata":{"annotations":{"conversion-operator.io/v1.widgets.example.com":"{\"format\":3,\"rules\":\"\",\"hidden\":{\"/spec/rows/0\":{\"x\":\"a\",\"only\":1}}}"}},"spec":{"rows":[{"x":"a"}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		for _, version := range []string{"v1", "v2", "v3"} {
			for _, text := range []string{string(value), `{"apiVersion":"example.com/` + version + `","kind":"Widget","other":` + string(value) + "}"} {
				for _, to := range []string{"v1", "v2", "v3"} {
					if to != version {
						readsJSON(t, c, text, to)
					}
				}
			}
		}
	})
}

func readsJSON(t *testing.T, c *conversion.Converter, text, to string) {
	t.Helper()
	converted, err := c.Convert(nil, []byte(text), to)
	valid := json.Valid([]byte(text)) && utf8.ValidString(text)
	switch {
	case err == nil && (!valid || !json.Valid(converted)):
		t.Fatalf("%q was converted to %q", text, converted)
	case err != nil && valid && strings.Contains(err.Error(), "invalid JSON") &&
		!strings.Contains(err.Error(), "nested deeper") && !strings.Contains(err.Error(), "is there twice"):
		t.Fatalf("%q was not read: %v", text, err)
	}
}

// nested returns depth nested empty lists or objects.
func nested(open, end string, depth int) string {
	return strings.Repeat(open, depth) + strings.Repeat(end, depth)
}

// TestDeep converts what the API server accepts under
// x-kubernetes-preserve-unknown-fields, be it copied, preserved, compared, or an
// element of a list whose elements are known by what they are.
func TestDeep(t *testing.T) {
	const open = "{x-kubernetes-preserve-unknown-fields: true}"
	item := "{type: object, properties: {a: {type: string}, x: " + open + "}}"
	for name, test := range map[string]struct{ v1, v2, rules, fields string }{
		"copied":    {"a: " + open, "a: " + open, "", `"a":DEEP`},
		"moved":     {"a: " + open, "b: " + open, "{move: {from: .a, to: .b}}", `"a":DEEP`},
		"preserved": {"a: " + open, "b: {type: string}", "", `"a":DEEP`},
		"in a list": {"l: {type: array, items: " + item + "}", "l: {type: array, items: {type: object, properties: {a: {type: string}}}}", "", `"l":[{"a":"1","x":DEEP},{"a":"1"}]`},
		"compared":  {"w: " + open, "l: {type: array, items: " + open + "}", "{each: {from: .w, to: .l}}", `"w":DEEP`},
		"a key": {
			"l: {type: array, items: " + item + "}", "m: {type: object, additionalProperties: {type: object, properties: {x: " + open + "}}}",
			"{each: {from: .l, to: .m, key: a}}", `"l":[{"a":"2","x":DEEP},{"a":"1"}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := converterOf(t, between(t, test.v1, test.v2, test.rules))
			for _, brackets := range [][2]string{{"[", "]"}, {`{"\u0061":[`, "]}"}} {
				depth := (tree.MaxDepth - 10) / len(brackets[1])
				object := widget("v1", strings.Replace(test.fields, "DEEP", nested(brackets[0], brackets[1], depth), 1))
				there := convert(t, c, object, "v2")
				if back := convert(t, c, there, "v1"); !sameJSON(t, object, back) {
					t.Errorf("%d bytes come back as %d: %.200s", len(object), len(back), back)
				}
			}
		})
	}
}
