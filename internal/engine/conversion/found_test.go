// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"testing"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// TestFound has objects that fuzzers found to come back changed, in the smallest world where they
// did.
func TestFound(t *testing.T) {
	const anything = "{type: object, x-kubernetes-preserve-unknown-fields: true}"
	for name, test := range map[string]struct {
		v1, v2, v3, rules, rules3 string
		from, to                  string
		// preserved is of the other version. It may be empty.
		preserved, object string
	}{
		"elements without a key are not all the same one": {
			v1:   "b: {type: array, items: {type: object, properties: {x: {type: string}}}}",
			v2:   "b: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, properties: {name: {type: string}, x: {type: string}}}}",
			v3:   "b: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, properties: {name: {type: string}}}}",
			from: "v1", to: "v3", object: `"b":[{},{"x":""}]`,
		},
		"an object that only looks like that of the other side": {
			v1: "e: {type: object, x-kubernetes-embedded-resource: true}", v2: "e: {type: object, properties: {c: {type: integer}}}",
			rules: `{cast: {from: '.metadata.labels["l"]', to: .e.c, as: Seconds}}`,
			from:  "v2", to: "v1", object: `"e":{"c":9007199254740993}`,
		},
		"an object in a map that is there for a value alone": {
			v1:    "e: {type: object, additionalProperties: {type: object, properties: {b: {type: integer}}}}",
			v2:    "e: {type: object, additionalProperties: {type: object, properties: {b: {type: integer}}}}, c: {type: integer}",
			rules: `{move: {from: '.e["cpu"].b', to: .c}}`,
			from:  "v2", to: "v1", object: `"c":1`,
		},
		"a field without a schema where the other side has a rule": {
			v1: "f: {type: object, properties: {b: {type: integer}}}", v2: "f: " + anything,
			rules: `{cast: {from: .f.b, to: '.metadata.labels["l"]', as: Integer}}`,
			from:  "v2", to: "v1", object: `"f":{"b":null}`,
		},
		"a field without a schema where the other side has a default in it": {
			v1: "s: " + anything, v2: "s: {type: object, properties: {e: {type: object, properties: {f: {type: string}}}}}",
			rules: `{default: {to: .s.e.f, value: a}}`,
			from:  "v1", to: "v2", object: `"s":{}`,
		},
		"a null for a list that had an order": {
			v1:    "b: {type: object, nullable: true, additionalProperties: {type: object, properties: {g: {type: string}}}}",
			v2:    "b: {type: array, nullable: true, items: {type: object, properties: {a: {type: integer}, g: {type: string}}}}",
			rules: `{each: {from: .b, to: .b, key: a}}`,
			from:  "v1", to: "v2", preserved: `v2 {"#/b":[2,1]}`, object: `"b":null`,
		},
		"a null for a list whose element has something preserved for another version": {
			v1:     "s: {type: object, properties: {e: {type: string}}}",
			v2:     "s: {type: object, properties: {f: {type: string}}}",
			v3:     "s: {type: array, items: {type: object, properties: {f: {type: string}}}}",
			rules3: `{each: {from: .s, to: .s}}`,
			from:   "v3", to: "v1", preserved: `v1 {"/s/e":"x"}`, object: `"s":null`,
		},
		"a null for an object with other fields, which something is preserved in": {
			v1:    "s: {type: object, nullable: true, properties: {e: {type: boolean}}}",
			v2:    "s: {type: object, properties: {d: {type: boolean}}}",
			v3:    "s: {type: object, properties: {d: {type: boolean}, h: {type: string}}}",
			rules: `{default: {from: .s.e, value: true}}`,
			from:  "v1", to: "v3", preserved: `v3 {"/s/h":"x"}`, object: `"s":null`,
		},
		"a list that should be a map": {
			v1:   "m: {type: object, additionalProperties: {type: object, properties: {s: {type: string}}}}",
			v2:   "m: {type: object, additionalProperties: {type: object, properties: {x: {type: string}}}}",
			from: "v1", to: "v2", object: `"m":[{"s":"1"},{"s":"2"}]`,
		},
		"a text that cannot be a label, and is said to have been one": {
			v1: "a: {type: string}", v2: "b: {type: string}",
			rules: `{move: {from: .a, to: '.metadata.labels["l"]'}}`,
			from:  "v1", to: "v2", preserved: `v2 {"/metadata/labels/l":"two words"}`, object: `"a":"two words"`,
		},
		"an absence of a third version, below an object that exists only for a moved value": {
			v1:     "s: {type: object, properties: {b: {type: integer}}}",
			v2:     "s: {type: object, properties: {e: {type: string}}}, t: {type: string}",
			v3:     "s: {type: object, properties: {e: {type: string}, d: {type: string}}}",
			rules:  `{cel: {from: {b: .s.b}, to: {t: .t}, whenMissing: Evaluate, forward: {t: "has(self.b) ? 'some' : 'none'"}, backward: {b: "has(self.t) ? 1 : 0"}}}`,
			rules3: `{move: {from: .s.d, to: .t}}`,
			from:   "v1", to: "v3", object: ``,
		},
		"an element of a fragment, which lacks a default": {
			v1:    "l: {type: array, items: {type: object, properties: {x: {type: string}, w: {type: integer}, d: {type: string}}}}",
			v2:    "l: {type: array, items: {type: object, properties: {x: {type: string}, w: {type: array, items: {type: integer}}, own: {type: integer}}}}",
			rules: `{each: {from: ".l[*].w", to: ".l[*].w"}}, {default: {from: ".l[*].d", value: a}}`,
			from:  "v1", to: "v2", preserved: `v2 {"/l/0":{"x":"1","w":[9,9],"own":1},"@/l/0":` + digest(`{"w":9,"x":"1"}`) + `}`, object: `"l":[{"x":"1","w":9}]`,
		},
		"a constant of a field whose counterpart is in an object that is preserved": {
			v1: "d: {type: integer}", v2: "d: {type: object, properties: {x: {type: integer}}}",
			rules: `{cel: {from: {d: .d}, to: {x: .d.x}, whenMissing: Evaluate, forward: {x: optional.none()}, backward: {d: "80"}}}`,
			from:  "v1", to: "v2", preserved: `v2 {"/d":2}`, object: `"d":80`,
		},
		"a constant of a field whose counterpart is in an object that comes back": {
			v1: "d: {type: integer}, s: {type: string}", v2: "d: {type: string}, s: {type: object, properties: {e: {type: string}}}",
			rules: `{cel: {from: {d: .d}, to: {e: .s.e}, whenMissing: Evaluate, forward: {e: optional.none()}, backward: {d: "1"}}}`,
			from:  "v2", to: "v1", object: `"d":"x","s":{}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			versions, spokes := map[string]string{"v1": test.v1, "v2": test.v2}, ""
			if test.v3 != "" {
				versions["v3"], spokes = test.v3, ", {version: v3, rules: ["+test.rules3+"]}"
			}
			rules := from[v1alpha1.DeclarativeConverter](t, "{hub: v2, spokes: [{version: v1, rules: ["+test.rules+"]}"+spokes+"]}")
			w := worldOf(t, widgets(t, versions), rules)
			object := named(test.from, test.preserved, test.object)
			if test.preserved == "" {
				w.roundTrip(t, object, test.from, test.to)
			}
			w.editWins(t, object, test.from, test.to)
			wantAccepted(t, object, convert(t, w.converter, object, test.to), test.to)
		})
	}
}

// TestFoundDeleted deletes an object at v1 of which fields are still preserved, of v1 and of the hub: it does not come
// back empty from v3.
func TestFoundDeleted(t *testing.T) {
	w := worldOf(t, widgets(t, map[string]string{
		"v1": "s: {type: object, properties: {b: {type: string}}}",
		"v2": "s: {type: object, properties: {b: {type: integer}, h: {type: integer}}}",
		"v3": "s: {type: object, properties: {b: {type: string}, h: {type: integer}}}",
	}), from[v1alpha1.DeclarativeConverter](t, "{hub: v2, spokes: [{version: v1}, {version: v3}]}"))
	object := `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"annotations":{` +
		`"conversion-operator.io/v1.widgets.example.com":"{\"format\":3,\"rules\":\"\",\"hidden\":{\"/s/b\":\"x\"}}",` +
		`"conversion-operator.io/v2.widgets.example.com":"{\"format\":3,\"rules\":\"\",\"hidden\":{\"/s/h\":0}}"}}}`
	w.editWins(t, object, "v1", "v3")
}
