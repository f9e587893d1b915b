// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/internal/generate"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// roundTripTest converts an object from v1 or v2 to the other version, and back.
type roundTripTest struct{ from, object, want string }

// check gives the object a name, so that it is whole.
func (test roundTripTest) check(t *testing.T, c *conversion.Converter) {
	t.Helper()
	object := named(test.from, "", test.object)
	wantRoundTrip(t, c, test.from, object, test.want, object)
}

// roundTrips are objects by what they have.
type roundTrips map[string]roundTripTest

func (tests roundTrips) check(t *testing.T, c *conversion.Converter) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test.check(t, c) })
	}
}

// wantRoundTrip converts an object from v1 or v2 to the other version, where it must be want, and back.
func wantRoundTrip(t *testing.T, c *conversion.Converter, from, object, want, back string) {
	t.Helper()
	there := convert(t, c, object, other(from))
	if !sameJSON(t, want, there) {
		t.Errorf("%s\nis at %s\n%s\nwant\n%s", object, other(from), there, want)
	}
	wantConverted(t, c, there, from, back)
}

// misfitTest converts a value that the schema of its version refuses: if the other version does not
// have the field, the value stays in the annotation.
type misfitTest struct {
	roundTripTest
	back string
}

func (test misfitTest) check(t *testing.T, c *conversion.Converter) {
	t.Helper()
	wantRoundTrip(t, c, test.from, named(test.from, "", test.object), test.want, test.back)
}

type misfits map[string]misfitTest

func (tests misfits) check(t *testing.T, c *conversion.Converter) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test.check(t, c) })
	}
}

// toSpoke are objects that are wanted at v1, by what they have.
type toSpoke map[string]struct{ object, want string }

func (tests toSpoke) check(t *testing.T, c *conversion.Converter) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			wantConverted(t, c, test.object, "v1", test.want)
		})
	}
}

// whenEdited are objects of v1 that get other fields at v2, and what comes back.
type whenEdited map[string]struct{ object, edit, want string }

func (tests whenEdited) check(t *testing.T, c *conversion.Converter) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			there, edited := decode(t, convert(t, c, named("v1", "", test.object), "v2")), decode(t, named("v2", "", test.edit))
			edited["metadata"] = there["metadata"]
			wantAnyPreserved(t, "edited", named("v1", "", test.want), convert(t, c, generate.Plain(edited), "v1"))
		})
	}
}

// named encodes an object with a name, and preserved data as in annotated.
func named(version, preserved, fields string) string {
	return withName(annotated(version, preserved, fields))
}

// TestDefault has a default in the hub, and one in the elements of the spoke's list.
func TestDefault(t *testing.T) {
	c := converterOf(t, between(t,
		"o: {type: object, properties: {x: {type: string}}}, l: {type: array, items: {type: object, properties: {x: {type: string}, num: {type: integer}}}}",
		"o: {type: object, properties: {x: {type: string}, mode: {type: string}, own: {type: object, properties: {deep: {type: boolean}}}}}, l: {type: array, items: {type: object, properties: {x: {type: string}}}}",
		`{default: {to: .o.mode, value: Standard}}, {default: {to: .o.own.deep, value: true}}, {default: {from: ".l[*].num", value: 7}}`))
	roundTrips{
		"filled":                  {"v1", `"o":{"x":"1"}`, named("v2", "", `"o":{"x":"1","mode":"Standard","own":{"deep":true}}`)},
		"no object to fill":       {"v1", ``, named("v2", "", ``)},
		"an object that is null":  {"v1", `"o":null`, named("v2", "", `"o":null`)},
		"taken away":              {"v2", `"o":{"mode":"Standard","own":{"deep":true}}`, named("v1", "", `"o":{}`)},
		"escaped otherwise":       {"v2", `"o":{"mode":"St\u0061ndard","own":{"deep":true}}`, named("v1", "", `"o":{}`)},
		"another value":           {"v2", `"o":{"mode":"Odd","own":{"deep":true}}`, named("v1", `v2 {"/o/mode":"Odd"}`, `"o":{}`)},
		"absent":                  {"v2", `"o":{}`, named("v1", `v2 {"!/o/mode":true,"!/o/own/deep":true}`, `"o":{}`)},
		"absent in an empty one":  {"v2", `"o":{"mode":"Standard","own":{}}`, named("v1", `v2 {"!/o/own/deep":true,"/o/own":{}}`, `"o":{}`)},
		"elements":                {"v1", `"l":[{"num":7},{"num":7,"x":"1"}]`, named("v2", "", `"l":[{},{"x":"1"}]`)},
		"an element with another": {"v1", `"l":[{"num":8},{"num":7}]`, named("v2", `v1 {"/l/0":{"num":8},"@/l/0":`+digest(`{}`)+`}`, `"l":[{},{}]`)},
		"an element with none":    {"v1", `"l":[{"x":"1"}]`, named("v2", `v1 {"/l/0":{"x":"1"},"@/l/0":`+digest(`{"x":"1"}`)+`}`, `"l":[{"x":"1"}]`)},
	}.check(t, c)
	misfits{
		"a null": {roundTripTest{"v2", `"o":{"mode":null,"own":{"deep":true}}`, named("v1", `v2 {"/o/mode":null}`, `"o":{}`)}, named("v2", `v2 {"/o/mode":null}`, `"o":{"mode":"Standard","own":{"deep":true}}`)},
	}.check(t, c)
}

// TestDefaultOfFragment converts an object without name and uid: defaults are not filled in.
func TestDefaultOfFragment(t *testing.T) {
	c := converterOf(t, between(t, "x: {type: string}", "x: {type: string}, mode: {type: string}", `{default: {to: .mode, value: Standard}}`))
	wantBytes(t, c, widget("v1", `"x":"1"`), "v2", widget("v2", `"x":"1"`))
	fragment := widget("v2", `"mode":"Standard"`)
	got := convert(t, c, fragment, "v1")
	wantConverted(t, c, fragment, "v1", annotated("v1", `v2 {"/mode":"Standard"}`, ""))
	expect.Equal(t, "back", fragment, convert(t, c, got, "v2"))
}

