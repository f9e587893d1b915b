// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"testing"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestPartlyPreserved checks which rules may preserve single values, of the spoke and of the hub.
func TestPartlyPreserved(t *testing.T) {
	const both = "spoke and hub"
	for name, test := range map[string]struct{ v1, v2, rule, want string }{
		"a move":                   {"a: {type: string}", "b: {type: string}", "{move: {from: .a, to: .b}}", ""},
		"a move to a label":        {"a: {type: string}", "b: {type: string}", `{move: {from: .a, to: '.metadata.labels["l"]'}}`, "spoke"},
		"a move from a label":      {"a: {type: string}", "b: {type: string}", `{move: {from: '.metadata.labels["l"]', to: .b}}`, "hub"},
		"a move to an annotation":  {"a: {type: string}", "b: {type: string}", `{move: {from: .a, to: '.metadata.annotations["l"]'}}`, ""},
		"a null to an annotation":  {"a: {type: string, nullable: true}", "b: {type: string}", `{move: {from: .a, to: '.metadata.annotations["l"]'}}`, "spoke"},
		"a table of any text":      {"a: {type: string}", "b: {type: string}", "{values: {from: .a, to: .b, table: [{from: p, to: q}]}}", both},
		"a table, one to one":      {"a: {type: string, enum: [p, r]}", "b: {type: string, enum: [q, r]}", "{values: {from: .a, to: .b, table: [{from: p, to: q}]}}", ""},
		"a table, many to one":     {"a: {type: string, enum: [p, r]}", "b: {type: string, enum: [q]}", "{values: {from: .a, to: .b, table: [{from: p, to: q}, {from: r, to: q}]}}", "spoke"},
		"a table that misses one":  {"a: {type: string, enum: [p]}", "b: {type: string, enum: [p, q]}", "{values: {from: .a, to: .b, table: [{from: p, to: q}]}}", "hub"},
		"a table of a boolean":     {"a: {type: boolean}", "b: {type: string}", `{values: {from: .a, to: .b, table: [{from: "true", to: q}, {from: "false", to: r}]}}`, "hub"},
		"a table of two booleans":  {"a: {type: boolean}", "b: {type: boolean}", `{values: {from: .a, to: .b, table: [{from: "true", to: "false"}, {from: "false", to: "true"}]}}`, ""},
		"a boolean and an enum":    {"a: {type: boolean}", "b: {type: string, enum: [q, r]}", `{values: {from: .a, to: .b, table: [{from: "true", to: q}, {from: "false", to: r}]}}`, ""},
		"a table of one boolean":   {"a: {type: boolean}", "b: {type: string, enum: [q]}", `{values: {from: .a, to: .b, table: [{from: "true", to: q}]}}`, "spoke"},
		"a table of integers":      {"a: {type: integer, enum: [1, 2]}", "b: {type: integer}", `{values: {from: .a, to: .b, table: [{from: "1", to: "3"}]}}`, "hub"},
		"a quantity in range":      {"a: {type: string}", "b: {type: integer, minimum: 0, maximum: 1000000}", "{cast: {from: .a, to: .b, as: Quantity, unit: Ti}}", "spoke"},
		"a quantity of any size":   {"a: {type: string}", "b: {type: integer}", "{cast: {from: .a, to: .b, as: Quantity, unit: Ti}}", both},
		"a number":                 {"a: {type: number, minimum: 0, maximum: 1}", "b: {type: string}", "{cast: {from: .a, to: .b, as: Number}}", both},
		"a list":                   {"a: {type: string}", "b: {type: array, items: {type: string}}", "{each: {from: .a, to: .b}}", "hub"},
		"a list of one":            {"a: {type: array, minItems: 1, maxItems: 1, items: {type: string}}", "b: {type: string}", "{each: {from: .a, to: .b}}", ""},
		"a list of one or null":    {"a: {type: array, minItems: 1, maxItems: 1, items: {type: string, nullable: true}}", "b: {type: string, nullable: true}", "{each: {from: .a, to: .b}}", "spoke"},
		"an integer":               {"a: {type: integer}", "b: {type: string}", "{cast: {from: .a, to: .b, as: Integer}}", both},
		"an integer in range":      {"a: {type: integer, minimum: 0, maximum: 100}", "b: {type: string}", "{cast: {from: .a, to: .b, as: Integer}}", "hub"},
		"seconds in range":         {"a: {type: string}", "b: {type: integer, minimum: 0, maximum: 9e9}", "{cast: {from: .a, to: .b, as: Seconds}}", "spoke"},
		"seconds out of range":     {"a: {type: string}", "b: {type: integer, minimum: 0, maximum: 1e10}", "{cast: {from: .a, to: .b, as: Seconds}}", both},
		"a template":               {"a: {type: string}", "b: {type: string}", `{format: {from: .a, template: "<{b}>", to: {b: .b}}}`, both},
		"a list to a map":          {"a: {type: array, items: {type: object, properties: {k: {type: string}}}}", "b: {type: object, additionalProperties: {type: object, properties: {}}}", "{each: {from: .a, to: .b, key: k}}", "spoke"},
		"a map to a list":          {"a: {type: object, additionalProperties: {type: object, properties: {}}}", "b: {type: array, items: {type: object, properties: {k: {type: integer}}}}", "{each: {from: .a, to: .b, key: k}}", both},
		"a boolean as a string":    {"a: {type: boolean}", "b: {type: string}", "{cast: {from: .a, to: .b, as: Boolean}}", "hub"},
		"a time in range":          {"a: {type: integer, minimum: -60000000000, maximum: 60000000000}", "b: {type: string}", "{cast: {from: .a, to: .b, as: Timestamp}}", "hub"},
		"a time out of range":      {"a: {type: integer, minimum: 0, maximum: 63000000000}", "b: {type: string}", "{cast: {from: .a, to: .b, as: Timestamp}}", both},
		"a list as a string":       {"a: {type: array, items: {type: string}}", "b: {type: string}", "{cast: {from: .a, to: .b, as: List, separator: ','}}", both},
		"a text of an object":      {"a: {type: string}", "b: {type: object, properties: {c: {type: string}}}", "{cast: {from: .a, to: .b, as: YAML}}", both},
		"objects and values":       {"a: {type: array, items: {type: object, required: [k], properties: {k: {type: string}}}}", "b: {type: array, items: {type: string}}", "{each: {from: .a, to: .b}}, {move: {from: '.a[*].k', to: '.b[*]'}}", ""},
		"objects with more":        {"a: {type: array, items: {type: object, required: [k], properties: {k: {type: string}, w: {type: string}}}}", "b: {type: array, items: {type: string}}", "{each: {from: .a, to: .b}}, {move: {from: '.a[*].k', to: '.b[*]'}}", ""},
		"objects without a value":  {"a: {type: array, items: {type: string}}", "b: {type: array, items: {type: object, properties: {k: {type: string}}}}", "{each: {from: .a, to: .b}}, {move: {from: '.a[*]', to: '.b[*].k'}}", "hub"},
		"values that are null":     {"a: {type: object, additionalProperties: {type: string, nullable: true}}", "b: {type: object, additionalProperties: {type: object, required: [k], properties: {k: {type: string, nullable: true}}}}", "{each: {from: .a, to: .b}}, {move: {from: '.a[*]', to: '.b[*].k'}}", both},
		"a list to a map of text":  {"a: {type: array, items: {type: object, properties: {k: {type: string}, v: {type: string}}}}", "b: {type: object, additionalProperties: {type: string}}", "{each: {from: .a, to: .b, key: k}}, {move: {from: '.a[*].v', to: '.b[*]'}}", "spoke"},
		"a default":                {"a: {type: string}", "a: {type: string}, b: {type: string}", "{default: {to: .b, value: x}}", ""},
		"an expression":            {"a: {type: string}", "b: {type: string}", "{cel: {from: {a: .a}, to: {b: .b}, forward: {b: self.a}, backward: {a: self.b}}}", both},
		"an expression of nothing": {"a: {type: string}", "b: {type: string}", "{cel: {from: {a: .a}, to: {b: .b}, forward: {b: \"has(self.a) ? self.a : 'x'\"}, backward: {a: self.b}, whenMissing: Evaluate}}", both},
		"an exclusion":             {"a: {type: array, items: {type: object, properties: {k: {type: string}}}}", "a: {type: array, items: {type: object, properties: {k: {type: string}}}}", `{each: {from: .a, to: .a, where: [{to: .k}]}}`, both},
		"a drop":                   {"a: {type: string}", "b: {type: string}", "{drop: {from: .a}}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			result := between(t, test.v1, test.v2, test.rule)
			converterOf(t, result)
			partly := map[string]bool{}
			for _, leaf := range result.Leaves {
				partly[leaf.Version] = partly[leaf.Version] || leaf.PartlyPreserved
			}
			got := map[[2]bool]string{{true, true}: both, {true, false}: "spoke", {false, true}: "hub"}[[2]bool{partly["v1"], partly["v2"]}]
			expect.Equal(t, "result", test.want, got)
		})
	}
}

// TestStorageWarning checks that there is no warning with two versions, because a conversion then
// takes one step in any case.
func TestStorageWarning(t *testing.T) {
	rules := from[v1alpha1.DeclarativeConverter](t, "{hub: v2, spokes: [{version: v1}, {version: v3}]}")
	for name, test := range map[string]struct {
		storage  string
		versions []string
		want     []string
	}{
		"the hub":                    {"v2", []string{"v1", "v2", "v3"}, nil},
		"a spoke":                    {"v1", []string{"v1", "v2", "v3"}, []string{"objects are stored at v1, which is not the hub: between it and the other versions each conversion takes two steps, over v2"}},
		"a spoke and nothing else":   {"v1", []string{"v1", "v2"}, nil},
		"no version, as in a sketch": {"", []string{"v1", "v2", "v3"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			versions := map[string]string{}
			for _, version := range test.versions {
				versions[version] = "a: {type: string}"
			}
			crd := widgets(t, versions)
			for i := range crd.Spec.Versions {
				crd.Spec.Versions[i].Storage = crd.Spec.Versions[i].Name == test.storage
			}
			expect.Equal(t, "warnings", test.want, Compile(crd, rules).Warnings)
		})
	}
}
