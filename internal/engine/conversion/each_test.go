// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"fmt"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestWhere has a list whose elements the spoke v1 can only have with extract, and one whose elements the
// hub v2 can only have with two types. Both have other rules for the elements, and other names.
func TestWhere(t *testing.T) {
	c := converterOf(t, between(t,
		`spec: {type: object, properties: {
		   data: {type: array, items: {type: object, properties: {extract: {type: object, properties: {key: {type: string}, old: {type: string}}}}}},
		   sources: {type: array, nullable: true, items: {type: object, properties: {kind: {type: string}, url: {type: string}, old: {type: string}}}}}}`,
		`spec: {type: object, properties: {
		   dataFrom: {type: array, items: {type: object, properties: {extract: {type: object, nullable: true, properties: {name: {type: string}}}, find: {type: string}, note: {type: string}}}},
		   sources: {type: array, nullable: true, items: {type: object, properties: {type: {type: string}, url: {type: string}}}}}}`,
		`{each: {from: .spec.data, to: .spec.dataFrom, where: [{to: .extract}]}}, {move: {from: ".spec.data[*].extract.key", to: ".spec.dataFrom[*].extract.name"}},
		 {move: {from: ".spec.sources[*].kind", to: ".spec.sources[*].type"}}, {each: {from: .spec.sources, to: .spec.sources, where: [{from: .kind, values: [Git, Helm]}]}}`))
	roundTrips{
		"none":     {"v2", `"spec":{"dataFrom":[{"extract":{"name":"a"}}]}`, named("v1", "", `"spec":{"data":[{"extract":{"key":"a"}}]}`)},
		"absent":   {"v2", `"spec":{}`, named("v1", "", `"spec":{}`)},
		"empty":    {"v2", `"spec":{"dataFrom":[]}`, named("v1", "", `"spec":{"data":[]}`)},
		"all":      {"v2", `"spec":{"dataFrom":[{"find":"x"}]}`, named("v1", `v2 {"~/spec/dataFrom/0":{"find":"x"}}`, `"spec":{}`)},
		"null":     {"v2", `"spec":{"dataFrom":[{"extract":null,"find":"x"}]}`, named("v1", `v2 {"~/spec/dataFrom/0":{"extract":null,"find":"x"}}`, `"spec":{}`)},
		"between":  {"v2", `"spec":{"dataFrom":[{"extract":{"name":"a"}},{"find":"x"},{"extract":{"name":"b"}},{"find":"y"}]}`, named("v1", `v2 {"~/spec/dataFrom/1":{"find":"x"},"~/spec/dataFrom/3":{"find":"y"}}`, `"spec":{"data":[{"extract":{"key":"a"}},{"extract":{"key":"b"}}]}`)},
		"and note": {"v2", `"spec":{"dataFrom":[{"find":"x"},{"extract":{"name":"a"},"note":"n"}]}`, named("v1", `v2 {"/spec/dataFrom/0":{"extract":{"name":"a"},"note":"n"},"~/spec/dataFrom/0":{"find":"x"},"@/spec/dataFrom/0":`+digest(`{"extract":{"key":"a"}}`)+`}`, `"spec":{"data":[{"extract":{"key":"a"}}]}`)},
		"values":   {"v1", `"spec":{"sources":[{"kind":"OCI","url":"o","old":"1"},{"kind":"Git","url":"g"},{"url":"none"}]}`, named("v2", `v1 {"~/spec/sources/0":{"kind":"OCI","url":"o","old":"1"},"~/spec/sources/2":{"url":"none"}}`, `"spec":{"sources":[{"url":"g","type":"Git"}]}`)},
	}.check(t, c)
	t.Run("no text", func(t *testing.T) {
		want := named("v2", `v1 {"~/spec/sources/0":{"kind":7},"~/spec/sources/1":"text","~/spec/sources/2":null}`, `"spec":{}`)
		wantConverted(t, c, named("v1", "", `"spec":{"sources":[{"kind":7},"text",null]}`), "v2", want)
	})
	const two = `v2 {"~/spec/dataFrom/1":{"find":"x"},"~/spec/dataFrom/10":{"find":"y"}}`
	for name, test := range map[string]struct{ preserved, edited, want string }{
		"an element is removed": {two, `"spec":{"data":[]}`, named("v2", "", `"spec":{"dataFrom":[{"find":"x"},{"find":"y"}]}`)},
		"elements are added":    {two, `"spec":{"data":[{"extract":{"key":"1"}},{"extract":{"key":"2"}},{"extract":{}}]}`, named("v2", "", `"spec":{"dataFrom":[{"extract":{"name":"1"}},{"find":"x"},{"extract":{"name":"2"}},{"extract":{}},{"find":"y"}]}`)},
		"it does not meet it":   {two, `"spec":{"data":[{},{"extract":{}}]}`, named("v2", `v1 {"~/spec/data/0":{}}`, `"spec":{"dataFrom":[{"extract":{}},{"find":"x"},{"find":"y"}]}`)},
		"the list is removed":   {two, `"spec":{}`, named("v2", `v1 {"!/spec/data":true}`, `"spec":{"dataFrom":[{"find":"x"},{"find":"y"}]}`)},
		"the list is null":      {two, `"spec":{"data":null}`, named("v2", two, `"spec":{"dataFrom":null}`)},
		"its object is removed": {two, ``, named("v2", "", ``)},
		"it is no list":         {two, `"spec":{"data":{}}`, named("v2", two, `"spec":{"dataFrom":{}}`)},
		"there is no such list": {`v2 {"~/spec/none/0":{},"~/metadata/labels/0":{}}`, `"spec":{}`, named("v2", `v2 {"~/metadata/labels/0":{},"~/spec/none/0":{}}`, `"spec":{}`)},
		"it does not fit":       {`v2 {"~/spec/dataFrom/0":{"find":7}}`, `"spec":{}`, named("v2", `v2 {"~/spec/dataFrom/0":{"find":7}}`, `"spec":{}`)},
	} {
		t.Run(name, func(t *testing.T) {
			wantAnyPreserved(t, "edited", test.want, convert(t, c, named("v1", test.preserved, test.edited), "v2"))
		})
	}
	t.Run("what does not fit stays beside what is excluded later", func(t *testing.T) {
		held := named("v2", `v2 {"~/spec/dataFrom/0":{"find":7},"~/spec/dataFrom/1":{"find":8}}`, `"spec":{"dataFrom":[{"find":"x"}]}`)
		want := named("v1", `v2 {"~/spec/dataFrom/0":{"find":"x"},"~/spec/dataFrom/1":{"find":7},"~/spec/dataFrom/2":{"find":8}}`, `"spec":{}`)
		wantConverted(t, c, held, "v1", want)
	})
}