// TestDefaultInRestored has an absent field that a rule fills in. The object around it is empty at
// the other version, where it is a preserved object.
func TestDefaultInRestored(t *testing.T) {
	c := converterOf(t, between(t, "image: {type: string}, box: {type: object, properties: {own: {type: string}}}",
		"box: {type: object, properties: {image: {type: string}, lid: {type: string}}}",
		"{move: {from: .image, to: .box.image}}, {default: {to: .box.lid, value: closed}}"))
	object := named("v2", `v1 {"/box":{}}`, `"box":{"image":"1"}`)
	wantRoundTrip(t, c, "v2", object, named("v1", `v2 {"!/box/lid":true}`, `"image":"1","box":{}`), object)
}

func TestValues(t *testing.T) {
	const fields = "l: {type: array, items: {type: object, properties: {p: {type: string}}}}, p: {type: string}"
	const table = "table: [{from: Allow, to: Parallel}, {from: Forbid, to: Serial}, {from: Never, to: Serial}]"
	c := converterOf(t, between(t, fields, fields+", q: {type: string}",
		"{values: {from: .p, to: .q, "+table+"}}, {values: {from: '.l[*].p', to: '.l[*].p', "+table+"}}"))
	roundTrips{
		"in the table":           {"v1", `"p":"Forbid"`, named("v2", "", `"q":"Serial"`)},
		"back":                   {"v2", `"q":"Serial"`, named("v1", "", `"p":"Forbid"`)},
		"escaped":                {"v1", `"p":"\u0041llow"`, named("v2", "", `"q":"Parallel"`)},
		"not the first":          {"v1", `"p":"Never"`, named("v2", `v1 {"/p":"Never","@/p":["/q"]}`, `"q":"Serial"`)},
		"not in the table":       {"v1", `"p":"Odd"`, named("v2", "", `"q":"Odd"`)},
		"of the other side":      {"v1", `"p":"Serial"`, named("v2", `v1 {"/p":"Serial","@/p":["/q"]}`, `"q":"Serial"`)},
		"of the other side back": {"v2", `"q":"Allow"`, named("v1", `v2 {"/q":"Allow","@/q":["/p"]}`, `"p":"Allow"`)},
		"null":                   {"v1", `"p":null`, named("v2", "", `"q":null`)},
		"absent":                 {"v1", ``, named("v2", "", ``)},
		"not a string":           {"v1", `"p":{"x":1}`, named("v2", "", `"q":{"x":1}`)},
		"elements":               {"v1", `"l":[{"p":"Allow"},{"p":"Never"}]`, named("v2", `v1 {"/l/1":{"p":"Never"},"@/l/1":`+digest(`{"p":"Serial"}`)+`}`, `"l":[{"p":"Parallel"},{"p":"Serial"}]`)},
	}.check(t, c)
	stale := annotated("v2", `v1 {"/p":"Never","@/p":["/q"]}`, `"q":"Parallel"`)
	wantBytes(t, c, stale, "v1", widget("v1", `"p":"Allow"`))
}

// TestDrop checks that dropped values do not come back.
func TestDrop(t *testing.T) {
	c := converterOf(t, between(t,
		"x: {type: string}, old: {type: object, properties: {a: {type: string}}}, s: {type: object, properties: {a: {type: string}, b: {type: string}}}, l: {type: array, items: {type: object, properties: {x: {type: string}, old: {type: string}, own: {type: string}}}}",
		"x: {type: string}, same: {type: string}, l: {type: array, items: {type: object, properties: {x: {type: string}}}}",
		`{drop: {from: .old}}, {drop: {from: .s.a}}, {drop: {from: ".l[*].old"}}, {drop: {from: '.metadata.labels["old"]'}}, {drop: {to: .same}}`))
	for name, test := range map[string]struct{ from, object, there, back string }{
		"a subtree":                       {"v1", `"x":"1","old":{"a":"1"}`, named("v2", "", `"x":"1"`), named("v1", "", `"x":"1"`)},
		"a null":                          {"v1", `"old":null`, named("v2", "", ``), named("v1", "", ``)},
		"nothing":                         {"v1", ``, named("v2", "", ``), named("v1", "", ``)},
		"part of an object":               {"v1", `"s":{"a":"1","b":"2"}`, named("v2", `v1 {"/s/b":"2"}`, ``), named("v1", "", `"s":{"b":"2"}`)},
		"all of an object":                {"v1", `"s":{"a":"1"}`, named("v2", `v1 {"/s":{}}`, ``), named("v1", "", `"s":{}`)},
		"of an element":                   {"v1", `"l":[{"x":"1","old":"2"},{}]`, named("v2", "", `"l":[{"x":"1"},{}]`), named("v1", "", `"l":[{"x":"1"},{}]`)},
		"of an element that is preserved": {"v1", `"l":[{"x":"1","old":"2","own":"3"}]`, named("v2", `v1 {"/l/0":{"x":"1","own":"3"},"@/l/0":`+digest(`{"x":"1"}`)+`}`, `"l":[{"x":"1"}]`), named("v1", "", `"l":[{"x":"1","own":"3"}]`)},
		"of the hub":                      {"v2", `"same":"1"`, named("v1", "", ``), named("v2", "", ``)},
	} {
		t.Run(name, func(t *testing.T) {
			to := other(test.from)
			there := convert(t, c, named(test.from, "", test.object), to)
			if !sameJSON(t, test.there, there) {
				t.Errorf("there: got %s, want %s", there, test.there)
			}
			wantBytes(t, c, there, test.from, test.back)
		})
	}
}

