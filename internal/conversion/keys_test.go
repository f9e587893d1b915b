// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"fmt"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/conversion/internal/generate"
)

// TestKeysBehindAKey edits one field of an element of a list with keys, in a place
// that rules reach in every way: all else stays as it is, what is kept aside too.
func TestKeysBehindAKey(t *testing.T) {
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
			object := func(version, kept, note, first, second string) string {
				return annotated(version, kept, test.open+`[{"name":"a","note":"`+note+`",`+first+`},{"name":"b",`+second+`}]`+test.end)
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
			if got := convert(t, c, generate.Plain(edited), "v1"); !sameJSON(t, want, got) {
				t.Errorf("after an edit of note in\n%s\nit is\n%s\nwant\n%s", there, got, want)
			}
		})
	}
}
