// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

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