// TestWrap has lists of the hub, of the spoke, and in elements.
func TestWrap(t *testing.T) {
	const object = "{type: object, properties: {a: {type: string}}}"
	c := converterOf(t, between(t,
		"node: {type: string}, o: "+object+", ips: {type: array, items: {type: string}}, l: {type: array, items: {type: object, properties: {p: {type: integer}}}}",
		"nodes: {type: array, items: {type: string}}, o: {type: array, items: "+object+"}, ip: {type: string}, l: {type: array, items: {type: object, properties: {p: {type: array, items: {type: integer}}}}}",
		`{each: {from: .node, to: .nodes}}, {each: {from: .o, to: .o}}, {each: {from: .ips, to: .ip}}, {each: {from: ".l[*].p", to: ".l[*].p"}}`))
	roundTrips{
		"a scalar":            {"v1", `"node":"a"`, named("v2", "", `"nodes":["a"]`)},
		"an object":           {"v1", `"o":{ "a" : "1" }`, named("v2", "", `"o":[{ "a" : "1" }]`)},
		"a list of one":       {"v2", `"nodes":[ "a" ]`, named("v1", "", `"node":"a"`)},
		"the spoke's list":    {"v1", `"ips":["a"]`, named("v2", "", `"ip":"a"`)},
		"a list of two":       {"v2", `"nodes":["a","b"]`, named("v1", `v2 {"/nodes":["a","b"],"@/nodes":["/node"]}`, `"node":"a"`)},
		"a list of two there": {"v1", `"ips":["a","b"]`, named("v2", `v1 {"/ips":["a","b"],"@/ips":["/ip"]}`, `"ip":"a"`)},
		"an empty list":       {"v2", `"nodes":[]`, named("v1", `v2 {"/nodes":[]}`, ``)},
		"absent":              {"v1", ``, named("v2", "", ``)},
		"elements":            {"v2", `"l":[{"p":[1]},{"p":[2,3]},{}]`, named("v1", `v2 {"/l/1":{"p":[2,3]},"@/l/1":`+digest(`{"p":2}`)+`}`, `"l":[{"p":1},{"p":2},{}]`)},
	}.check(t, c)
	misfits{
		"no list":        {roundTripTest{"v2", `"nodes":"a"`, named("v1", `v2 {"/nodes":"a"}`, ``)}, named("v2", `v2 {"/nodes":"a"}`, ``)},
		"a list of null": {roundTripTest{"v2", `"nodes":[null]`, named("v1", `v2 {"/nodes":[null]}`, ``)}, named("v2", `v2 {"/nodes":[null]}`, ``)},
		"null first":     {roundTripTest{"v2", `"nodes":[null,"a"]`, named("v1", `v2 {"/nodes":[null,"a"]}`, ``)}, named("v2", `v2 {"/nodes":[null,"a"]}`, ``)},
		"a null list":    {roundTripTest{"v1", `"ips":null`, named("v2", `v1 {"/ips":null}`, ``)}, named("v1", `v1 {"/ips":null}`, ``)},
	}.check(t, c)
	stale := annotated("v1", `v2 {"/nodes":["a","b"],"@/nodes":["/node"]}`, `"node":"c"`)
	wantBytes(t, c, stale, "v2", widget("v2", `"nodes":["c","b"]`))
}

// TestCast has strings in the spoke, in the hub, and in elements.
func TestCast(t *testing.T) {
	c := converterOf(t, between(t,
		"port: {type: string}, count: {type: integer}, timeout: {type: string}, l: {type: array, items: {type: object, properties: {p: {type: string}}}}",
		"port: {type: integer}, count: {type: string}, seconds: {type: integer}, l: {type: array, items: {type: object, properties: {p: {type: integer}}}}",
		`{cast: {from: .port, to: .port, as: Integer}}, {cast: {from: .count, to: .count, as: Integer}}, {cast: {from: .timeout, to: .seconds, as: Seconds}}, {cast: {from: ".l[*].p", to: ".l[*].p", as: Integer}}`))
	roundTrips{
		"a string":             {"v1", `"port":"80"`, named("v2", "", `"port":80`)},
		"an integer":           {"v1", `"count":-3`, named("v2", "", `"count":"-3"`)},
		"the largest":          {"v1", `"port":"9223372036854775807"`, named("v2", "", `"port":9223372036854775807`)},
		"beyond the largest":   {"v1", `"port":"9223372036854775808"`, named("v2", `v1 {"/port":"9223372036854775808"}`, ``)},
		"not canonical":        {"v1", `"port":"007"`, named("v2", `v1 {"/port":"007"}`, ``)},
		"a sign":               {"v1", `"port":"+7"`, named("v2", `v1 {"/port":"+7"}`, ``)},
		"no text":              {"v1", `"port":""`, named("v2", `v1 {"/port":""}`, ``)},
		"an exponent":          {"v1", `"count":1e3`, named("v2", `v1 {"/count":1e3}`, ``)},
		"a fraction":           {"v1", `"count":1.0`, named("v2", `v1 {"/count":1.0}`, ``)},
		"null":                 {"v1", `"port":null`, named("v2", "", `"port":null`)},
		"absent":               {"v1", ``, named("v2", "", ``)},
		"a duration":           {"v1", `"timeout":"1h30m0s"`, named("v2", "", `"seconds":5400`)},
		"a duration of nought": {"v1", `"timeout":"0s"`, named("v2", "", `"seconds":0`)},
		"seconds":              {"v2", `"seconds":-90`, named("v1", "", `"timeout":"-1m30s"`)},
		"too many seconds":     {"v2", `"seconds":9223372037`, named("v1", `v2 {"/seconds":9223372037}`, ``)},
		"written otherwise":    {"v1", `"timeout":"90s"`, named("v2", `v1 {"/timeout":"90s","@/timeout":["/seconds"]}`, `"seconds":90`)},
		"part of a second":     {"v1", `"timeout":"1.5s"`, named("v2", `v1 {"/timeout":"1.5s"}`, ``)},
		"no duration":          {"v1", `"timeout":"soon"`, named("v2", `v1 {"/timeout":"soon"}`, ``)},
		"elements":             {"v1", `"l":[{"p":"1"},{"p":"01"},{}]`, named("v2", `v1 {"/l/1":{"p":"01"},"@/l/1":`+digest(`{}`)+`}`, `"l":[{"p":1},{},{}]`)},
	}.check(t, c)
	misfits{
		"no string": {roundTripTest{"v1", `"port":80`, named("v2", `v1 {"/port":80}`, ``)}, named("v1", `v1 {"/port":80}`, ``)},
	}.check(t, c)
	stale := annotated("v2", `v1 {"/timeout":"90s","@/timeout":["/seconds"]}`, `"seconds":91`)
	wantBytes(t, c, stale, "v1", widget("v1", `"timeout":"1m31s"`))
}

