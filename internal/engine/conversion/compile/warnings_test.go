// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// required makes a field of an object required, in the text that widgets reads.
func required(field, properties string) string {
	return properties + "}, required: [" + field + "], example: {"
}

// TestWarnings is what is said of two versions and their rules, and nothing more.
func TestWarnings(t *testing.T) {
	requires := func(version, from, fields string) string {
		return version + " requires what an object from " + from + " may lack: " + fields + ": such an object can be read at " + version +
			", and not be written there until it is set: give the field a default in the schema of " + version + ", or by a rule"
	}
	stricter := func(version, from, fields string) string {
		return version + " allows less than " + from + ": " + fields + ": an object from " + from + " that goes beyond can be read at " + version +
			", and not be written there: let the schema of " + version + " allow as much"
	}
	for name, test := range map[string]struct {
		v1, v2, rules string
		want          []string
	}{
		"a loop in a loop": {"a: {type: array, items: {type: string}}", "b: {type: boolean}",
			`{cel: {from: {a: .a}, to: {b: .b}, forward: {b: "self.a.size() > 1 && self.a.all(x, self.a.exists(y, x == y))"}, backward: {a: "[]"}}}`,
			[]string{"the expression spokes[0].rules[0].cel.forward[b] may cost 951047, most of it in self.a.all(x, self.a.exists(y, x == y)), and gives no value if it costs more than 100000: make the expression simpler, or limit what it reads by maxLength, maxItems and maxProperties in the schema"}},
		"an expression in many elements": {"l: {type: array, items: {type: object, properties: {x: {type: string}}}}", "l: {type: array, items: {type: object, properties: {yy: {type: string}}}}",
			`{cel: {from: {x: ".l[*].x"}, to: {yy: ".l[*].yy"}, forward: {yy: "self.x.split(',').map(x, x + self.x).join(',')"}, backward: {x: self.yy}}}`,
			[]string{"the expression spokes[0].rules[0].cel.forward[yy] may cost 86798, most of it in self.x.split(\",\").map(x, x + self.x), for each of up to 128 elements, and an object cannot be converted if its expressions cost more than 5000000: make the expression simpler, or limit what it reads by maxLength, maxItems and maxProperties in the schema"}},
		"nothing":                  {"a: {type: string}", "a: {type: string}, b: {type: string}", "", nil},
		"texts that are preserved": {"a: {type: string}, o: {type: object, properties: {x: {type: string}, y: {type: integer}}}", "b: {type: string}", "", nil},

		"a list that is preserved": {"a: {type: array, items: {type: string}}", "b: {type: string}", "", nil},

		"elements without keys": {
			"l: {type: array, items: {type: object, properties: {x: {type: string}, a: {type: string}}}}", "l: {type: array, items: {type: object, properties: {x: {type: string}, b: {type: string}}}}", "",
			[]string{"the elements of .l have no keys: what is preserved of one (v1:.l[*].a, v2:.l[*].b) is lost once that element is edited in the other version: give the list x-kubernetes-list-type: map and keys, in both versions"},
		},
		"of one shape no more": {
			"a: {type: string}, o: {type: object, properties: {x: {type: array, items: {type: string}}}}", "a: {type: integer}, o: {type: object, additionalProperties: {type: string}}", "",
			[]string{
				"not copied between v1 and v2, each version keeps its own: .a is string on one side and integer on the other, .o is a list or map on one side only: write a rule where one can be made of the other",
			},
		},
		"limits in a moved object": {
			"a: {type: object, required: [x], properties: {x: {type: string, maxLength: 3}, old: {type: string}}}", "b: {type: object, required: [x, new], properties: {x: {type: string}, new: {type: string}}}", `{move: {from: .a, to: .b}}`,
			[]string{
				"v2 requires what an object from v1 may lack: .b.new (v1 does not have it): such an object can be read at v2, and not be written there until it is set: give the field a default in the schema of v2, or by a rule",
				"v1 allows less than v2: .a.x has maxLength 3 (v2: none): an object from v2 that goes beyond can be read at v1, and not be written there: let the schema of v1 allow as much",
			},
		},

		"required, and not there":          {"o: {type: object, properties: {a: {type: string}}}", "o: {type: object, required: [b], properties: {a: {type: string}, b: {type: string}}}", "", []string{requires("v2", "v1", ".o.b (v1 does not have it)")}},
		"required, with a default":         {"a: {type: string}", required("b", "b: {type: string, default: x}"), "", nil},
		"required on one side":             {"a: {type: string}", required("a", "a: {type: string}"), "", []string{requires("v2", "v1", ".a (v1 does not require it)")}},
		"required on both sides":           {required("a", "a: {type: string}"), required("a", "a: {type: string}"), "", nil},
		"defaulted on one side":            {"a: {type: string, default: x}", required("a", "a: {type: string}"), "", nil},
		"required and dropped":             {required("b", "a: {type: string}, b: {type: string}"), "a: {type: string}", "{drop: {from: .b}}", []string{requires("v1", "v2", ".b (spokes[0].rules[0] drops it)")}},
		"required and filled":              {"a: {type: string}", required("b", "a: {type: string}, b: {type: string}"), "{default: {to: .b, value: x}}", nil},
		"required and computed":            {"a: {type: string}", required("b", "b: {type: string}"), "{cel: {from: {a: .a}, to: {b: .b}, forward: {b: self.a}, backward: {a: self.b}}}", []string{requires("v2", "v1", ".b (v1 does not require .a, from which it comes)")}},
		"required and computed of nothing": {"a: {type: string}", required("b", "b: {type: string}"), "{cel: {from: {a: .a}, to: {b: .b}, forward: {b: \"has(self.a) ? self.a : 'x'\"}, backward: {a: self.b}, whenMissing: Evaluate}}", nil},
		"required and moved":               {required("a", "a: {type: string}"), required("b", "b: {type: string}"), "{move: {from: .a, to: .b}}", nil},
		"required where it comes":          {"a: {type: string}", required("b", "b: {type: string}"), "{move: {from: .a, to: .b}}", []string{requires("v2", "v1", ".b (v1 does not require .a, from which it comes)")}},
		"moved out of an object":           {"o: {type: object, required: [a], properties: {a: {type: string}}}", required("b", "b: {type: string}"), "{move: {from: .o.a, to: .b}}", []string{requires("v2", "v1", ".b (v1 does not require .o, from which it comes)")}},
		"moved within an object":           {"o: {type: object, required: [a], properties: {a: {type: string}}}", "o: {type: object, required: [b], properties: {b: {type: string}}}", "{move: {from: .o.a, to: .o.b}}", nil},
		"from a label":                     {"a: {type: string}", required("b", "a: {type: string}, b: {type: string}"), `{move: {from: '.metadata.labels["l"]', to: .b}}`, []string{requires("v2", "v1", `.b (v1 does not require .metadata.labels.l, from which it comes)`)}},
		"printed of nothing":               {required("a", "a: {type: string}"), "h: {type: string}, p: {type: string}", `{format: {from: .a, template: "{h}:{p}", to: {h: .h, p: .p}}}`, []string{requires("v1", "v2", ".a (v2 does not require .h, .p, from which it comes)")}},
		"in a subtree that moves":          {"o: {type: object, properties: {x: {type: string}}}", "p: {type: object, required: [x], properties: {x: {type: string}}}", "{move: {from: .o, to: .p}}", []string{requires("v2", "v1", ".p.x (v1 does not require it)")}},
		"in a list that moves":             {"o: {type: array, items: {type: object, properties: {x: {type: string}}}}", "p: {type: array, items: {type: object, required: [x], properties: {x: {type: string}}}}", "{move: {from: .o, to: .p}}", []string{requires("v2", "v1", ".p[*].x (v1 does not require it)")}},
		"in what comes back whole":         {"a: {type: string}", "a: {type: string}, o: {type: object, required: [x], properties: {x: {type: string}}}", "", nil},
		"in what rules have part of":       {"a: {type: string}", "o: {type: object, required: [x], properties: {x: {type: string}, w: {type: string}}}", "{move: {from: .a, to: .o.w}}", []string{requires("v2", "v1", ".o.x (v1 does not have it)")}},
		"in elements":                      {"l: {type: array, items: {type: object, properties: {a: {type: string}}}}", "l: {type: array, items: {type: object, required: [a], properties: {a: {type: string}}}}", "", []string{requires("v2", "v1", ".l[*].a (v1 does not require it)")}},
		"an object that rules fill":        {"a: {type: string}", required("o", "o: {type: object, properties: {x: {type: string}}}"), "{move: {from: .a, to: .o.x}}", nil},
		"from a list that is not":          {required("a", "a: {type: array, minItems: 1, maxItems: 1, items: {type: string}}"), required("b", "b: {type: string}"), "{each: {from: .a, to: .b}}", nil},
		"objects of values":                {"a: {type: array, items: {type: string}}", "b: {type: array, items: {type: object, required: [k, w, d], properties: {k: {type: string}, w: {type: string}, d: {type: string, default: x}}}}", "{each: {from: .a, to: .b}}, {move: {from: '.a[*]', to: '.b[*].k'}}", []string{requires("v2", "v1", ".b[*].w (v1 does not have it)"), "the elements of .b have no keys: what is preserved of one (v2:.b[*].d, v2:.b[*].w) is lost once that element is edited in the other version: give the list x-kubernetes-list-type: map and keys, in both versions"}},
		"keys and values":                  {"a: {type: object, additionalProperties: {type: string}}", "b: {type: array, items: {type: object, required: [k, v, w], properties: {k: {type: string}, v: {type: string}, w: {type: string}}}}", "{each: {from: .a, to: .b, key: k}}, {move: {from: '.a[*]', to: '.b[*].v'}}", []string{requires("v2", "v1", ".b[*].w (v1 does not have it)")}},
		"from objects without values":      {"a: {type: array, items: {type: object, properties: {k: {type: string}}}}", required("b", "b: {type: array, items: {type: string}}"), "{each: {from: .a, to: .b}}, {move: {from: '.a[*].k', to: '.b[*]'}}", []string{requires("v2", "v1", ".b (v1 does not require .a, from which it comes)")}},
		"shorter in objects":               {"a: {type: array, items: {type: string}}", "b: {type: array, items: {type: object, required: [k], properties: {k: {type: string, maxLength: 5}}}}", "{each: {from: .a, to: .b}}, {move: {from: '.a[*]', to: '.b[*].k'}}", []string{stricter("v2", "v1", ".b[*].k has maxLength 5 (v1: none)")}},
		"indexed by its key":               {required("a", "a: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, properties: {k: {type: string}}}}"), required("b", "b: {type: object, additionalProperties: {type: object}}"), "{each: {from: .a, to: .b, key: k}}", nil},
		"translated and never absent":      {required("a", "a: {type: string}"), required("b", "b: {type: string}"), "{values: {from: .a, to: .b, table: [{from: x, to: y}]}}", nil},

		"shorter":           {"a: {type: string, maxLength: 10, minLength: 1}", "a: {type: string, maxLength: 5, minLength: 2}", "", []string{stricter("v2", "v1", ".a has maxLength 5 (v1: 10), .a has minLength 2 (v1: 1)")}},
		"bounded":           {"a: {type: array, items: {type: string}}, m: {type: object, maxProperties: 2, additionalProperties: {type: string}}", "a: {type: array, maxItems: 5, items: {type: string, minLength: 1}}, m: {type: object, additionalProperties: {type: string}}", "", []string{stricter("v2", "v1", ".a has maxItems 5 (v1: none), .a[*] has minLength 1 (v1: none)"), stricter("v1", "v2", ".m has maxProperties 2 (v2: none)")}},
		"smaller":           {"a: {type: integer, maximum: 10}, b: {type: integer, minimum: 1}, c: {type: number}", "a: {type: integer, maximum: 10, exclusiveMaximum: true}, b: {type: integer, minimum: 2}, c: {type: number, minimum: 0, multipleOf: 0.5}", "", []string{stricter("v2", "v1", ".a has exclusiveMaximum true (v1: none), .b has minimum 2 (v1: 1), .c has minimum 0 (v1: none), .c has multipleOf 0.5 (v1: none)")}},
		"patterns":          {"a: {type: string}, b: {type: string, pattern: x}", "a: {type: string, pattern: x}, b: {type: string, pattern: x}", "", []string{stricter("v2", "v1", `.a has pattern "x" (v1: none)`)}},
		"wider":             {"a: {type: integer, maximum: 10}, b: {type: array, maxItems: 2, items: {type: string}}, c: {type: string, enum: [x]}, d: {type: string, x-kubernetes-validations: [{rule: a}]}", "a: {type: integer, maximum: 11, exclusiveMaximum: true}, b: {type: array, minItems: 0, items: {type: string}}, c: {type: string, enum: [w, x]}, d: {type: string}", "", []string{stricter("v1", "v2", `.a has maximum 10 (v2: 11), .b has maxItems 2 (v2: none), .c has enum ["x"] (v2: ["w","x"]), .d has x-kubernetes-validations ["a"] (v2: none)`)}},
		"a format":          {"a: {type: string, format: date}", "a: {type: string, format: uuid}", "", []string{stricter("v2", "v1", `.a has format "uuid" (v1: "date")`), stricter("v1", "v2", `.a has format "date" (v2: "uuid")`)}},
		"fewer values":      {"a: {type: string, enum: [x, w]}, b: {type: string}", "a: {type: string, enum: [x]}, b: {type: string, enum: [z]}", "", []string{stricter("v2", "v1", `.a has enum ["x"] (v1: ["x","w"]), .b has enum ["z"] (v1: none)`)}},
		"a list of another": {"a: {type: array, items: {type: string}}", "a: {type: array, x-kubernetes-list-type: set, items: {type: string}}", "", []string{stricter("v2", "v1", `.a has x-kubernetes-list-type "set" (v1: none)`)}},
		"with keys":         {"a: {type: array, items: {type: object, properties: {k: {type: string}}}}", "a: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, properties: {k: {type: string}}}}", "", []string{stricter("v2", "v1", `.a has x-kubernetes-list-map-keys ["k"] (v1: none), .a has x-kubernetes-list-type "map" (v1: none)`)}},
		"a validation":      {"a: {type: string}", "a: {type: string, x-kubernetes-validations: [{rule: 'self != \"\"'}]}", "", []string{stricter("v2", "v1", `.a has x-kubernetes-validations ["self != \"\""] (v1: none)`)}},
		"a long validation": {"a: {type: string}", "a: {type: string, x-kubernetes-validations: [{rule: 'self != \"0123456789012345678901234567890123456789012345678901234567890123456789\"'}]}", "", []string{stricter("v2", "v1", `.a has x-kubernetes-validations ["self != \"012345678901234567890123456789012345678901234567... (v1: none)`)}},
		"another condition": {"a: {type: string}", "a: {type: string, anyOf: [{pattern: x}, {pattern: z}]}", "", []string{stricter("v2", "v1", `.a has anyOf [{"pattern":"x"},{"pattern":"z"}] (v1: none)`)}},
		"what moves":        {"a: {type: object, properties: {x: {type: string}}}", "b: {type: object, properties: {x: {type: string, maxLength: 1}}}", "{move: {from: .a, to: .b}}", []string{stricter("v2", "v1", ".b.x has maxLength 1 (v1: none)")}},
		"what is wrapped":   {"a: {type: string}, c: {type: array, items: {type: string}}", "b: {type: array, items: {type: string, maxLength: 1}}, d: {type: string, maxLength: 2}", "{each: {from: .a, to: .b}}, {each: {from: .c, to: .d}}", []string{stricter("v2", "v1", ".b[*] has maxLength 1 (v1: none), .d has maxLength 2 (v1: none)")}},
		"not what is apart": {"a: {type: string}", "a: {type: string, maxLength: 1}, b: {type: string}", "{drop: {from: .a}}, {drop: {to: .a}}", nil},
		"more than a few":   {"a: {type: string}, b: {type: string}, c: {type: string}", "a: {type: string, maxLength: 1, minLength: 1}, b: {type: string, maxLength: 1, minLength: 1}, c: {type: string, maxLength: 1, minLength: 1}", "", []string{stricter("v2", "v1", ".a has maxLength 1 (v1: none), .a has minLength 1 (v1: none), .b has maxLength 1 (v1: none), .b has minLength 1 (v1: none), .c has maxLength 1 (v1: none) and 1 more")}},
		"no null":           {"o: {type: object, additionalProperties: {type: object, properties: {a: {type: string, nullable: true}}}}, b: {type: string, nullable: true}", "p: {type: object, properties: {a: {type: string}}}, b: {type: string, default: x}", `{move: {from: '.o["k"]', to: .p}}`, []string{stricter("v2", "v1", ".p.a has no null (v1: null, which API servers remove)")}},
	} {
		t.Run(name, func(t *testing.T) {
			result := between(t, test.v1, test.v2, test.rules)
			converterOf(t, result)
			expect.Equal(t, "result.Warnings", test.want, result.Warnings)
		})
	}
}
