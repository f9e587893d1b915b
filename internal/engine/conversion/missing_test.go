// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestWhenMissing computes a constant that depends on the absence of another field, a list with a fixed
// element, defaults of both directions, and a flag for an object, also in elements of a list.
func TestWhenMissing(t *testing.T) {
	c := converterOf(t, between(t,
		`o: {type: object, properties: {zone: {type: string}, size: {type: string}}}, type: {type: string}, mode: {type: string},
		l: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [id], items: {type: object, properties: {id: {type: string}, tls: {type: object, properties: {key: {type: string}}}}}},
		r: {type: array, items: {type: object, properties: {p: {type: string}}}}`,
		`o: {type: object, properties: {from: {type: string}, name: {type: string}, bytes: {type: integer}}}, attributes: {type: array, items: {type: object, properties: {name: {type: string}, value: {type: string}}}}, level: {type: string},
		l: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [id], items: {type: object, properties: {id: {type: string}, tls: {type: object, properties: {enabled: {type: boolean}, key: {type: string}}}}}},
		r: {type: array, items: {type: object, properties: {q: {type: integer}}}}`,
		`{cel: {from: {zone: .o.zone}, to: {from: .o.from, name: .o.name}, whenMissing: Evaluate,
			forward: {from: "has(self.zone) ? 'Name' : 'Machine'", name: self.zone}, backward: {zone: self.name}}},
		{cel: {from: {size: .o.size}, to: {bytes: .o.bytes}, whenMissing: Evaluate, forward: {bytes: "int(self.?size.orValue('10'))"}, backward: {size: string(self.bytes)}}},
		{cel: {from: {kind: .type}, to: {attributes: .attributes}, whenMissing: Evaluate,
			forward: {attributes: "[{'name': 'id'}] + (has(self.kind) ? [{'name': 'kind', 'value': self.kind}] : [])"},
			backward: {kind: "self.attributes.filter(a, a.name == 'kind')[0].value"}}},
		{cel: {from: {mode: .mode}, to: {level: .level}, whenMissing: Evaluate, forward: {level: "self.?mode.orValue('low')"}, backward: {mode: "self.?level.orValue('none')"}}},
		{cel: {from: {tls: ".l[*].tls"}, to: {tls: ".l[*].tls"}, whenMissing: Evaluate,
			forward: {tls: "has(self.tls) ? {'enabled': dyn(true), ?'key': self.tls.?key.optMap(k, dyn(k))} : {'enabled': dyn(false)}"},
			backward: {tls: "self.tls.enabled ? optional.of({?'key': self.tls.?key}) : optional.none()"}}},
		{cel: {from: {p: ".r[*].p"}, to: {q: ".r[*].q"}, whenMissing: Evaluate, forward: {q: "int(self.?p.orValue('7'))"}, backward: {p: string(self.q)}}}`))
	const ids, low = `"attributes":[{"name":"id"}]`, `"level":"low"`
	roundTrips{
		"nothing":                     {"v1", ``, named("v2", `v1 {"!/mode":true}`, ids+`,`+low)},
		"an object":                   {"v1", `"mode":"low","o":{}`, named("v2", `v1 {"!/o/size":true}`, `"o":{"from":"Machine","bytes":10},`+ids+`,`+low)},
		"a value":                     {"v1", `"mode":"low","o":{"zone":"a","size":"10"}`, named("v2", ``, `"o":{"from":"Name","name":"a","bytes":10},`+ids+`,`+low)},
		"a value of its own":          {"v2", `"o":{"from":"Machine","bytes":11},` + ids + `,` + low, named("v1", ``, `"o":{"size":"11"},"mode":"low"`)},
		"a constant that is replaced": {"v2", `"o":{"from":"Odd","bytes":11},` + ids + `,` + low, named("v1", `v2 {"/o/from":"Odd"}`, `"o":{"size":"11"},"mode":"low"`)},
		"absent":                      {"v2", `"o":{},` + ids + `,` + low, named("v1", `v2 {"!/o/bytes":true,"!/o/from":true}`, `"o":{},"mode":"low"`)},
		"absent at the root":          {"v2", ``, named("v1", `v2 {"!/attributes":true,"!/level":true}`, `"mode":"none"`)},
		"an empty list":               {"v2", `"attributes":[],` + low, named("v1", `v2 {"/attributes":[]}`, `"mode":"low"`)},
		"elements with keys": {"v1", `"mode":"low","l":[{"id":"a"},{"id":"b","tls":{"key":"k"}},{"id":"c","tls":{}}]`,
			named("v2", ``, `"l":[{"id":"a","tls":{"enabled":false}},{"id":"b","tls":{"enabled":true,"key":"k"}},{"id":"c","tls":{"enabled":true}}],`+ids+`,`+low)},
		"an element without": {"v2", `"l":[{"id":"a"}],` + ids + `,` + low, named("v1", `v2 {"!/l/[id=\"a\"]/tls":true}`, `"l":[{"id":"a"}],"mode":"low"`)},
		"elements without keys": {"v1", `"mode":"low","r":[{},{"p":"7"}]`,
			named("v2", `v1 {"/r/0":{},"@/r/0":`+digest(`{"q":7}`)+`}`, `"r":[{"q":7},{"q":7}],`+ids+`,`+low)},
	}.check(t, c)
	misfits{
		"null": {roundTripTest{"v1", `"mode":null`, named("v2", `v1 {"/mode":null}`, ids+`,`+low)}, named("v1", `v1 {"/mode":null}`, `"mode":"low"`)},
	}.check(t, c)
	t.Run("a fragment", func(t *testing.T) {
		fragment := widget("v1", `"o":{},"l":[{"id":"a"}]`)
		wantRoundTrip(t, c, "v1", fragment, widget("v2", `"o":{},"l":[{"id":"a"}]`), fragment)
	})
	t.Run("an edit of what was computed", func(t *testing.T) {
		there := named("v2", `v1 {"!/mode":true}`, ids+`,"level":"high"`)
		wantBytes(t, c, there, "v1", named("v1", ``, `"mode":"high"`))
	})
	t.Run("a deletion of what was computed", func(t *testing.T) {
		there := named("v2", `v1 {"!/mode":true}`, ids)
		back := convert(t, c, there, "v1")
		wantAnyPreserved(t, "back", named("v1", ``, `"mode":"none"`), back)
		wantAnyPreserved(t, "there again", named("v2", ``, ids), convert(t, c, back, "v2"))
	})
}