// TestCastNoNumbers has booleans, times and lists.
func TestCastNoNumbers(t *testing.T) {
	c := converterOf(t, between(t,
		"flag: {type: string}, word: {type: boolean}, at: {type: string}, since: {type: integer}, csv: {type: string}, list: {type: array, items: {type: string}}",
		"flag: {type: boolean}, word: {type: string}, at: {type: integer}, since: {type: string}, csv: {type: array, items: {type: string}}, list: {type: string}",
		`{cast: {from: .flag, to: .flag, as: Boolean}}, {cast: {from: .word, to: .word, as: Boolean}}, {cast: {from: .at, to: .at, as: Timestamp}},
		{cast: {from: .since, to: .since, as: Timestamp}}, {cast: {from: .csv, to: .csv, as: List, separator: ", "}}, {cast: {from: .list, to: .list, as: List, separator: "/"}}`))
	roundTrips{
		"booleans":                   {"v1", `"flag":"true","word":false`, named("v2", "", `"flag":true,"word":"false"`)},
		"no boolean":                 {"v1", `"flag":"True"`, named("v2", `v1 {"/flag":"True"}`, ``)},
		"a time":                     {"v1", `"at":"2026-01-02T03:04:05Z"`, named("v2", "", `"at":1767323045`)},
		"a time before 1970":         {"v1", `"since":-1`, named("v2", "", `"since":"1969-12-31T23:59:59Z"`)},
		"the first second":           {"v1", `"at":"0000-01-01T00:00:00Z"`, named("v2", "", `"at":-62167219200`)},
		"the last second":            {"v1", `"since":253402300799`, named("v2", "", `"since":"9999-12-31T23:59:59Z"`)},
		"after the last second":      {"v1", `"since":253402300800`, named("v2", `v1 {"/since":253402300800}`, ``)},
		"a time elsewhere":           {"v1", `"at":"2026-01-02T04:04:05+01:00"`, named("v2", `v1 {"/at":"2026-01-02T04:04:05+01:00","@/at":["/at"]}`, `"at":1767323045`)},
		"a part of a second":         {"v1", `"at":"2026-01-02T03:04:05.5Z"`, named("v2", `v1 {"/at":"2026-01-02T03:04:05.5Z"}`, ``)},
		"before the first year":      {"v1", `"at":"0000-01-01T00:00:00+01:00"`, named("v2", `v1 {"/at":"0000-01-01T00:00:00+01:00"}`, ``)},
		"no such day":                {"v1", `"at":"2026-02-29T00:00:00Z"`, named("v2", `v1 {"/at":"2026-02-29T00:00:00Z"}`, ``)},
		"a string of a list":         {"v1", `"csv":"a, b,c, "`, named("v2", "", `"csv":["a","b,c",""]`)},
		"the empty string":           {"v1", `"csv":""`, named("v2", "", `"csv":[]`)},
		"a separator":                {"v1", `"csv":", "`, named("v2", "", `"csv":["",""]`)},
		"a list":                     {"v1", `"list":["a","\u00e9\"","b"]`, named("v2", "", `"list":"a/é\"/b"`)},
		"a separator in a list":      {"v1", `"list":["a/b"]`, named("v2", `v1 {"/list":["a/b"],"@/list":["/list"]}`, `"list":"a/b"`)},
		"a list of the empty string": {"v1", `"list":[""]`, named("v2", `v1 {"/list":[""],"@/list":["/list"]}`, `"list":""`)},
	}.check(t, c)
	misfits{
		"a null in a list": {roundTripTest{"v1", `"list":["a",null]`, named("v2", `v1 {"/list":["a",null]}`, ``)}, named("v1", `v1 {"/list":["a",null]}`, ``)},
		"no list":          {roundTripTest{"v1", `"list":"a"`, named("v2", `v1 {"/list":"a"}`, ``)}, named("v1", `v1 {"/list":"a"}`, ``)},
		"a number":         {roundTripTest{"v1", `"csv":7`, named("v2", `v1 {"/csv":7}`, ``)}, named("v1", `v1 {"/csv":7}`, ``)},
	}.check(t, c)
}

