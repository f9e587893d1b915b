// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/internal/generate"
)

// TestFieldsOfTheSameName covers fields that both versions have, or may have, at the same path and
// that are not the same field: each version preserves its own, in whole objects and in fragments,
// and an edit of one does not change the other.
func TestFieldsOfTheSameName(t *testing.T) {
	const open = "{type: object, x-kubernetes-preserve-unknown-fields: true"
	for name, test := range map[string]struct {
		v1, v2, rules string
		// The object of version from is there at the other version; edited there, it is back.
		from, object, there, edited, back string
	}{
		"the hub's namesake": {
			"a: {type: string}", "a: {type: string}, b: {type: string}", "{move: {from: .a, to: .b}}",
			"v2", `"a":"1","b":"2"`, annotated("v1", `v2 {"/a":"1"}`, `"a":"2"`),
			annotated("v1", `v2 {"/a":"1"}`, `"a":"3"`), widget("v2", `"b":"3","a":"1"`),
		},
		"the hub's namesake alone": {
			"a: {type: string}", "a: {type: string}, b: {type: string}", "{move: {from: .a, to: .b}}",
			"v2", `"a":"1"`, annotated("v1", `v2 {"/a":"1"}`, ""),
			annotated("v1", `v2 {"/a":"1"}`, `"a":"3"`), widget("v2", `"b":"3","a":"1"`),
		},
		"a namesake of another type": {
			"a: {type: string}", "a: {type: array, items: {type: string}}, b: {type: string}", "{move: {from: .a, to: .b}}",
			"v2", `"a":["1"],"b":"2"`, annotated("v1", `v2 {"/a":["1"]}`, `"a":"2"`),
			annotated("v1", `v2 {"/a":["1"]}`, ""), widget("v2", `"a":["1"]`),
		},
		"a namesake without a schema": {
			"o: {type: object, properties: {a: {type: string}}}", "o: " + open + "}, b: {type: string}", "{move: {from: .o.a, to: .b}}",
			"v2", `"o":{"a":"1"},"b":"2"`, annotated("v1", `v2 {"/o/a":"1"}`, `"o":{"a":"2"}`),
			annotated("v1", `v2 {"/o/a":"1"}`, `"o":{"a":"3"}`), widget("v2", `"o":{"a":"1"},"b":"3"`),
		},
		"where both say little": {
			"o: " + open + ", properties: {a: {type: string}}}", "o: " + open + "}, b: {type: string}", "{move: {from: .o.a, to: .b}}",
			"v2", `"o":{"a":"1","x":"0"},"b":"2"`, annotated("v1", `v2 {"/o/a":"1"}`, `"o":{"x":"0","a":"2"}`),
			annotated("v1", `v2 {"/o/a":"1"}`, `"o":{"x":"9"}`), widget("v2", `"o":{"x":"9","a":"1"}`),
		},
		"the object around it": {
			"o: {type: object, properties: {p: {type: object, properties: {a: {type: string}, z: {type: string}}}}}", "o: " + open + "}, b: {type: string}", "{move: {from: .o.p.a, to: .b}}",
			"v2", `"o":{"p":"text","q":"1"},"b":"2"`, annotated("v1", `v2 {"/o/p":"text","/o/q":"1"}`, `"o":{"p":{"a":"2"}}`),
			annotated("v1", `v2 {"/o/p":"text","/o/q":"1"}`, `"o":{"p":{"a":"3","z":"4"}}`), annotated("v2", `v1 {"/o/p/z":"4"}`, `"o":{"p":"text","q":"1"},"b":"3"`),
		},
		"a default where the hub says little": {
			"o: {type: object, properties: {p: {type: object, properties: {d: {type: boolean}}}}}", "o: " + open + "}", "{default: {from: .o.p.d, value: true}}",
			"v2", `"o":{"b":"1"}`, annotated("v1", `v2 {"/o/b":"1"}`, `"o":{"p":{"d":true}}`),
			annotated("v1", `v2 {"/o/b":"1"}`, `"o":{"p":{"d":true}}`), widget("v2", `"o":{"b":"1"}`),
		},
		"a key of maps in elements": {
			"m: {type: object, additionalProperties: {type: object, properties: {a: {type: object, additionalProperties: {type: string}}, b: {type: string}}}}",
			"m: {type: object, additionalProperties: {type: object, properties: {a: {type: object, additionalProperties: {type: string}}, b: {type: string}}}}", `{move: {from: '.m[*].a["x"]', to: '.m[*].b'}}, {drop: {from: ".m[*].b"}}`,
			"v2", `"m":{"k":{"a":{"x":"1","z":"2"}}}`, annotated("v1", `v2 {"/m/k/a/x":"1"}`, `"m":{"k":{"a":{"z":"2"}}}`),
			annotated("v1", `v2 {"/m/k/a/x":"1"}`, `"m":{"k":{"a":{"z":"3","x":"4"}}}`), widget("v2", `"m":{"k":{"a":{"z":"3","x":"1"},"b":"4"}}`),
		},
		"a key of which rules have a part": {
			"m: {type: object, additionalProperties: {type: object, properties: {x: {type: string}, z: {type: string}}}}, c: {type: string}",
			"m: {type: object, additionalProperties: {type: object, properties: {x: {type: string}, z: {type: string}}}}, b: {type: object, properties: {x: {type: string}, z: {type: string}}}", `{move: {from: '.m["k"]', to: .b}}, {move: {from: .c, to: '.m["k"].x'}}`,
			"v2", `"b":{"x":"3"},"m":{"k":{"x":"1","z":"2"}}`, annotated("v1", `v2 {"/m/k/z":"2"}`, `"m":{"k":{"x":"3"}},"c":"1"`),
			annotated("v1", `v2 {"/m/k/z":"2"}`, `"m":{"k":{"x":"4"}},"c":"5"`), widget("v2", `"b":{"x":"4"},"m":{"k":{"x":"5","z":"2"}}`),
		},
		"another object above": {
			"o: " + open + ", properties: {a: {type: string}}}", "o: " + open + ", x-kubernetes-embedded-resource: true}, b: {type: string}, c: {type: integer}", `{format: {from: .o.a, template: "{b}:{c}", to: {b: .b, c: .c}}}`,
			"v1", `"o":{"a":"007"}`, annotated("v2", `v1 {"/o/a":"007"}`, ""),
			annotated("v2", `v1 {"/o/a":"007"}`, `"o":{"kind":"X"}`), annotated("v1", `v2 {"/o":{"kind":"X"}}`, `"o":{"a":"007"}`),
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := converterOf(t, between(t, test.v1, test.v2, test.rules))
			for _, whole := range []bool{false, true} {
				object, want, edited, back := widget(test.from, test.object), test.there, test.edited, test.back
				if !whole && strings.Contains(test.rules, "default") {
					continue // only whole objects are filled
				}
				if whole {
					object, want, edited, back = withName(object), withName(want), withName(edited), withName(back)
				}
				wantConverted(t, c, object, other(test.from), want)
				wantConverted(t, c, want, test.from, object)
				wantConverted(t, c, edited, test.from, back)
			}
		})
	}
}