// TestWhereInElements has lists in the elements of a list with keys, and of one without.
func TestWhereInElements(t *testing.T) {
	const element = `list: {type: array, items: {type: object, properties: {a: {type: string}, b: {type: string}}}}`
	c := converterOf(t, between(t,
		`keyed: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [id], items: {type: object, required: [id], properties: {id: {type: string}, `+element+`}}},
		 plain: {type: array, items: {type: object, properties: {x: {type: string}, `+element+`}}}`,
		`keyed: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, `+element+`}}},
		 plain: {type: array, items: {type: object, properties: {x: {type: string}, `+element+`}}}`,
		`{move: {from: ".keyed[*].id", to: ".keyed[*].name"}}, {each: {from: ".keyed[*].list", to: ".keyed[*].list", where: [{to: .a}]}}, {each: {from: ".plain[*].list", to: ".plain[*].list", where: [{to: .a}]}}`))
	roundTrips{
		"keys": {"v2", `"keyed":[{"name":"k","list":[{"b":"1"},{"a":"2"}]}]`, named("v1", `v2 {"~/keyed/[name=\"k\"]/list/0":{"b":"1"}}`, `"keyed":[{"id":"k","list":[{"a":"2"}]}]`)},
		"no keys": {"v2", `"plain":[{"x":"0"},{"x":"1","list":[{"b":"1"}]}]`,
			named("v1", `v2 {"/plain/1":{"x":"1","list":[{"b":"1"}]},"@/plain/1":`+digest(`{"list":[],"x":"1"}`)+`}`, `"plain":[{"x":"0"},{"x":"1"}]`)},
	}.check(t, c)
	t.Run("moved", func(t *testing.T) {
		edited := named("v1", `v2 {"~/keyed/[name=\"k\"]/list/0":{"b":"1"},"~/keyed/[name=\"gone\"]/list/0":{"b":"2"}}`, `"keyed":[{"id":"new"},{"id":"k"}]`)
		wantAnyPreserved(t, "edited", named("v2", "", `"keyed":[{"name":"new"},{"name":"k","list":[{"b":"1"}]}]`), convert(t, c, edited, "v2"))
	})
}