// TestCastOtherNumbers has numbers with fractions, milliseconds and quantities.
func TestCastOtherNumbers(t *testing.T) {
	c := converterOf(t, between(t,
		"ratio: {type: string}, share: {type: number}, wait: {type: string}, memory: {type: string}, cpu: {type: integer}, size: {type: string}, big: {type: integer}",
		"ratio: {type: number}, share: {type: string}, waitMs: {type: integer}, memoryMi: {type: integer}, cpu: {type: string}, size: {type: integer}, big: {type: string}",
		`{cast: {from: .ratio, to: .ratio, as: Number}}, {cast: {from: .share, to: .share, as: Number}}, {cast: {from: .wait, to: .waitMs, as: Milliseconds}},
		{cast: {from: .memory, to: .memoryMi, as: Quantity, unit: Mi}}, {cast: {from: .cpu, to: .cpu, as: Quantity, unit: m}},
		{cast: {from: .size, to: .size, as: Quantity, unit: "1"}}, {cast: {from: .big, to: .big, as: Quantity, unit: Ti}}`))
	roundTrips{
		"a fraction":               {"v1", `"ratio":"0.5"`, named("v2", "", `"ratio":0.5`)},
		"a whole number":           {"v1", `"ratio":"-7"`, named("v2", "", `"ratio":-7`)},
		"a nought at the end":      {"v1", `"ratio":"0.50"`, named("v2", `v1 {"/ratio":"0.50","@/ratio":["/ratio"]}`, `"ratio":0.5`)},
		"an exponent":              {"v1", `"ratio":"1e3"`, named("v2", `v1 {"/ratio":"1e3","@/ratio":["/ratio"]}`, `"ratio":1000`)},
		"a small number":           {"v1", `"ratio":"1e-7"`, named("v2", "", `"ratio":1e-7`)},
		"a negative nought":        {"v1", `"ratio":"-0.0"`, named("v2", `v1 {"/ratio":"-0.0","@/ratio":["/ratio"]}`, `"ratio":0`)},
		"too large":                {"v1", `"ratio":"1e400"`, named("v2", `v1 {"/ratio":"1e400"}`, ``)},
		"no decimal number":        {"v1", `"ratio":"0x1p-2"`, named("v2", `v1 {"/ratio":"0x1p-2"}`, ``)},
		"no number":                {"v1", `"ratio":"NaN"`, named("v2", `v1 {"/ratio":"NaN"}`, ``)},
		"space":                    {"v1", `"ratio":" 1"`, named("v2", `v1 {"/ratio":" 1"}`, ``)},
		"no text":                  {"v1", `"ratio":""`, named("v2", `v1 {"/ratio":""}`, ``)},
		"a number":                 {"v1", `"share":0.25`, named("v2", "", `"share":"0.25"`)},
		"a large integer":          {"v1", `"share":9007199254740993`, named("v2", "", `"share":"9007199254740993"`)},
		"milliseconds":             {"v1", `"wait":"1.5s"`, named("v2", "", `"waitMs":1500`)},
		"part of a millisecond":    {"v1", `"wait":"1.5ms"`, named("v2", `v1 {"/wait":"1.5ms"}`, ``)},
		"too many milliseconds":    {"v2", `"waitMs":9223372036855`, named("v1", `v2 {"/waitMs":9223372036855}`, ``)},
		"a quantity":               {"v1", `"memory":"2Gi"`, named("v2", "", `"memoryMi":2048`)},
		"a quantity of one":        {"v2", `"memoryMi":1`, named("v1", "", `"memory":"1Mi"`)},
		"no quantity at all":       {"v2", `"memoryMi":0`, named("v1", "", `"memory":"0"`)},
		"written otherwise":        {"v1", `"memory":"2048Mi"`, named("v2", `v1 {"/memory":"2048Mi","@/memory":["/memoryMi"]}`, `"memoryMi":2048`)},
		"bytes":                    {"v1", `"memory":"1048576"`, named("v2", `v1 {"/memory":"1048576","@/memory":["/memoryMi"]}`, `"memoryMi":1`)},
		"decimal":                  {"v1", `"memory":"2G"`, named("v2", `v1 {"/memory":"2G"}`, ``)},
		"half of a unit":           {"v1", `"memory":"1.5Mi"`, named("v2", `v1 {"/memory":"1.5Mi"}`, ``)},
		"another kind of text":     {"v1", `"memory":"much"`, named("v2", `v1 {"/memory":"much"}`, ``)},
		"thousandths":              {"v1", `"cpu":1500`, named("v2", "", `"cpu":"1500m"`)},
		"whole units":              {"v1", `"cpu":-2000`, named("v2", "", `"cpu":"-2"`)},
		"thousands":                {"v2", `"size":3000`, named("v1", "", `"size":"3k"`)},
		"an exponent of ten":       {"v1", `"size":"1e3"`, named("v2", `v1 {"/size":"1e3","@/size":["/size"]}`, `"size":1000`)},
		"a very large exponent":    {"v1", `"size":"1e999999999"`, named("v2", `v1 {"/size":"1e999999999"}`, ``)},
		"a very small exponent":    {"v1", `"size":"1e-999999999"`, named("v2", `v1 {"/size":"1e-999999999"}`, ``)},
		"a sign":                   {"v1", `"size":"-"`, named("v2", `v1 {"/size":"-"}`, ``)},
		"many digits":              {"v1", `"size":"` + strings.Repeat("1", 65) + `"`, named("v2", `v1 {"/size":"`+strings.Repeat("1", 65)+`"}`, ``)},
		"beyond a quantity":        {"v2", `"size":9223372036854775807`, named("v1", `v2 {"/size":9223372036854775807}`, ``)},
		"beyond a quantity of TiB": {"v1", `"big":8388608`, named("v2", `v1 {"/big":8388608}`, ``)},
		"nearly beyond":            {"v1", `"big":-8388607`, named("v2", "", `"big":"-8388607Ti"`)},
	}.check(t, c)
}

// TestValuesOfOtherTypes has tables whose fields are not both strings.
func TestValuesOfOtherTypes(t *testing.T) {
	c := converterOf(t, between(t,
		"enabled: {type: boolean}, disabled: {type: boolean}, level: {type: integer}, code: {type: integer}, part: {type: boolean}, l: {type: array, items: {type: object, properties: {o: {type: boolean}}}}",
		"mode: {type: string}, active: {type: boolean}, grade: {type: string}, status: {type: integer}, part: {type: string}, l: {type: array, items: {type: object, properties: {o: {type: integer}}}}",
		`{values: {from: .enabled, to: .mode, table: [{from: "true", to: Enabled}, {from: "false", to: Disabled}, {from: "false", to: "Off"}]}},
		{values: {from: .disabled, to: .active, table: [{from: "true", to: "false"}, {from: "false", to: "true"}]}},
		{values: {from: .level, to: .grade, table: [{from: "0", to: none}, {from: "-1", to: 'bel"ow'}, {from: "9223372036854775807", to: "true"}]}},
		{values: {from: .code, to: .status, table: [{from: "1", to: "200"}, {from: "2", to: "200"}]}},
		{values: {from: .part, to: .part, table: [{from: "true", to: "1"}]}},
		{values: {from: ".l[*].o", to: ".l[*].o", table: [{from: "true", to: "1"}, {from: "false", to: "0"}]}}`))
	roundTrips{
		"true":                 {"v1", `"enabled":true`, named("v2", "", `"mode":"Enabled"`)},
		"false":                {"v1", `"enabled":false`, named("v2", "", `"mode":"Disabled"`)},
		"another word":         {"v2", `"mode":"Off"`, named("v1", `v2 {"/mode":"Off","@/mode":["/enabled"]}`, `"enabled":false`)},
		"a word not in it":     {"v2", `"mode":"Auto"`, named("v1", `v2 {"/mode":"Auto"}`, ``)},
		"the word true":        {"v2", `"mode":"true"`, named("v1", `v2 {"/mode":"true"}`, ``)},
		"the opposite":         {"v1", `"disabled":true`, named("v2", "", `"active":false`)},
		"null":                 {"v1", `"enabled":null,"disabled":null`, named("v2", "", `"mode":null,"active":null`)},
		"absent":               {"v1", ``, named("v2", "", ``)},
		"an integer":           {"v1", `"level":-1`, named("v2", "", `"grade":"bel\"ow"`)},
		"the largest":          {"v2", `"grade":"true"`, named("v1", "", `"level":9223372036854775807`)},
		"an escaped word":      {"v2", `"grade":"bel\u0022ow"`, named("v1", "", `"level":-1`)},
		"an integer not in it": {"v1", `"level":7`, named("v2", `v1 {"/level":7}`, ``)},
		"a float":              {"v1", `"level":0.0`, named("v2", `v1 {"/level":0.0}`, ``)},
		"two of one":           {"v1", `"code":2`, named("v2", `v1 {"/code":2,"@/code":["/status"]}`, `"status":200`)},
		"copied":               {"v1", `"code":404`, named("v2", "", `"status":404`)},
		"only one in it":       {"v1", `"part":false`, named("v2", `v1 {"/part":false}`, ``)},
		"elements":             {"v1", `"l":[{"o":true},{},{"o":false}]`, named("v2", "", `"l":[{"o":1},{},{"o":0}]`)},
	}.check(t, c)
	stale := annotated("v1", `v2 {"/mode":"Off","@/mode":["/enabled"]}`, `"enabled":true`)
	wantBytes(t, c, stale, "v2", widget("v2", `"mode":"Enabled"`))
}