// withName makes a fragment a whole object.
func withName(object string) string {
	return strings.Replace(strings.Replace(object, `"metadata":{`, `"metadata":{"name":"w",`, 1), `,}`, `}`, 1)
}

// TestKeyedListsInMaps edits one field of an element of a list with keys, in maps that rules go
// through in every way: all other fields, and preserved data, stay unchanged.
func TestKeyedListsInMaps(t *testing.T) {
	const list = "{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, note: {type: string}, %s}}}"
	spoke, hub := fmt.Sprintf(list, "timeout: {type: string}"), fmt.Sprintf(list, "seconds: {type: integer}")
	same := fmt.Sprintf(list, "timeout: {type: string}, seconds: {type: integer}")
	pools := func(list string) string { return "pools: {type: object, additionalProperties: " + list + "}" }
	deeper := func(list string) string {
		return "pools: {type: object, additionalProperties: {type: object, additionalProperties: " + list + "}}"
	}
	const both = "{cast: {from: '%[1]s[*].timeout', to: '%[1]s[*].seconds', as: Seconds}}"
	const drops = ", {drop: {to: '%[1]s[*].timeout'}}, {drop: {from: '%[1]s[*].seconds'}}"
	for name, test := range map[string]struct{ v1, v2, rules, path, open, end string }{
		"all values":       {pools(spoke), pools(hub), both, ".pools[*]", `"pools":{"default":`, `}`},
		"one value":        {pools(same), pools(same), both + drops, `.pools["default"]`, `"pools":{"default":`, `}`},
		"one in one value": {deeper(same), deeper(same), both + drops, `.pools["a"]["b"]`, `"pools":{"a":{"b":`, `}}`},
		"one in all":       {deeper(same), deeper(same), both + drops, `.pools[*]["b"]`, `"pools":{"a":{"b":`, `}}`},
		"no map":           {"pools: " + spoke, "pools: " + hub, both, ".pools", `"pools":`, ``},
	} {
		t.Run(name, func(t *testing.T) {
			c := converterOf(t, between(t, test.v1, test.v2, fmt.Sprintf(test.rules, test.path)))
			object := func(version, preserved, note, first, second string) string {
				return annotated(version, preserved, test.open+`[{"name":"a","note":"`+note+`",`+first+`},{"name":"b",`+second+`}]`+test.end)
			}
			there := convert(t, c, object("v1", "", "1", `"timeout":"90s"`, `"timeout":"never"`), "v2")
			edited := decode(t, there)
			element := edited["pools"]
			for {
				if list, isList := element.([]any); isList {
					list[0].(map[string]any)["note"] = "2"
					break
				}
				for _, value := range element.(map[string]any) {
					element = value
				}
			}
			want := object("v1", "", "2", `"timeout":"90s"`, `"timeout":"never"`)
			wantConverted(t, c, generate.Plain(edited), "v1", want)
		})
	}
}
