// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// refusal is rules that do not compile, and the first error: where it is, and a part of its text.
type refusal struct{ rules, at, says string }

func (r refusal) check(t *testing.T, v1, v2 string) {
	t.Helper()
	result := between(t, v1, v2, r.rules)
	if result.Ruleset != nil || len(result.Errors) == 0 {
		t.Fatal("the rules are accepted")
	}
	if got := result.Errors[0]; got.Field != "spec.converter.declarative.spokes[0]."+r.at || !strings.Contains(got.Error(), r.says) {
		t.Errorf("got %v, want %q at %s", got, r.says, r.at)
	}
}

// TestCompileRefuses checks that errors name the field of the policy and the problem.
func TestCompileRefuses(t *testing.T) {
	const v1 = `a: {type: string}, num: {type: integer}, m: {type: object, additionalProperties: {type: string}}, l: {type: array, items: {type: object, properties: {x: {type: string}}}}, o: {type: object, properties: {i: {type: string}}}, e: {type: string, enum: [A, B]}, both: {type: string}, any: {x-kubernetes-preserve-unknown-fields: true}, er: {type: object, x-kubernetes-embedded-resource: true, properties: {spec: {type: string}}}, k: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [id], items: {type: object, required: [id], properties: {id: {type: string}, x: {type: string}}}}`
	const v2 = `p: {type: object, properties: {i: {type: string}}}, b: {type: string}, c: {type: string}, n2: {type: integer}, names: {type: array, items: {type: string}}, strings: {type: object, additionalProperties: {type: string}}, lm: {type: object, additionalProperties: {type: object, properties: {x: {type: string}}}}, l: {type: array, items: {type: object, properties: {yy: {type: string}}}}, both: {type: string}`
	for name, test := range map[string]refusal{
		"a rule we know not":       {`{}`, "rules[0]", "upgrade the operator"},
		"unknown path":             {`{move: {from: .z, to: .b}}`, "rules[0].move.from", "no field z"},
		"into a list":              {`{move: {from: .l.x, to: .b}}`, "rules[0].move.from", "write .l[*].x"},
		"no list":                  {`{move: {from: ".a[*]", to: .b}}`, "rules[0].move.from", "neither a list nor a map"},
		"ends with [*]":            {`{move: {from: ".m[*]", to: ".b"}}`, "rules[0].move.from", "ends with [*]"},
		"an element without a key": {`{move: {from: ".l[z=a].x", to: .b}}`, "rules[0].move.from", ".l is no list whose only x-kubernetes-list-map-keys is the string that [z=a] names"},
		"an element by no key":     {`{move: {from: ".k[x=a].id", to: .b}}`, "rules[0].move.from", ".k is no list whose only"},
		"an element by nothing":    {`{move: {from: ".k[id].x", to: .b}}`, "rules[0].move.from", "neither [*] nor the key of an element, such as [name=main]"},
		"a whole element":          {`{move: {from: ".k[id=a]", to: .b}}`, "rules[0].move.from", "use an each rule with where"},
		"the key of an element":    {`{move: {from: ".k[id=a].id", to: .b}}`, "rules[0].move.from", "is a, as the path says"},
		"drop in one element":      {`{drop: {from: ".k[id=a].x"}}`, "rules[0].drop.from", "which a rule may do that converts a field in it"},
		"one element and all":      {`{move: {from: ".k[id=a].x", to: .b}}, {move: {from: ".k[*].x", to: .c}}`, "rules[1].move.from", "already belongs to"},
		"metadata":                 {`{move: {from: .metadata.name, to: .b}}`, "rules[0].move.from", `.metadata.name is the API server's, and is the same in every version: remove the rule; of the metadata, only single labels and annotations convert`},
		"all labels":               {`{move: {from: .metadata.labels, to: .b}}`, "rules[0].move.from", `of the metadata, only single labels and annotations convert: write .metadata.labels["name"]`},
		"all metadata":             {`{move: {from: .metadata, to: .b}}`, "rules[0].move.from", `of the metadata, only single labels and annotations convert: write .metadata.labels["name"]`},
		"apiVersion":               {`{move: {from: .apiVersion, to: .b}}`, "rules[0].move.from", "remove the rule"},
		"two rules, one field":     {`{move: {from: .a, to: .b}}, {move: {from: .a, to: .c}}`, "rules[1].move.from", "already belongs to"},
		"above a ruled field":      {`{move: {from: .o.i, to: .b}}, {move: {from: .o, to: .c}}`, "rules[1].move.from", "already belongs to"},
		"collision":                {`{move: {from: .a, to: .both}}`, "rules[0].move.to", "collides with the field .both"},
		"types":                    {`{move: {from: .num, to: .b}}`, "rules[0].move.to", "integer on one side"},
		"wildcards":                {`{move: {from: ".l[*].x", to: .b}}`, "rules[0].move.to", "same lists and maps"},
		"holes touch":              {`{format: {from: .a, template: "{p}{q}", to: {p: .b, q: .c}}}`, "rules[0].format.template", "ambiguous"},
		"unclosed hole":            {`{format: {from: .a, template: "{p", to: {p: .b}}}`, "rules[0].format.template", "not closed"},
		"stray brace":              {`{format: {from: .a, template: "{p}}", to: {p: .b}}}`, "rules[0].format.template", "a } has no {"},
		"hole twice":               {`{format: {from: .a, template: "{p}:{p}", to: {p: .b}}}`, "rules[0].format.template", "twice"},
		"no hole":                  {`{format: {from: .a, template: "abc", to: {p: .b}}}`, "rules[0].format.template", "has no hole"},
		"hole without field":       {`{format: {from: .a, template: "{p}:{q}", to: {p: .b}}}`, "rules[0].format.to[q]", "name the field"},
		"field without hole":       {`{format: {from: .a, template: "{p}", to: {p: .b, q: .c}}}`, "rules[0].format.to[q]", "no hole {q}"},
		"format of an integer":     {`{format: {from: .num, template: "{p}", to: {p: .b}}}`, "rules[0].format.from", "of type integer"},
		"hole of a list":           {`{format: {from: .a, template: "{p}", to: {p: .l}}}`, "rules[0].format.to[p]", "of type array"},
		"table of an object":       {`{values: {from: .o, to: .b, table: [{from: "1", to: a}]}}`, "rules[0].values.from", "of type object"},
		"table to a list":          {`{values: {from: .a, to: .names, table: [{from: "1", to: a}]}}`, "rules[0].values.to", "of type array"},
		"a word for an integer":    {`{values: {from: .a, to: .n2, table: [{from: "1", to: a}]}}`, "rules[0].values.table[0].to", "not of type integer"},
		"an integer with zeros":    {`{values: {from: .num, to: .b, table: [{from: "007", to: a}]}}`, "rules[0].values.table[0].from", "write 7"},
		"a large integer":          {`{values: {from: .num, to: .b, table: [{from: "9223372036854775808", to: a}]}}`, "rules[0].values.table[0].from", "not of type integer"},
		"table of the enum":        {`{values: {from: .e, to: .b, table: [{from: A, to: a}, {from: C, to: a}]}}`, "rules[0].values.table[1].from", "not in the enum"},
		"the same pair twice":      {`{values: {from: .a, to: .b, table: [{from: A, to: a}, {from: A, to: b}, {from: A, to: a}]}}`, "rules[0].values.table[2]", "Duplicate"},
		"table without pairs":      {`{values: {from: .a, to: .b, table: []}}`, "rules[0].values.table", "write the values"},
		"table to a collision":     {`{values: {from: .a, to: .both, table: [{from: A, to: a}]}}`, "rules[0].values.to", "collides with the field .both"},
		"drop of neither":          {`{drop: {}}`, "rules[0].drop", "set from, for a field"},
		"drop of the unknown":      {`{drop: {from: .z}}`, "rules[0].drop.from", "no field z"},
		"drop of the moved":        {`{move: {from: .a, to: .b}}, {drop: {to: .b}}`, "rules[1].drop.to", "already belongs to"},
		"drop in no list":          {`{drop: {to: ".lm[*].x"}}`, "rules[0].drop.to", "which version v1 does not have"},
		"each without a list":      {`{each: {from: .a, to: .b}}`, "rules[0].each.to", "an each rule is for two lists, two maps (additionalProperties), a list and a map, or a list and one value"},
		"each of a map and one":    {`{each: {from: .m, to: .b}}`, "rules[0].each.to", "an each rule is for two lists"},
		"each of another value":    {`{each: {from: .num, to: .names}}`, "rules[0].each.to", "the list has values of type string, and the value is of another type"},
		"each of a label":          {`{each: {from: .a, to: '.metadata.labels["l"]'}}`, "rules[0].each.to", "a label or an annotation has no elements"},
		"cast of two strings":      {`{cast: {from: .a, to: .b, as: Integer}}`, "rules[0].cast.to", "between a string and a field of type integer"},
		"cast of an integer":       {`{cast: {from: .a, to: .n2, as: Number}}`, "rules[0].cast.to", "between a string and a field of type number"},
		"quantity without a unit":  {`{cast: {from: .a, to: .n2, as: Quantity}}`, "rules[0].cast.unit", "Unsupported value"},
		"quantity of a wrong unit": {`{cast: {from: .a, to: .n2, as: Quantity, unit: MB}}`, "rules[0].cast.unit", "Unsupported value"},
		"unit of an integer":       {`{cast: {from: .a, to: .n2, as: Integer, unit: Mi}}`, "rules[0].cast.unit", "only for as: Quantity"},
		"cast of an object":        {`{cast: {from: .o, to: .b, as: Integer}}`, "rules[0].cast.from", "is of type object"},
		"cast of a boolean":        {`{cast: {from: .a, to: .n2, as: Boolean}}`, "rules[0].cast.to", "between a string and a field of type boolean"},
		"cast of a list":           {`{cast: {from: .a, to: .n2, as: List, separator: ","}}`, "rules[0].cast.to", "between a string and a field of type array of string"},
		"cast of other elements":   {`{cast: {from: .l, to: .b, as: List, separator: ","}}`, "rules[0].cast.from", "is of type array"},
		"list without a separator": {`{cast: {from: .a, to: .names, as: List}}`, "rules[0].cast.separator", "is for as: List, which needs it"},
		"separator of an integer":  {`{cast: {from: .a, to: .n2, as: Integer, separator: ","}}`, "rules[0].cast.separator", "and for no other cast"},
		"cast of a text to YAML":   {`{cast: {from: .a, to: .b, as: YAML}}`, "rules[0].cast.to", "between a string and a field of type object or array, or without a type"},
		"cast of JSON to a number": {`{cast: {from: .a, to: .n2, as: JSON}}`, "rules[0].cast.to", "is of type integer"},
		"cast as something":        {`{cast: {from: .a, to: .n2, as: Roman}}`, "rules[0].cast.as", "Unsupported value"},
		"cel of the unknown":       {`{cel: {from: {a: .z}, to: {b: .b}, forward: {b: self.a}, backward: {a: self.b}}}`, "rules[0].cel.from[a]", "no field z"},
		"cel of no fields":         {`{cel: {from: {}, to: {b: .b}, forward: {b: "'x'"}, backward: {}}}`, "rules[0].cel.from", "name the fields"},
		"each without a key":       {`{each: {from: .l, to: .lm}}`, "rules[0].each.key", "name the field of the list's objects that is their key in the map"},
		"each by no field":         {`{each: {from: .l, to: .lm, key: z}}`, "rules[0].each.key", "is no field of the list's objects that is a string or an integer: they have objects with the fields x"},
		"each by a field":          {`{each: {from: .l, to: .lm, key: x}}`, "rules[0].each.key", "is a field of the map's objects too"},
		"each by a key of one":     {`{each: {from: .a, to: .names, key: x}}`, "rules[0].each.key", "is of no use for one value: remove it"},
		"each of other elements":   {`{each: {from: .l, to: .names}}`, "rules[0].each.to", `one version has objects with the fields x and the other values of type string: write a rule for them, such as {move: {from: ".l[*]", to: ".names[*].name"}}`},
		"each of values in a map":  {`{each: {from: .l, to: .strings, key: x}}`, "rules[0].each.to", "write a rule for them"},
		"an element of a copy":     {`{move: {from: ".l[*]", to: ".l[*].yy"}}`, "rules[0].move.from", "a rule for elements as a whole needs an each rule for their list or map"},
		"a dropped element":        {`{each: {from: .l, to: .l}}, {drop: {from: ".l[*]"}}`, "rules[1].drop.from", "ends with [*]"},
		"the key of a map":         {`{each: {from: .l, to: .strings, key: x}}, {move: {from: ".l[*].x", to: ".strings[*]"}}`, "rules[1].move.from", "is the key of the map"},
		"cel name":                 {`{cel: {from: {a-b: .a}, to: {b: .b}, forward: {b: self.a}, backward: {a-b: self.b}}}`, "rules[0].cel.from[a-b]", "write the name with letters"},
		"cel name of YAML":         {`{cel: {from: {y: .a}, to: {b: .b}, forward: {b: self.y}, backward: {y: self.b}}}`, "rules[0].cel.from[true]", "YAML reads y, n, yes, no, on and off"},
		"cel without forward":      {`{cel: {from: {a: .a}, to: {b: .b, c: .c}, forward: {b: self.a}, backward: {a: self.b}}}`, "rules[0].cel.to[c]", "no expression of spec.converter.declarative.spokes[0].rules[0].cel.forward computes it, and none reads it: write one, or remove the name"},
		"cel without backward":     {`{cel: {from: {a: .a, x: .num}, to: {b: .b}, forward: {b: "string(self.x)"}, backward: {x: "1"}}}`, "rules[0].cel.from[a]", "computes it, and none reads it"},
		"cel without either":       {`{cel: {from: {a: .a}, to: {b: .b}}}`, "rules[0].cel.forward", "write the expressions that compute the fields of to, those of from in backward, or both"},
		"cel derives the moved":    {`{move: {from: .a, to: .b}}, {cel: {from: {a: .num}, to: {b: .b}, forward: {b: "string(self.a)"}}}`, "rules[1].cel.to[b]", "already belongs to"},
		"cel reads the unknown":    {`{cel: {from: {a: .z}, to: {b: .b}, forward: {b: self.a}}}`, "rules[0].cel.from[a]", "no field z"},
		"cel derives elsewhere":    {`{cel: {from: {x: ".l[*].x"}, to: {b: .b}, forward: {b: self.x}}}`, "rules[0].cel.from[x]", "same lists and maps"},
		"cel derives no type":      {`{cel: {from: {a: .num}, to: {b: .b}, forward: {b: self.a}}}`, "rules[0].cel.forward[b]", "gives int, and the field is of type string: convert it with string()"},
		"cel for no field":         {`{cel: {from: {a: .a}, to: {b: .b}, forward: {b: self.a, c: self.a}, backward: {a: self.b}}}`, "rules[0].cel.forward[c]", "cel.to does not name: add the field there"},
		"cel back to no field":     {`{cel: {from: {a: .a}, to: {b: .b}, forward: {b: self.a}, backward: {a: self.b, x: self.b}}}`, "rules[0].cel.backward[x]", "cel.from does not name: add the field there"},
		"cel of no expression":     {`{cel: {from: {a: .a}, to: {b: .b}, forward: {b: "self.a +"}, backward: {a: self.b}}}`, "rules[0].cel.forward[b]", "Syntax error"},
		"cel of another field":     {`{cel: {from: {a: .a}, to: {b: .b}, forward: {b: self.a}, backward: {a: self.a}}}`, "rules[0].cel.backward[a]", "undefined field 'a' (line 1, column 5); self has b"},
		"cel of another type":      {`{cel: {from: {a: .num}, to: {b: .b}, forward: {b: self.a}, backward: {a: int(self.b)}}}`, "rules[0].cel.forward[b]", "gives int, and the field is of type string: convert it with string()"},
		"cel in two scopes":        {`{cel: {from: {x: ".l[*].x", a: .a}, to: {yy: ".l[*].yy"}, forward: {yy: self.x}, backward: {x: self.yy, a: self.yy}}}`, "rules[0].cel.from[a]", "same lists and maps"},
		"cel to two scopes":        {`{cel: {from: {x: ".l[*].x"}, to: {yy: ".l[*].yy", z: .b}, forward: {yy: self.x, z: self.x}, backward: {x: self.yy}}}`, "rules[0].cel.to[z]", "same lists and maps"},
		"cel to a collision":       {`{cel: {from: {a: .a}, to: {b: .both}, forward: {b: self.a}, backward: {a: self.b}}}`, "rules[0].cel.to[b]", "collides with the field .both"},
		"cel of the moved":         {`{move: {from: .a, to: .b}}, {cel: {from: {a: .a}, to: {c: .c}, forward: {c: self.a}, backward: {a: self.c}}}`, "rules[1].cel.from[a]", "already belongs to"},
		"cel of nothing":           {`{cel: {from: {a: .a}, to: {b: .b}, forward: {b: self.a}, backward: {a: "has(self.b) ? optional.of(self.b) : optional.none()"}, whenMissing: Evaluate}}`, "rules[0].cel.whenMissing", "no expression gives a value if all fields are missing: test for the fields with has(), or remove whenMissing"},
		"cel when it is missing":   {`{cel: {from: {a: .a}, to: {b: .b}, forward: {b: "'x'"}, backward: {a: self.b}, whenMissing: Compute}}`, "rules[0].cel.whenMissing", "Unsupported value"},
		"default of neither":       {`{default: {value: x}}`, "rules[0].default", "set from, for a field"},
		"default of both":          {`{default: {from: .a, to: .b, value: x}}`, "rules[0].default", "set from, for a field"},
		"default of a type":        {`{default: {from: .num, value: "1"}}`, "rules[0].default.value", "not of type integer"},
		"default of null":          {`{default: {to: .b, value: null}}`, "rules[0].default.value", "set the value of the field, or valueFrom, and not both"},
		"default of two values":    {`{default: {to: .c, value: x, valueFrom: .metadata.name}}`, "rules[0].default.value", "set the value of the field, or valueFrom, and not both"},
		"default from a label":     {`{default: {to: .c, valueFrom: .metadata.labels}}`, "rules[0].default.valueFrom", "Unsupported value"},
		"default of an integer":    {`{default: {to: .n2, valueFrom: .metadata.name}}`, "rules[0].default.valueFrom", "is a string, and the field is of type integer"},
		"default of the enum":      {`{default: {from: .e, value: C}}`, "rules[0].default.value", "not in the enum"},
		"default on both":          {`{default: {from: .both, value: x}}`, "rules[0].default.from", "collides with the field .both that version v2 has"},
		"default of a label":       {`{default: {to: '.metadata.labels["l"]', value: x}}`, "rules[0].default.to", "in every version"},
		"nearly a name":            {`{move: {from: .Bth, to: .b}}`, "rules[0].move.from", "version v1: the object has no field Bth in the schema: did you mean .both?"},
		"a name elsewhere":         {`{move: {from: .i, to: .b}}`, "rules[0].move.from", "did you mean .o.i?"},
		"nothing like it":          {`{move: {from: .o.quite, to: .b}}`, "rules[0].move.from", ".o has no field quite in the schema, it has i: correct the path"},
		"into a scalar":            {`{move: {from: .a.x, to: .b}}`, "rules[0].move.from", ".a is of type string and has no fields: correct the path"},
		"into the unknown":         {`{move: {from: .any.x, to: .b}}`, "rules[0].move.from", "the schema does not say what is in .any: add x to the schema"},
		"into an embedded":         {`{move: {from: .er.spec, to: .b}}`, "rules[0].move.from", ".er is an object of a kind of its own: write a rule for all of it"},
		"below a ruled field":      {`{drop: {from: .o}}, {move: {from: .o.i, to: .b}}`, "rules[1].move.from", "is in .o, which already belongs to spec.converter.declarative.spokes[0].rules[0].drop.from: give every field to one rule"},
		"around a ruled field":     {`{drop: {to: .p.i}}, {drop: {to: .p}}`, "rules[1].drop.to", "has .p.i in it, which already belongs to"},
		"a key twice":              {`{move: {from: '.m["k"]', to: .b}}, {move: {from: '.m["k"]', to: .c}}`, "rules[1].move.from", ".m.k already belongs to"},
		"our own annotation":       {`{move: {from: .a, to: '.metadata.annotations["conversion-operator.io/v1"]'}}`, "rules[0].move.to", "is where conversion-operator preserves fields: use another name"},
		"no label at all":          {`{move: {from: .a, to: '.metadata.labels["a b"]'}}`, "rules[0].move.to", "cannot be: name part must consist of"},
		"no prefix of a label":     {`{move: {from: .a, to: '.metadata.labels["A/b"]'}}`, "rules[0].move.to", "cannot be: prefix part a lowercase RFC 1123 subdomain"},
		"default in no list":       {`{default: {to: ".lm[*].x", value: x}}`, "rules[0].default.to", "which version v1 does not have"},
	} {
		t.Run(name, func(t *testing.T) { test.check(t, v1, v2) })
	}
}

