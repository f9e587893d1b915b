// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/internal/conversion/shape/strip"
)

// policy has a rule of each kind, as conversion.Ruleset.Marshal writes it: a move that empties an
// object, a table, an expression, an unsorted list, fields that only the spoke has, a field that
// another spoke shares, lists with and without keys, and a default.
const policy = `{"format": 3, "crd": "widgets.example.com", "group": "example.com", "kind": "Widget", "hub": "v2", "versions": ["v1", "v2", "v3"],
	"schemas": {"v1": %s},
	"spokes": [
		{"version": "v1", "root": {
			"moves": [{"spoke": ["a"], "hub": ["b"]}, {"spoke": ["s", "m"], "hub": ["sm"]}],
			"shared": [{"path": ["s"], "spoke": [["s", "m"]]}],
			"exchanges": [
				{"spoke": [{"path": ["p"]}], "hub": [{"path": ["p"]}], "table": [["Never", "Serial"], ["Forbid", "Serial"]]},
				{"spoke": [{"path": ["x"]}, {"path": ["y"]}], "hub": [{"path": ["xy"]}], "cel": {
					"spoke": [{"name": "x", "schema": {"type": "string"}, "expression": "self.xy"}, {"name": "y", "schema": {"type": "string"}, "expression": "self.xy"}],
					"hub": [{"name": "xy", "schema": {"type": "string"}, "expression": "self.x"}]}},
				{"spoke": [{"path": ["l"]}], "hub": [{"path": ["m"]}], "index": {"key": "name"}}],
			"defaults": [{"path": ["f", "d"], "anchor": 1, "value": "full"}],
			"onlySpoke": [{"path": ["o", "own"], "anchor": 1}, {"path": ["n"], "anchor": 0, "siblings": ["v3"]}],
			"collections": [
				{"path": ["e"], "scope": {"onlySpoke": [{"path": ["w"], "anchor": 0}]}},
				{"path": ["k"], "keys": ["name"], "scope": {"onlySpoke": [{"path": ["w"], "anchor": 0}]}}]}},
		{"version": "v3", "root": {"onlySpoke": [{"path": ["n"], "anchor": 0, "siblings": ["v1"]}]}}]}`

// schema is the schema of v1. No rule claims the fields of free.
const schema = `{"type": "object", "properties": {
	"a": {"type": "integer"}, "s": {"type": "object", "properties": {"m": {"type": "integer"}}}, "p": {"type": "string"},
	"x": {"type": "string", "maxLength": 3}, "y": {"type": "string"},
	"l": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
	"f": {"type": "object", "properties": {"d": {"type": "string", "enum": ["full", "half"]}}},
	"o": {"type": "object", "properties": {"own": {"type": "integer"}}}, "n": {"type": "string"},
	"e": {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "string"}, "w": {"type": "integer"}}}},
	"k": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}, "w": {"type": "integer"}}}},
	"free": {"type": "object", "properties": {
		"text": {"type": "string", "maxLength": 3},
		"box": {"type": "object", "properties": {"one": {"type": "string"}, "two": {"type": "string"}}},
		"list": {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "string"}, "w": {"type": "integer"}}}},
		"named": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {
			"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "w": {"type": "integer"}}}}}}}}`