// TestMissingKey reads a key of a map that may be missing, and computes with a value that may be.
func TestMissingKey(t *testing.T) {
	c := converterOf(t, between(t, `m: {type: object, additionalProperties: {type: string}}, c: {type: integer}`, `a: {type: string}, d: {type: integer}`,
		`{cel: {from: {m: .m, c: .c}, to: {a: .a, d: .d}, forward: {a: "self.m[?'app'].orValue('none')", d: "self.?c.optMap(c, c * 60)"},
			backward: {m: "{'app': self.a}", c: "self.?d.optMap(d, d / 60)"}}}`))
	roundTrips{
		"all":    {"v1", `"m":{"app":"x"},"c":2`, named("v2", ``, `"a":"x","d":120`)},
		"no key": {"v1", `"m":{}`, named("v2", `v1 {"/m":{}}`, `"a":"none"`)},
	}.check(t, c)
}

// TestWhenMissingInAnEmptiedObject has a computed field in an object that both versions have, and that
// loses its other field to another object: {} and a missing object stay different.
func TestWhenMissingInAnEmptiedObject(t *testing.T) {
	c := converterOf(t, between(t, `o: {type: object, properties: {m: {type: string}}}, g: {type: string}`, `o: {type: object, properties: {f: {type: string}}}, t: {type: string}`,
		`{move: {from: .o.m, to: .t}}, {cel: {from: {g: .g}, to: {f: .o.f}, whenMissing: Evaluate, forward: {f: "self.?g.orValue('c')"}, backward: {g: "self.f == 'c' ? optional.none() : optional.of(self.f)"}}}`))
	roundTrips{
		"nothing":             {"v1", ``, named("v2", ``, ``)},
		"an empty object":     {"v1", `"o":{}`, named("v2", `v1 {"/o":{}}`, `"o":{"f":"c"}`)},
		"a moved value":       {"v1", `"o":{"m":"1"}`, named("v2", ``, `"o":{"f":"c"},"t":"1"`)},
		"only a moved value":  {"v2", `"t":"1"`, named("v1", `v2 {"!/o/f":true}`, `"o":{"m":"1"}`)},
		"only the constant":   {"v2", `"o":{"f":"c"}`, named("v1", `v2 {"/o":{"f":"c"}}`, ``)},
		"an empty hub object": {"v2", `"o":{}`, named("v1", `v2 {"!/o/f":true}`, `"o":{}`)},
		"another value":       {"v2", `"o":{"f":"d"}`, named("v1", ``, `"g":"d"`)},
		"no object for it":    {"v1", `"g":"d"`, named("v2", ``, `"o":{"f":"d"}`)},
	}.check(t, c)
}