// TestIndex has lists of the spoke, of the hub, in elements, and with numbers for keys.
func TestIndex(t *testing.T) {
	const name, v = "name: {type: string}, ", "v: {type: integer}"
	c := converterOf(t, between(t,
		"env: "+listOf(name+v)+", m: "+mapOf(v)+", num: "+listOf("name: {type: integer}, "+v)+", l: "+listOf("x: {type: string}, e: "+listOf(name+v)),
		"env: "+mapOf(v)+", m: "+listOf(name+v)+", num: "+mapOf(v)+", l: "+listOf("x: {type: string}, e: "+mapOf(v)),
		`{each: {from: .env, to: .env, key: name}}, {each: {from: .m, to: .m, key: name}}, {each: {from: .num, to: .num, key: name}}, {each: {from: ".l[*].e", to: ".l[*].e", key: name}}`))
	roundTrips{
		"sorted":                    {"v1", `"env":[{"name":"a","v":1},{"name":"b"}]`, named("v2", "", `"env":{"a":{"v":1},"b":{}}`)},
		"bytes stay":                {"v1", `"env":[{"name":"a","v":1e400, "w" : [ ]}]`, named("v2", "", `"env":{"a":{"v":1e400,"w":[ ]}}`)},
		"the key behind":            {"v1", `"env":[{"v":1,"name":"a"}]`, named("v2", "", `"env":{"a":{"v":1}}`)},
		"an order is preserved":     {"v1", `"env":[{"name":"b","v":2},{"name":"a","v":1}]`, named("v2", `v1 {"#/env":["b","a"],"@/env":["/env"]}`, `"env":{"b":{"v":2},"a":{"v":1}}`)},
		"a map":                     {"v1", `"m":{"b":{"v":1},"a":{}}`, named("v2", "", `"m":[{"name":"a"},{"name":"b","v":1}]`)},
		"a key that is there twice": {"v1", `"env":[{"name":"a"},{"name":"\u0061"}]`, named("v2", `v1 {"/env":[{"name":"a"},{"name":"\u0061"}]}`, ``)},
		"no key":                    {"v1", `"env":[{"v":1}]`, named("v2", `v1 {"/env":[{"v":1}]}`, ``)},
		"empty":                     {"v1", `"env":[],"m":{}`, named("v2", "", `"env":{},"m":[]`)},
		"null":                      {"v1", `"env":null`, named("v2", "", `"env":null`)},
		"odd keys":                  {"v1", `"env":[{"name":""},{"name":"a/~\n"},{"name":"é"}]`, named("v2", "", `"env":{"":{},"a/~\n":{},"é":{}}`)},
		"integers":                  {"v1", `"num":[{"name":9},{"name":10}]`, named("v2", "", `"num":{"9":{},"10":{}}`)},
		"an order of integers":      {"v1", `"num":[{"name":10},{"name":9}]`, named("v2", `v1 {"#/num":[10,9],"@/num":["/num"]}`, `"num":{"10":{},"9":{}}`)},
		"no integers":               {"v1", `"num":[{"name":1.0}]`, named("v2", `v1 {"/num":[{"name":1.0}]}`, ``)},
		"in elements":               {"v1", `"l":[{"x":"1","e":[{"name":"b"},{"name":"a"}]},{"e":[]}]`, named("v2", `v1 {"/l/0":{"x":"1","e":[{"name":"b"},{"name":"a"}]},"@/l/0":`+digest(`{"e":{"a":{},"b":{}},"x":"1"}`)+`}`, `"l":[{"x":"1","e":{"b":{},"a":{}}},{"e":{}}]`)},
		"a key that is no integer":  {"v2", `"num":{"07":{}}`, named("v1", `v2 {"/num":{"07":{}}}`, ``)},
	}.check(t, c)
	misfits{
		"a key that is null":     {roundTripTest{"v1", `"env":[{"name":null}]`, named("v2", `v1 {"/env":[{"name":null}]}`, ``)}, named("v1", `v1 {"/env":[{"name":null}]}`, ``)},
		"no objects":             {roundTripTest{"v1", `"env":[null]`, named("v2", `v1 {"/env":[null]}`, ``)}, named("v1", `v1 {"/env":[null]}`, ``)},
		"no list":                {roundTripTest{"v1", `"env":7`, named("v2", `v1 {"/env":7}`, ``)}, named("v1", `v1 {"/env":7}`, ``)},
		"an object with the key": {roundTripTest{"v2", `"env":{"a":{"name":"b"}}`, named("v1", `v2 {"/env":{"a":{"name":"b"}}}`, ``)}, named("v2", `v2 {"/env":{"a":{"name":"b"}}}`, ``)},
	}.check(t, c)
	whenEdited{
		"an edit keeps the order": {`"env":[{"name":"b"},{"name":"c"},{"name":"a"}]`, `"env":{"a":{},"b":{"v":9},"c":{},"0":{}}`, `"env":[{"name":"b","v":9},{"name":"c"},{"name":"a"},{"name":"0"}]`},
		"what is gone stays gone": {`"env":[{"name":"b"},{"name":"a"}]`, `"env":{"a":{}}`, `"env":[{"name":"a"}]`},
		"an order of nothing":     {`"env":[{"name":"b"},{"name":"a"}]`, ``, ``},
	}.check(t, c)
	toSpoke{
		"a stale list": {annotated("v2", `v1 {"/env":[{"name":"a"},{"name":"a"}]}`, `"env":{"a":{}}`), widget("v1", `"env":[{"name":"a"}]`)},
	}.check(t, c)
}