// TestKeyStays has a map that is a list with keys, and an expression inside, which reads what is preserved: deciding that
// one element at a time leaves its key alone.
func TestKeyStays(t *testing.T) {
	c := converterOf(t, between(t,
		`spec: {type: object, properties: {services: {type: object, additionalProperties: {type: object, properties: {size: {type: string}}}}}}`,
		`spec: {type: object, properties: {components: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {
		   name: {type: string}, sizes: {type: array, items: {type: string}}}}}}}`,
		`{each: {from: .spec.services, to: .spec.components, key: name}},
		 {cel: {from: {size: ".spec.services[*].size"}, to: {sizes: ".spec.components[*].sizes"}, forward: {sizes: "[self.size]"}, backward: {size: "self.sizes[0]"}}}`))
	roundTrips{
		"first": {"v2", `"spec":{"components":[{"name":"x","sizes":["1","2"]}]}`, named("v1", `v2 {"~/spec/components/[name=\"x\"]/sizes/1":"2"}`, `"spec":{"services":{"x":{"size":"1"}}}`)},
		"two": {"v2", `"spec":{"components":[{"name":"x","sizes":["1","2"]},{"name":"y","sizes":["3","4"]}]}`,
			named("v1", `v2 {"~/spec/components/[name=\"x\"]/sizes/1":"2","~/spec/components/[name=\"y\"]/sizes/1":"4"}`, `"spec":{"services":{"x":{"size":"1"},"y":{"size":"3"}}}`)},
	}.check(t, c)
}

// TestSameKeys has a list that is a map of its values. Of two elements with the same key, one has no value: the map would
// have the other one only, and what is preserved of the first would come back into it.
func TestSameKeys(t *testing.T) {
	c := converterOf(t, between(t,
		`spec: {type: object, properties: {vars: {type: array, items: {type: object, properties: {k: {type: string}, v: {type: string}, w: {type: string}}}}}}`,
		`spec: {type: object, properties: {vars: {type: object, additionalProperties: {type: string}}}}`,
		`{each: {from: .spec.vars, to: .spec.vars, key: k}}, {move: {from: ".spec.vars[*].v", to: ".spec.vars[*]"}}`))
	roundTrips{
		"one":   {"v1", `"spec":{"vars":[{"k":"b","v":"1"},{"k":"a","w":"2"}]}`, named("v2", `v1 {"~/spec/vars/1":{"k":"a","w":"2"}}`, `"spec":{"vars":{"b":"1"}}`)},
		"first": {"v1", `"spec":{"vars":[{"k":"a","w":"2"},{"k":"a","v":"1"}]}`, named("v2", `v1 {"/spec/vars":[{"k":"a","w":"2"},{"k":"a","v":"1"}]}`, `"spec":{}`)},
		"last":  {"v1", `"spec":{"vars":[{"k":"a","v":"1"},{"k":"a","w":"2"}]}`, named("v2", `v1 {"/spec/vars":[{"k":"a","v":"1"},{"k":"a","w":"2"}]}`, `"spec":{}`)},
	}.check(t, c)
}