// TestCompileRefusesLists has rules for fields in lists whose elements cannot be paired.
func TestCompileRefusesLists(t *testing.T) {
	const list, held = "l: {type: array, items: {type: object, properties: {f: {type: string}}}}", "l: {type: object, additionalProperties: {type: object, properties: {f: {type: string}}}}"
	for name, test := range map[string]struct {
		v1, v2 string
		refusal
	}{
		"a list and a map":          {list, held, refusal{`{move: {from: ".l[*].f", to: ".l[*].f"}}`, "rules[0].move.from", "is part of .l, which differs between the versions (.l is array on one side and object on the other)"}},
		"dropped on the other side": {list, list, refusal{`{drop: {from: ".l[*].f"}}, {drop: {to: .l}}`, "rules[0].drop.from", "goes through .l, which belongs to"}},
		"another on the other side": {"x" + list[1:] + ", " + list, list, refusal{`{drop: {from: ".l[*].f"}}, {move: {from: .x, to: .l}}`, "rules[0].drop.from", "goes through .l, which belongs to"}},
	} {
		t.Run(name, func(t *testing.T) { test.check(t, test.v1, test.v2) })
	}
}

func TestCompileUnknownFields(t *testing.T) {
	crd := widgets(t, map[string]string{"v1": "a: {type: string}"})
	crd.Spec.PreserveUnknownFields = true
	result := compile.Compile(crd, &v1alpha1.DeclarativeConverter{Hub: "v1"})
	expect.Equal(t, "number of errors", 1, len(result.Errors))
	expect.Contains(t, "errors", fmt.Sprint(result.Errors), "set it to false")
}