// TestValuesInObjects has values that are fields of objects in the other version, with other fields.
func TestValuesInObjects(t *testing.T) {
	const object, values = "{type: object, properties: {k: {type: string}, v: {type: integer}, w: {type: string}}}", "{type: integer}"
	list := func(of string) string { return "{type: array, items: " + of + "}" }
	held := func(of string) string { return "{type: object, additionalProperties: " + of + "}" }
	c := converterOf(t, between(t, "l: "+list(object)+", m: "+held(object)+", i: "+list(object)+", p: "+list(values),
		"l: "+list(values)+", m: "+held(values)+", i: "+held(values)+", p: "+list(object),
		`{each: {from: .l, to: .l}}, {move: {from: ".l[*].v", to: ".l[*]"}}, {each: {from: .m, to: .m}}, {move: {from: ".m[*].v", to: ".m[*]"}}, {each: {from: .i, to: .i, key: k}}, {move: {from: ".i[*].v", to: ".i[*]"}}, {each: {from: .p, to: .p}}, {move: {from: ".p[*]", to: ".p[*].v"}}`))
	roundTrips{
		"nothing else":              {"v1", `"l":[{"v":2},{"v":1}],"m":{"b":{"v":2},"a":{"v":1}},"i":[{"k":"a","v":1},{"k":"b","v":2}]`, named("v2", "", `"l":[2,1],"m":{"b":2,"a":1},"i":{"a":1,"b":2}`)},
		"to objects":                {"v1", `"p":[2,1,2]`, named("v2", "", `"p":[{"v":2},{"v":1},{"v":2}]`)},
		"empty":                     {"v1", `"l":[],"m":{},"i":[]`, named("v2", "", `"l":[],"m":{},"i":{}`)},
		"null":                      {"v1", `"l":null,"m":null,"i":null`, named("v2", "", `"l":null,"m":null,"i":null`)},
		"an order is preserved":     {"v1", `"i":[{"k":"b","v":2},{"k":"a","v":1}]`, named("v2", `v1 {"#/i":["b","a"],"@/i":["/i"]}`, `"i":{"b":2,"a":1}`)},
		"other fields":              {"v1", `"l":[{"v":2,"w":"x"}]`, named("v2", `v1 {"/l":[{"v":2,"w":"x"}],"@/l":["/l"]}`, `"l":[2]`)},
		"other fields in a map":     {"v1", `"m":{"a":{"w":"x","v":2}}`, named("v2", `v1 {"/m":{"a":{"w":"x","v":2}},"@/m":["/m"]}`, `"m":{"a":2}`)},
		"other fields by a key":     {"v1", `"i":[{"k":"a","v":2,"w":"x"}]`, named("v2", `v1 {"/i":[{"k":"a","v":2,"w":"x"}],"@/i":["/i"]}`, `"i":{"a":2}`)},
		"no value":                  {"v1", `"l":[{"v":2},{"w":"x"}],"m":{"a":{}},"i":[{"k":"a"}]`, named("v2", `v1 {"/i":[{"k":"a"}],"~/l/1":{"w":"x"},"/m":{"a":{}}}`, `"l":[2]`)},
		"a key that is there twice": {"v1", `"i":[{"k":"a","v":1},{"k":"\u0061","v":2}]`, named("v2", `v1 {"/i":[{"k":"a","v":1},{"k":"\u0061","v":2}]}`, ``)},
	}.check(t, c)
	misfits{
		"a null":     {roundTripTest{"v1", `"p":[1,null]`, named("v2", `v1 {"~/p/1":null}`, `"p":[{"v":1}]`)}, named("v1", `v1 {"~/p/1":null}`, `"p":[1]`)},
		"no objects": {roundTripTest{"v1", `"l":[1],"m":{"a":1},"i":[1]`, named("v2", `v1 {"/i":[1],"/l":[1],"/m":{"a":1}}`, ``)}, named("v1", `v1 {"/i":[1],"/l":[1],"/m":{"a":1}}`, ``)},
		"no list":    {roundTripTest{"v1", `"l":7`, named("v2", `v1 {"/l":7}`, ``)}, named("v1", `v1 {"/l":7}`, ``)},
	}.check(t, c)
	const (
		inList = `"l":[{"v":1,"w":"x"},{"v":2,"w":"y"},{"v":1,"w":"z"}]`
		inMap  = `"m":{"a":{"v":1,"w":"x"},"b":{"w":"y","v":2}}`
		byKey  = `"i":[{"k":"b","v":2,"w":"y"},{"k":"a","w":"x","v":1}]`
	)
	whenEdited{
		"a value is added":           {inList, `"l":[1,2,1,3]`, `"l":[{"v":1,"w":"x"},{"v":2,"w":"y"},{"v":1,"w":"z"},{"v":3}]`},
		"values change places":       {inList, `"l":[2,1,1,1]`, `"l":[{"v":2,"w":"y"},{"v":1,"w":"x"},{"v":1,"w":"z"},{"v":1}]`},
		"a value is gone":            {inList, `"l":[2]`, `"l":[{"v":2,"w":"y"}]`},
		"a list that is gone":        {inList, ``, ``},
		"a key has another value":    {inMap, `"m":{"a":9,"c":3}`, `"m":{"a":{"v":9,"w":"x"},"c":{"v":3}}`},
		"a key of a list is changed": {byKey, `"i":{"a":9,"b":2,"0":3}`, `"i":[{"k":"b","v":2,"w":"y"},{"k":"a","w":"x","v":9},{"k":"0","v":3}]`},
	}.check(t, c)
}