// TestWhereRefused has rules that the compiler refuses.
func TestWhereRefused(t *testing.T) {
	const lists = `spec: {type: object, properties: {list: {type: array, items: {type: object, properties: {a: {type: string}, num: {type: integer}, in: {type: array, items: {type: string}}}}},
		lists: {type: array, items: {type: array, items: {type: object, properties: {a: {type: string}}}}}, map: {type: object, additionalProperties: {type: object, properties: {a: {type: string}}}},
		keyed: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [a], items: {type: object, required: [a], properties: {a: {type: string}, b: {type: string}}}}}}`
	for name, test := range map[string]struct{ rules, want string }{
		"elements":        {`{each: {from: ".spec.list[*]", to: ".spec.list[*]", where: [{to: .a}]}}`, "ends with [*]: name the list or map itself"},
		"lists of lists":  {`{each: {from: .spec.lists, to: .spec.lists, where: [{to: .a}]}}`, ".a"},
		"unknown list":    {`{each: {from: .spec.lis, to: .spec.list, where: [{to: .a}]}}`, ".spec.list"},
		"map":             {`{each: {from: .spec.map, to: .spec.map, where: [{to: .a}]}}`, "is for the elements of a list, which is not a map in any version"},
		"keys":            {`{each: {from: .spec.keyed, to: .spec.keyed, where: [{to: .b}]}}`, "the list has keys: server-side apply sends parts of its elements"},
		"unknown field":   {`{each: {from: .spec.list, to: .spec.list, where: [{to: .aa}]}}`, "version v2: "},
		"in a list":       {`{each: {from: .spec.list, to: .spec.list, where: [{to: ".in[*]"}]}}`, "goes through a list or map: name a field of the element"},
		"twice":           {`{each: {from: .spec.list, to: .spec.list, where: [{to: .a}, {to: .num}]}}`, "there is another condition for these elements: name all values in one"},
		"numbers":         {`{each: {from: .spec.list, to: .spec.list, where: [{to: .num, values: ["1"]}]}}`, ".num is of type integer: values are for a string"},
		"paired twice":    {`{each: {from: .spec.list, to: .spec.list}}, {each: {from: .spec.list, to: .spec.list, where: [{to: .a}]}}`, "already belongs to"},
		"read as a whole": {`{each: {from: .spec.list, to: .spec.list, where: [{to: .a}]}}, {cel: {from: {l: .spec.list}, to: {l: .spec.list}, forward: {l: self.l}, backward: {l: self.l}}}`, "already belongs to"},
	} {
		t.Run(name, func(t *testing.T) {
			result := between(t, lists, lists, test.rules)
			expect.Contains(t, "errors", fmt.Sprint(result.Errors.ToAggregate()), test.want)
		})
	}
}

// TestWhereWarnings: elements that meet the condition have the field, and one of the values. So there is no
// warning about what the other version requires of them.
func TestWhereWarnings(t *testing.T) {
	const v1 = `a: {type: array, items: {type: object, required: [e], properties: {e: {type: string}, f: {type: string}}}},
		b: {type: array, items: {type: object, properties: {t: {type: string}}}}, c: {type: array, items: {type: object, required: [old], properties: {old: {type: string}}}}`
	const v2 = `a: {type: array, items: {type: object, properties: {e: {type: string}, f: {type: string}}}},
		b: {type: array, items: {type: object, properties: {t: {type: string, enum: [Git, Helm]}}}}, c: {type: array, items: {type: object, properties: {new: {type: string}}}}`
	const move = `{move: {from: ".c[*].old", to: ".c[*].new"}}`
	for rules, want := range map[string]int{
		move: 2,
		move + `, {each: {from: .a, to: .a, where: [{to: .e}]}}, {each: {from: .b, to: .b, where: [{from: .t, values: [Git]}]}}, {each: {from: .c, to: .c, where: [{to: .new}]}}`: 0,
		move + `, {each: {from: .a, to: .a, where: [{to: .f}]}}, {each: {from: .b, to: .b, where: [{from: .t}]}}, {each: {from: .c, to: .c, where: [{to: .new}]}}`:                2,
	} {
		if result := between(t, v1, v2, rules); len(result.Errors) > 0 || len(result.Warnings) != want {
			t.Errorf("%s: got %v and %q, want %d warnings", rules, result.Errors, result.Warnings, want)
		}
	}
}