// TestCompileMissing covers policies with versions that the CustomResourceDefinition lacks.
func TestCompileMissing(t *testing.T) {
	const rules = `{hub: v2, spokes: [{version: v1, rules: []}, {version: v3, rules: []}]}`
	for name, test := range map[string]struct {
		versions []string
		missing  []string
		planned  []string
	}{
		"all":                {[]string{"v1", "v2", "v3"}, nil, []string{"v1", "v2", "v3"}},
		"one, the hub":       {[]string{"v2"}, []string{"v1", "v3"}, []string{"v2"}},
		"one, a spoke":       {[]string{"v1"}, []string{"v2", "v3"}, []string{"v1"}},
		"one, not named":     {[]string{"v9"}, []string{"v2", "v1", "v3"}, nil},
		"two, with the hub":  {[]string{"v1", "v2"}, []string{"v3"}, []string{"v1", "v2"}},
		"two, not the hub":   {[]string{"v1", "v3"}, []string{"v2"}, nil},
		"one without a rule": {[]string{"v2", "v9"}, []string{"v1", "v3"}, []string{"v2", "v9"}},
	} {
		t.Run(name, func(t *testing.T) {
			versions := map[string]string{}
			for _, version := range test.versions {
				versions[version] = "a: {type: string}"
			}
			result := compile.Compile(widgets(t, versions), from[v1alpha1.DeclarativeConverter](t, rules))
			var missing, planned []string
			for _, err := range result.Missing {
				missing = append(missing, err.BadValue.(string))
			}
			if result.Ruleset != nil {
				planned = converterOf(t, result).Ruleset().Versions
			}
			expect.Equal(t, "missing", test.missing, missing)
			expect.Equal(t, "planned", test.planned, planned)
		})
	}
}