func newPolicy(t *testing.T) *Converter {
	t.Helper()
	var props apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal([]byte(schema), &props); err != nil {
		t.Fatal(err)
	}
	stripped, err := strip.Of(&props)
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(fmt.Appendf(nil, policy, stripped))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// widget encodes an object. The annotations have no member format.
func widget(version string, annotations map[string]string, fields string) string {
	texts := map[string]any{}
	for owner, text := range annotations {
		switch members, isObject := decodeObject(text); {
		case owner == other:
			texts[owner] = text
		case isObject && members["format"] == nil:
			members["format"] = format
			text = marshal(members)
			fallthrough
		default:
			texts[annotationName("widgets.example.com", owner)] = text
		}
	}
	metadata := map[string]any{"name": "a", "uid": "b"}
	if len(texts) > 0 {
		metadata["annotations"] = texts
	}
	return `{"apiVersion":"example.com/` + version + `","kind":"Widget","metadata":` + marshal(metadata) + fields + `}`
}

// conversion is a conversion between two versions, with the annotations by version, and the fields.
type conversion struct {
	from        string
	annotations map[string]string
	fields      string
	to          string
	preserved   map[string]string
	want        string
}

// other is an annotation that the converter does not own.
const other = "a/b"

type annotated = map[string]string

func (test conversion) run(t *testing.T) {
	object, err := Decode([]byte(widget(test.from, test.annotations, test.fields)))
	if err != nil {
		t.Fatal(err)
	}
	want, err := Decode([]byte(widget(test.to, test.preserved, test.want)))
	if err != nil {
		t.Fatal(err)
	}
	got, err := newPolicy(t).Convert(object, test.to)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPreserve checks which data is written to the annotation.
func TestPreserve(t *testing.T) {
	for name, test := range map[string]conversion{
		"a move":                   {"v1", nil, `,"a":1`, "v2", nil, `,"b":1`},
		"an exact table value":     {"v1", nil, `,"p":"Never"`, "v2", nil, `,"p":"Serial"`},
		"what the hub lacks":       {"v1", nil, `,"o":{"own":1}`, "v2", annotated{"v1": `{"fields":{"/o/own":1}}`}, `,"o":{}`},
		"a field with an image":    {"v1", nil, `,"p":"Forbid"`, "v2", annotated{"v1": `{"fields":{"/p":"Forbid"},"images":{"/p":["/p"]}}`}, `,"p":"Serial"`},
		"a field without an image": {"v1", nil, `,"y":"1"`, "v2", annotated{"v1": `{"fields":{"/y":"1"}}`}, ``},
		"an absence":               {"v1", nil, `,"f":{}`, "v2", annotated{"v1": `{"absent":["/f/d"]}`}, `,"f":{}`},
		"a filled field":           {"v1", nil, `,"f":{"d":"full"}`, "v2", nil, `,"f":{}`},
		"an order":                 {"v1", nil, `,"l":[{"name":"b"},{"name":"a"}]`, "v2", annotated{"v1": `{"orders":{"/l":["b","a"]},"images":{"/l":["/m"]}}`}, `,"m":{"a":{},"b":{}}`},
		"a list that has no index": {"v1", nil, `,"l":[{}]`, "v2", annotated{"v1": `{"fields":{"/l":[{}]}}`}, ``},
		"an element with keys":     {"v1", nil, `,"k":[{"name":"/","w":1}]`, "v2", annotated{"v1": `{"fields":{"/k/[name=\"~1\"]/w":1}}`}, `,"k":[{"name":"/"}]`},
		"an element without keys": {
			"v1", nil, `,"e":[{"id":"a"},{"id":"b","w":1}]`, "v2",
			annotated{"v1": `{"fields":{"/e/1":{"id":"b","w":1}},"images":{"/e/1":"` + digest(map[string]any{"id": "b"}).(string) + `"}}`}, `,"e":[{"id":"a"},{"id":"b"}]`,
		},
		"an emptied object goes": {"v1", nil, `,"s":{"m":1}`, "v2", nil, `,"sm":1`},
		"an emptied object that a third version needs": {
			"v1", annotated{"v3": `{"fields":{"/s/z":1}}`}, `,"s":{"m":1}`, "v2", annotated{"v3": `{"fields":{"/s/z":1}}`}, `,"s":{},"sm":1`,
		},
		"the annotation of another resource": {
			"v1", annotated{"!v1.gadgets.example.com": `{"format":2,"fields":{"/a":1}}`}, ``, "v2", annotated{"!v1.gadgets.example.com": `{"format":2,"fields":{"/a":1}}`}, ``,
		},
	} {
		t.Run(name, test.run)
	}
}

// TestRestore checks the first rule: rules restore the values that they look up.
func TestRestore(t *testing.T) {
	forbid := annotated{"v1": `{"fields":{"/p":"Forbid"},"images":{"/p":["/p"]}}`}
	own := annotated{"v1": `{"fields":{"/o/own":1}}`}
	two := annotated{"v1": `{"orders":{"/l":["b","a"]},"images":{"/l":["/m"]}}`}
	element := annotated{"v1": `{"fields":{"/e/1":{"id":"b","w":1}},"images":{"/e/1":"` + digest(map[string]any{"id": "b"}).(string) + `"}}`}
	for name, test := range map[string]conversion{
		"what converts to what is there":      {"v2", forbid, `,"p":"Serial"`, "v1", nil, `,"p":"Forbid"`},
		"an edit wins":                        {"v2", forbid, `,"p":"Parallel"`, "v1", nil, `,"p":"Parallel"`},
		"its image was removed":               {"v2", forbid, ``, "v1", nil, ``},
		"it had no image":                     {"v2", annotated{"v1": `{"fields":{"/p":"Forbid"}}`}, ``, "v1", nil, `,"p":"Forbid"`},
		"its image was another field":         {"v2", annotated{"v1": `{"fields":{"/p":"Forbid"},"images":{"/p":["/q"]}}`}, ``, "v1", nil, `,"p":"Forbid"`},
		"in its place":                        {"v2", own, `,"o":{}`, "v1", nil, `,"o":{"own":1}`},
		"its place is gone":                   {"v2", own, ``, "v1", nil, ``},
		"a value that does not fit":           {"v2", annotated{"v1": `{"fields":{"/o/own":"1"}}`}, `,"o":{}`, "v1", annotated{"v1": `{"fields":{"/o/own":"1"}}`}, `,"o":{}`},
		"one of two that does not fit":        {"v2", annotated{"v1": `{"fields":{"/x":"long","/y":"1"}}`}, ``, "v1", annotated{"v1": `{"fields":{"/x":"long"}}`}, `,"y":"1"`},
		"it did not fit, and now it does":     {"v2", annotated{"v1": `{"fields":{"/x":"1","/y":"2"}}`}, ``, "v1", nil, `,"x":"1","y":"2"`},
		"an absence":                          {"v2", annotated{"v1": `{"absent":["/f/d"]}`}, `,"f":{}`, "v1", nil, `,"f":{}`},
		"a default":                           {"v2", nil, `,"f":{}`, "v1", nil, `,"f":{"d":"full"}`},
		"a default for what does not fit":     {"v2", annotated{"v1": `{"fields":{"/f/d":"none"}}`}, `,"f":{}`, "v1", annotated{"v1": `{"fields":{"/f/d":"none"}}`}, `,"f":{"d":"full"}`},
		"an order":                            {"v2", two, `,"m":{"a":{},"b":{}}`, "v1", nil, `,"l":[{"name":"b"},{"name":"a"}]`},
		"an order, and a new element":         {"v2", two, `,"m":{"a":{},"b":{},"c":{}}`, "v1", nil, `,"l":[{"name":"b"},{"name":"a"},{"name":"c"}]`},
		"the order of a list that is gone":    {"v2", two, ``, "v1", nil, ``},
		"an element by its keys":              {"v2", annotated{"v1": `{"fields":{"/k/[name=\"a\"]/w":1}}`}, `,"k":[{"name":"b"},{"name":"a"}]`, "v1", nil, `,"k":[{"name":"b"},{"name":"a","w":1}]`},
		"an element by its keys that is gone": {"v2", annotated{"v1": `{"fields":{"/k/[name=\"a\"]/w":1}}`}, `,"k":[{"name":"b"}]`, "v1", nil, `,"k":[{"name":"b"}]`},
		"an element at its index":             {"v2", element, `,"e":[{"id":"b"},{"id":"b"}]`, "v1", nil, `,"e":[{"id":"b"},{"id":"b","w":1}]`},
		"an element at another index":         {"v2", element, `,"e":[{"id":"b"}]`, "v1", nil, `,"e":[{"id":"b","w":1}]`},
		"an element that was edited":          {"v2", element, `,"e":[{"id":"a"},{"id":"c"}]`, "v1", nil, `,"e":[{"id":"a"},{"id":"c"}]`},
		"an element by other rules": {
			"v2", annotated{"v1": `{"fields":{"/e/0":{"id":"was","w":1}},"images":{"/e/0":"` + digest(map[string]any{"id": "b"}).(string) + `"}}`}, `,"e":[{"id":"a"},{"id":"b"}]`,
			"v1", nil, `,"e":[{"id":"a"},{"id":"b","w":1}]`,
		},
		"an element that does not fit": {
			"v2", annotated{"v1": `{"fields":{"/e/0":{"w":"1"}}}`}, `,"e":[{}]`, "v1", annotated{"v1": `{"fields":{"/e/0":{"w":"1"}}}`}, `,"e":[{}]`,
		},
		"a field that another spoke has, too": {
			"v2", annotated{"v3": `{"fields":{"/n":"x","/z":1}}`}, ``, "v1", annotated{"v3": `{"fields":{"/z":1}}`}, `,"n":"x"`,
		},
		"its own counts more": {
			"v2", annotated{"v1": `{"fields":{"/n":"own"}}`, "v3": `{"fields":{"/n":"x"}}`}, ``, "v1", nil, `,"n":"own"`,
		},
		"an annotation of another spoke with nothing in common": {
			"v2", annotated{"v3": `{"fields":{"/z":1},"dropped":["/y"]}`}, ``, "v1", annotated{"v3": `{"fields":{"/z":1},"dropped":["/y"]}`}, ``,
		},
	} {
		t.Run(name, test.run)
	}
}

// TestMerge checks the second rule: values at fields of the schema that no rule looks up are merged.
func TestMerge(t *testing.T) {
	b := digest(map[string]any{"id": "b"}).(string)
	for name, test := range map[string]conversion{
		"a field":                        {"v2", annotated{"v1": `{"fields":{"/free/text":"x"}}`}, ``, "v1", nil, `,"free":{"text":"x"}`},
		"live data":                      {"v2", annotated{"v1": `{"fields":{"/free/text":"x"}}`}, `,"free":{"text":"y"}`, "v1", nil, `,"free":{"text":"y"}`},
		"a value that does not fit":      {"v2", annotated{"v1": `{"fields":{"/free/text":"long"}}`}, ``, "v1", annotated{"v1": `{"fields":{"/free/text":"long"}}`}, ``},
		"an object":                      {"v2", annotated{"v1": `{"fields":{"/free/box":{"one":"1","two":"2"}}}`}, `,"free":{"box":{"one":"0"}}`, "v1", nil, `,"free":{"box":{"one":"0","two":"2"}}`},
		"a member that does not fit":     {"v2", annotated{"v1": `{"fields":{"/free/box":{"one":1,"two":"2"}}}`}, `,"free":{"box":{}}`, "v1", annotated{"v1": `{"fields":{"/free/box/one":1}}`}, `,"free":{"box":{"two":"2"}}`},
		"an element by its keys":         {"v2", annotated{"v1": `{"fields":{"/free/named/[name=\"a\"]/w":1}}`}, `,"free":{"named":[{"name":"a"}]}`, "v1", nil, `,"free":{"named":[{"name":"a","w":1}]}`},
		"never a missing element":        {"v2", annotated{"v1": `{"fields":{"/free/named/[name=\"a\"]/w":1}}`}, ``, "v1", annotated{"v1": `{"fields":{"/free/named/[name=\"a\"]/w":1}}`}, ``},
		"an element that has keys now":   {"v2", annotated{"v1": `{"fields":{"/free/named/0":{"name":"a","w":1}}}`}, `,"free":{"named":[{"name":"b"},{"name":"a"}]}`, "v1", nil, `,"free":{"named":[{"name":"b"},{"name":"a","w":1}]}`},
		"an element by its digest":       {"v2", annotated{"v1": `{"fields":{"/free/list/0":{"id":"b","w":1}},"images":{"/free/list/0":"` + b + `"}}`}, `,"free":{"list":[{"id":"a"},{"id":"b"}]}`, "v1", nil, `,"free":{"list":[{"id":"a"},{"id":"b","w":1}]}`},
		"an element that was edited":     {"v2", annotated{"v1": `{"fields":{"/free/list/0":{"id":"b","w":1}},"images":{"/free/list/0":"` + b + `"}}`}, `,"free":{"list":[{"id":"a"}]}`, "v1", annotated{"v1": `{"fields":{"/free/list/0":{"id":"b","w":1}},"images":{"/free/list/0":"` + b + `"}}`}, `,"free":{"list":[{"id":"a"}]}`},
		"an element by other keys":       {"v2", annotated{"v1": `{"fields":{"/k/[id=1]/w":1}}`}, `,"k":[{"name":"a","id":1}]`, "v1", nil, `,"k":[{"name":"a","id":1,"w":1}]`},
		"an absence":                     {"v2", annotated{"v1": `{"absent":["/free/text"]}`}, ``, "v1", nil, ``},
		"another annotation":             {"v2", annotated{"v1": `{"fields":{"/metadata/annotations/a~1b":"_"}}`}, ``, "v1", annotated{other: "_"}, ``},
		"a label that cannot be":         {"v2", annotated{"v1": `{"fields":{"/metadata/labels/a~1b":"_","/metadata/labels/a b":"x"}}`}, ``, "v1", annotated{"v1": `{"fields":{"/metadata/labels/a~1b":"_","/metadata/labels/a b":"x"}}`}, ``},
		"metadata that is none of users": {"v2", annotated{"v1": `{"fields":{"/metadata/finalizers":["x"]}}`}, ``, "v1", annotated{"v1": `{"fields":{"/metadata/finalizers":["x"]}}`}, ``},
	} {
		t.Run(name, test.run)
	}
}

// TestRetain checks the third rule: values that cannot be restored or merged stay in the annotation.
func TestRetain(t *testing.T) {
	gone := annotated{"v1": `{"fields":{"/gone":1},"absent":["/gone2"],"orders":{"/gone3":["a"]},"images":{"/gone":["/q"],"/gone3":["/r"]}}`}
	for name, test := range map[string]conversion{
		"at its version":                  {"v2", gone, ``, "v1", gone, ``},
		"and on":                          {"v1", gone, ``, "v2", gone, ``},
		"with what is preserved now":      {"v1", annotated{"v1": `{"fields":{"/gone":1}}`}, `,"o":{"own":1}`, "v2", annotated{"v1": `{"fields":{"/gone":1,"/o/own":1}}`}, `,"o":{}`},
		"until there is live data":        {"v1", annotated{"v1": `{"fields":{"/gone":1,"/e/0":{},"/k/[name=\"a\"]":{}}}`}, `,"gone":2,"e":[{}],"k":[{"name":"a"}]`, "v2", nil, `,"gone":2,"e":[{}],"k":[{"name":"a"}]`},
		"until there is all of it":        {"v1", annotated{"v1": `{"fields":{"/free/box":{"one":1}}}`}, `,"free":{"box":{}}`, "v2", annotated{"v1": `{"fields":{"/free/box":{"one":1}}}`}, `,"free":{"box":{}}`},
		"what is in an object that is":    {"v2", annotated{"v1": `{"fields":{"/o/own":1}}`, "v2": `{"fields":{"/o":{}}}`}, ``, "v1", annotated{"v1": `{"fields":{"/o/own":1}}`, "v2": `{"fields":{"/o":{}}}`}, ``},
		"at its version, where it is":     {"v1", gone, `,"a":1`, "v1", gone, `,"a":1`},
		"in a version without a schema":   {"v2", annotated{"v3": `{"fields":{"/gone":1}}`}, ``, "v3", annotated{"v3": `{"fields":{"/gone":1}}`}, ``},
		"what no pointer leads to":        {"v2", annotated{"v1": `{"fields":{"gone":1}}`}, ``, "v1", annotated{"v1": `{"fields":{"gone":1}}`}, ``},
		"text that is no JSON":            {"v2", annotated{"v1": `{`}, ``, "v1", annotated{"v1": `{`}, ``},
		"another format":                  {"v2", annotated{"v1": `{"format":3}`}, ``, "v1", annotated{"v1": `{"format":3}`}, ``},
		"members of other types":          {"v2", annotated{"v1": `{"fields":[1]}`}, ``, "v1", annotated{"v1": `{"fields":[1]}`}, ``},
		"text under the name":             {"v1", annotated{"v1": `{`}, `,"o":{"own":1}`, "v2", annotated{"v1": `{"fields":{"/o/own":1},"unreadable":"{"}`}, `,"o":{}`},
		"text that was under the name":    {"v2", annotated{"v1": `{"fields":{"/o/own":1},"unreadable":"{"}`}, `,"o":{}`, "v1", annotated{"v1": `{`}, `,"o":{"own":1}`},
		"compressed text that is damaged": {"v2", annotated{"v1": `{"deflate":"/w=="}`}, ``, "v1", annotated{"v1": `{"deflate":"/w=="}`}, ``},
		"compressed text":                 {"v2", annotated{"v1": `{"deflate":"q1ZKyy/KTSxRsjLSUUrLTM1JKVayqlbSz9PPV7JSqlCqrQUA"}`}, ``, "v1", annotated{"v1": `{"fields":{"/n/o":"x"}}`}, ``},
	} {
		t.Run(name, test.run)
	}
}

func TestAnnotationName(t *testing.T) {
	for resource, want := range map[string]string{
		"widgets.example.com": "conversion-operator.io/v1.widgets.example.com",
		"a234567890123456789012345678901234567890.example.com.of.some.more": "conversion-operator.io/v1.a234567890123456789012345678901234567890.ex-cb3720dd7dae46e8",
	} {
		if got := annotationName(resource, "v1"); got != want {
			t.Errorf("the annotation of %s is %s and not %s", resource, got, want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for _, ruleset := range []string{`{"format":3,"spokes":[{"root":{"unheardOf":[]}}]}`, `{"format":4}`} {
		if _, err := New([]byte(ruleset)); err == nil {
			t.Errorf("a ruleset that says more than the reference knows is not refused: %s", ruleset)
		}
	}
}