// TestDefaultsFromMetadata has fields that get the name and the namespace of the object.
func TestDefaultsFromMetadata(t *testing.T) {
	c := converterOf(t, between(t, "o: {type: object, properties: {a: {type: string}, ns: {type: string}}}, me: {type: string}",
		"o: {type: object, properties: {a: {type: string}}}, l: {type: array, items: {type: object, properties: {b: {type: string}}}}",
		`{default: {from: .o.ns, valueFrom: .metadata.namespace}}, {default: {from: .me, valueFrom: .metadata.name}}`))
	at := func(version, annotations, fields string) string {
		if annotations != "" {
			owner, values, _ := strings.Cut(annotations, " ")
			annotations = `,"annotations":{"` + conversion.AnnotationName("widgets.example.com", owner) + `":` + quoted(preservedText(values)) + `}`
		}
		return `{"apiVersion":"example.com/` + version + `","kind":"Widget","metadata":{"name":"w","namespace":"n"` + annotations + `},` + fields + `}`
	}
	for name, test := range map[string]struct{ from, to, object, there string }{
		"filled":                 {"v2", "v1", at("v2", "", `"o":{"a":"x"}`), at("v1", "", `"o":{"a":"x","ns":"n"},"me":"w"`)},
		"without the parent":     {"v2", "v1", at("v2", "", `"l":[]`), at("v1", `v2 {"/l":[]}`, `"me":"w"`)},
		"another value":          {"v1", "v2", at("v1", "", `"o":{"ns":"other"},"me":"w"`), at("v2", `v1 {"/o/ns":"other"}`, `"o":{}`)},
		"no value":               {"v1", "v2", at("v1", "", `"o":{}`), at("v2", `v1 {"!/me":0,"!/o/ns":0}`, `"o":{}`)},
		"removed on the way":     {"v1", "v2", at("v1", "", `"o":{"ns":"n"},"me":"w"`), at("v2", "", `"o":{}`)},
		"the name of the object": {"v1", "v2", at("v1", "", `"o":{"ns":"w"},"me":"n"`), at("v2", `v1 {"/me":"n","/o/ns":"w"}`, `"o":{}`)},
	} {
		t.Run(name, func(t *testing.T) {
			wantConverted(t, c, test.object, test.to, test.there)
			wantConverted(t, c, test.there, test.from, test.object)
		})
	}
	for _, metadata := range []string{`{"uid":"u"}`, `{"uid":"u","name":"","namespace":7}`, `{"name":"w","uid":"u","namespace":null}`} {
		object := `{"apiVersion":"example.com/v2","kind":"Widget","metadata":` + metadata + `,"o":{"a":"x"}}`
		if got := convert(t, c, object, "v1"); strings.Contains(got, `"ns"`) {
			t.Errorf("an object without a namespace got one: %s", got)
		}
	}
	// A fragment, as server-side apply sends it, has no uid but a name.
	if got := convert(t, c, `{"apiVersion":"example.com/v2","kind":"Widget","metadata":{},"o":{"a":"x"}}`, "v1"); strings.Contains(got, "ns") {
		t.Errorf("a fragment got a default: %s", got)
	}
}

// TestLabels moves values into labels, which restrict their values.
func TestLabels(t *testing.T) {
	c := converterOf(t, between(t, "a: {type: string}, b: {type: string}", "c: {type: string}",
		`{move: {from: .a, to: '.metadata.labels["a"]'}}, {move: {from: .b, to: '.metadata.annotations["b"]'}}, {move: {from: '.metadata.labels["c"]', to: .c}}`))
	roundTrips{
		"legal":        {"v1", `"a":"x-1","b":"any text, /"`, `{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"name":"w","labels":{"a":"x-1"},"annotations":{"b":"any text, /"}}}`},
		"illegal":      {"v1", `"a":"no label"`, named("v2", `v1 {"/a":"no label"}`, ``)},
		"too long":     {"v1", `"a":"` + strings.Repeat("x", 64) + `"`, named("v2", `v1 {"/a":"`+strings.Repeat("x", 64)+`"}`, ``)},
		"from the hub": {"v2", `"c":"no label"`, named("v1", `v2 {"/c":"no label"}`, ``)},
	}.check(t, c)
	misfits{
		"null": {roundTripTest{"v1", `"a":null,"b":null`, named("v2", `v1 {"/a":null,"/b":null}`, ``)}, named("v1", `v1 {"/a":null,"/b":null}`, ``)},
	}.check(t, c)
	forged := annotated("v1", `v2 {"/metadata/labels/a":"no label"}`, `"a":"x"`)
	wantAnyPreserved(t, "forged", `{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"labels":{"a":"x"}}}`, convert(t, c, forged, "v2"))
}

// TestEmptySharedObject has an empty object that is preserved unless it comes back because of the
// image of a restored value in it.
func TestEmptySharedObject(t *testing.T) {
	const label = `{move: {from: .spec.c, to: '.metadata.annotations["l"]'}}`
	const object = `{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"annotations":{"conversion-operator.io/v1.widgets.example.com":` +
		`"{\"format\":3,\"rules\":\"\",\"hidden\":{\"/f\":\"x\",\"/spec/c\":\"y\"}}"}},"spec":{}}`
	for name, test := range map[string]struct{ f, inSpec, rules, want string }{
		"without an image": {"{type: string}", "g: {type: string}", label,
			`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"annotations":{"conversion-operator.io/v2.widgets.example.com":"{\"format\":3,\"rules\":\"\",\"hidden\":{\"/spec\":{}}}"}},"spec":{"c":"y"},"f":"x"}`},
		"the image of a table": {"{type: string}", "f: {type: string}", label + ", {values: {from: .f, to: .spec.f, table: [{from: a, to: b}]}}",
			`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{},"spec":{"c":"y"},"f":"x"}`},
		"the image of a move": {"{x-kubernetes-int-or-string: true}", "f: {type: string}", label + ", {move: {from: .f, to: .spec.f}}",
			`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{},"spec":{"c":"y"},"f":"x"}`},
	} {
		t.Run(name, func(t *testing.T) {
			c := converterOf(t, between(t, "f: "+test.f+", spec: {type: object, properties: {c: {type: string}}}",
				"spec: {type: object, properties: {"+test.inSpec+"}}", test.rules))
			wantAnyPreserved(t, "at v1", test.want, convert(t, c, object, "v1"))
		})
	}
}