func TestCompileVerdict(t *testing.T) {
	result := between(t, `a: {type: string}, own: {type: string}, x: {type: string}`, `b: {type: string}, x: {type: integer}`, `{move: {from: .a, to: .b}}`)
	want := []compile.Verdict{{
		Version: "v1", ToHub: v1alpha1.FidelityPreserved, FromHub: v1alpha1.FidelityPreserved, Preserved: []compile.VersionedField{{Version: "v1", Path: ".own"}, {Version: "v1", Path: ".x"}, {Version: "v2", Path: ".x"}},
	}}
	expect.Equal(t, "verdicts", want, result.Verdicts)
	const warning = "not copied between v1 and v2, each version keeps its own: .x is string on one side and integer on the other: write"
	expect.Equal(t, "number of warnings", 1, len(result.Warnings))
	expect.Contains(t, "warnings", fmt.Sprint(result.Warnings), warning)
}

func TestCompileVerdictOfDrops(t *testing.T) {
	result := between(t, `x: {type: string}, old: {type: string}, own: {type: string}`, `x: {type: string}`, `{drop: {from: .old}}`)
	want := []compile.Verdict{{
		Version: "v1", ToHub: v1alpha1.FidelityLossy, FromHub: v1alpha1.FidelityExact, Preserved: []compile.VersionedField{{Version: "v1", Path: ".own"}}, Dropped: []compile.VersionedField{{Version: "v1", Path: ".old"}},
	}}
	expect.Equal(t, "verdicts", want, result.Verdicts)
}

// TestCompileEqualSchemas checks that fields with equal schemas are copied byte by byte.
func TestCompileEqualSchemas(t *testing.T) {
	for name, schema := range map[string]string{
		"anything":          `x: {type: object, x-kubernetes-preserve-unknown-fields: true}`,
		"anything at all":   `x: {x-kubernetes-preserve-unknown-fields: true}`,
		"any map":           `x: {type: object, additionalProperties: true}`,
		"int-or-string":     `x: {x-kubernetes-int-or-string: true}`,
		"nullable":          `x: {type: object, nullable: true, properties: {yy: {type: string}}}`,
		"embedded resource": `x: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}`,
		"map of scalars":    `x: {type: object, additionalProperties: {type: integer}}`,
		"lists of lists":    `x: {type: array, items: {type: array, items: {type: array, items: {type: object, properties: {yy: {type: string}}}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			c := converterOf(t, between(t, schema, schema+", only: {type: string}", ``))
			const fields = `"x":[ {"z" : 1e400, "a":[[]]} ,0.10, null ]`
			wantBytes(t, c, widget("v1", fields), "v2", widget("v2", fields))
		})
	}
}