// TestWhenMissingOnAnAnnotation computes an annotation from nothing: back, the object has annotations only if it
// had some.
func TestWhenMissingOnAnAnnotation(t *testing.T) {
	c := converterOf(t, between(t, `g: {type: string}`, `g: {type: string}, extra: {type: boolean}`,
		`{cel: {from: {style: '.metadata.annotations["style"]'}, to: {extra: .extra}, whenMissing: Evaluate,
			forward: {extra: "self.?style.orValue('on') == 'on'"}, backward: {style: "self.?extra.orValue(false) ? 'on' : 'off'"}}}`))
	const absent = `"conversion-operator.io/v2.widgets.example.com":"{\"format\":3,\"absent\":[\"/extra\"]`
	for name, test := range map[string]struct{ annotations, there string }{
		"none":    {``, `,"annotations":{"style":"off",` + absent + `}"}`},
		"another": {`,"annotations":{"a":"b"}`, `,"annotations":{"a":"b","style":"off",` + absent + `}"}`},
	} {
		t.Run(name, func(t *testing.T) {
			object := func(version, annotations string) string {
				return strings.Replace(named(version, "", `"g":"1"`), `"name":"w"`, `"name":"w"`+annotations, 1)
			}
			wantRoundTrip(t, c, "v2", object("v2", test.annotations), object("v1", test.there), object("v2", test.annotations))
		})
	}
}

// TestMetadataInExpressions fills in the namespace of the object for a reference, if there is one.
func TestMetadataInExpressions(t *testing.T) {
	c := converterOf(t, between(t, `ref: {type: object, properties: {name: {type: string}, namespace: {type: string}}}, id: {type: string}`, `target: {type: string}, title: {type: string}`,
		`{cel: {from: {name: .ref.name, namespace: .ref.namespace}, to: {name: .target}, forward: {name: self.name}, backward: {name: self.name, namespace: "has(self.name) ? metadata.namespace : ''"}}},
		{cel: {from: {id: .id}, to: {title: .title}, whenMissing: Evaluate, forward: {title: "has(self.id) ? self.id : metadata.name + '-' + metadata.namespace"}, backward: {id: self.title}}}`))
	object := func(version, annotation, fields string) string {
		return strings.Replace(named(version, annotation, fields), `"name":"w"`, `"name":"w","namespace":"team-\u0061"`, 1)
	}
	for name, test := range map[string]struct{ from, fields, want string }{
		"of the namespace": {"v1", `"ref":{"name":"x","namespace":"team-a"},"id":"1"`, object("v2", ``, `"target":"x","title":"1"`)},
		"filled":           {"v2", `"target":"x","title":"1"`, object("v1", ``, `"ref":{"name":"x","namespace":"team-a"},"id":"1"`)},
		"of another":       {"v1", `"ref":{"name":"x","namespace":"b"},"id":"1"`, object("v2", `v1 {"/ref/name":"x","/ref/namespace":"b","@/ref/name":["/target"],"@/ref/namespace":["/target"]}`, `"target":"x","title":"1"`)},
		"nothing":          {"v1", ``, object("v2", `v1 {"!/id":true}`, `"title":"w-team-a"`)},
	} {
		t.Run(name, func(t *testing.T) {
			wantRoundTrip(t, c, test.from, object(test.from, "", test.fields), test.want, object(test.from, "", test.fields))
		})
	}
	t.Run("a fragment without metadata", func(t *testing.T) {
		fragment := widget("v2", `"target":"x"`)
		wantRoundTrip(t, c, "v2", fragment, widget("v1", `"ref":{"name":"x"}`), fragment)
	})
	result := between(t, "a: {type: string}", "b: {type: string}", `{cel: {from: {a: .a}, to: {b: .b}, forward: {b: metadata.uid}, backward: {a: self.b}}}`)
	expect.Equal(t, "number of errors", 1, len(result.Errors))
	expect.Contains(t, "errors", fmt.Sprint(result.Errors), "undefined field 'uid'")
}
