// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// edits are edits at the other version: of the object at v1, or at v2 if its version says so. want is the object that comes
// back.
var edits = map[string]struct {
	v1, v2, rules      string
	object, edit, with string
	want               string
}{
	"another field of the same expression": {
		v1: "services: {type: object, additionalProperties: {type: object, properties: {replicas: {type: integer}, sidecar: {type: string}}}}",
		v2: "components: {type: array, items: {type: object, properties: {name: {type: string}, replicas: {type: integer}}}}",
		rules: `{cel: {from: {s: .services}, to: {c: .components}, forward: {c: "self.s.transformList(k, v, {'name': dyn(k), ?'replicas': v.?replicas.optMap(r, dyn(r))})"},
			backward: {s: "self.c.transformMapEntry(i, e, {e.name: {?'replicas': e.?replicas.optMap(r, dyn(r))}})"}}}`,
		object: `"services":{"a":{"replicas":1,"sidecar":"x"},"b":{"replicas":1,"sidecar":"y"}}`, edit: `"replicas":1`, with: `"replicas":2`,
		want: `"services":{"a":{"replicas":2,"sidecar":"x"},"b":{"replicas":1,"sidecar":"y"}}`,
	},
	"a default of the schema": {
		v1: "timeout: {type: string}, label: {type: string}", v2: "seconds: {type: integer, default: 30}, label: {type: string}",
		rules:  "{cast: {from: .timeout, to: .seconds, as: Seconds}}",
		object: `"timeout":"500ms","label":"a"`, edit: `"label":"a"`, with: `"label":"b","seconds":30`,
		want: `"timeout":"500ms","label":"b"`,
	},
	"a default of the schema in an element without keys": {
		v1: "l: {type: array, items: {type: object, properties: {timeout: {type: string}, a: {type: string}}}}", v2: "l: {type: array, items: {type: object, properties: {seconds: {type: integer, default: 30}, a: {type: string}}}}",
		rules:  `{cast: {from: ".l[*].timeout", to: ".l[*].seconds", as: Seconds}}`,
		object: `"l":[{"a":"1","timeout":"700ms"},{"a":"2","timeout":"60s"}]`, edit: `{"a":"1"}`, with: `{"a":"1","seconds":30}`,
		want: `"l":[{"a":"1","timeout":"700ms"},{"a":"2","timeout":"60s"}]`,
	},
	"a status that only one rule reads": {
		v1: "spec: {type: object, properties: {pool: {type: string}}}, status: {type: object, properties: {name: {type: string}}}",
		v2: "spec: {type: object, properties: {ref: {type: string}}}, status: {type: object, properties: {name: {type: string}}}",
		rules: `{cel: {from: {pool: .spec.pool, name: .status.name}, to: {ref: .spec.ref, name: .status.name},
			forward: {ref: "has(self.name) ? self.name : 'pool-' + self.pool", name: "self.?name"}, backward: {pool: "self.ref.startsWith('pool-') ? self.ref.substring(5) : 'none'", name: "self.?name"}}}`,
		object: `"spec":{"pool":"fast"}`, edit: `"spec":{"ref":"pool-fast"}`, with: `"spec":{"ref":"pool-fast"},"status":{"name":"abc"}`,
		want: `"spec":{"pool":"fast"},"status":{"name":"abc"}`,
	},
	"a field of one element": {
		v1: "l: " + keyedBy("name", ", a: {type: string}, h: {type: string}"), v2: "a: {type: string}", rules: `{move: {from: ".l[name=main].a", to: .a}}`,
		object: `"l":[{"name":"side","a":"1","h":"x"},{"name":"main","a":"2","h":"y"}]`, edit: `"a":"2"`, with: `"a":"3"`,
		want: `"l":[{"name":"side","a":"1","h":"x"},{"name":"main","a":"3","h":"y"}]`,
	},
	"a key of a map in one element, beside one that looks like a path": {
		v1: "l: " + keyedBy("name", ", m: {type: object, additionalProperties: {type: string}}"), v2: "a: {type: string}", rules: `{move: {from: '.l[name=main].m["k"]', to: .a}}`,
		object: `"l":[{"name":"main","m":{"k":"2","[x=y]":"z"}}]`, edit: `"a":"2"`, with: `"a":"3"`,
		want: `"l":[{"name":"main","m":{"k":"3","[x=y]":"z"}}]`,
	},
	"no field of one element any more": {
		v1: "l: " + keyedBy("name", ", a: {type: string}, h: {type: string}"), v2: "a: {type: string}, b: {type: string}", rules: `{move: {from: ".l[name=main].a", to: .a}}, {move: {from: ".l[name=side].a", to: .b}}`,
		object: `"l":[{"name":"side","a":"1","h":"x"},{"name":"main","a":"2","h":"y"}]`, edit: `"a":"2",`, with: ``,
		want: `"l":[{"name":"side","a":"1","h":"x"},{"name":"main","h":"y"}]`,
	},
	"a field of one element beside others that both versions have": {
		v1: "l: " + keyedBy("name", ", a: {type: string}") + ", o: {type: string}", v2: "l: " + keyedBy("name", ", a: {type: string}") + ", p: {type: string}",
		rules:  `{move: {from: ".l[name=main].a", to: .p}}, {move: {from: .o, to: ".l[name=main].a"}}`,
		object: `"l":[{"name":"side","a":"1"},{"name":"main","a":"2"}],"o":"3"`, edit: `"a":"3"`, with: `"a":"4"`,
		want: `"l":[{"name":"side","a":"1"},{"name":"main","a":"2"}],"o":"4"`,
	},
	"elements without keys in another order": {
		v1: "l: {type: array, items: {type: object, properties: {a: {type: string}, h: {type: string}}}}", v2: "l: {type: array, items: {type: object, properties: {a: {type: string}}}}",
		object: `"l":[{"a":"1","h":"x"},{"a":"2","h":"y"}]`, edit: `{"a":"1"},{"a":"2"}`, with: `{"a":"0"},{"a":"2"},{"a":"1"}`,
		want: `"l":[{"a":"0"},{"a":"2","h":"y"},{"a":"1","h":"x"}]`,
	},
	"a value that the schema of the other version refuses": {
		v1: "mode: {type: string}, label: {type: string}", v2: "number: {type: integer}, label: {type: string}",
		rules:  "{cast: {from: .mode, to: .number, as: Integer}}",
		object: `"mode":"auto","label":"a"`, edit: `"label":"a"`, with: `"label":"a","number":7`,
		want: `"mode":"7","label":"a"`,
	},
	"an empty list where the text was none that a rule can read": {
		v1: "doc: {type: string}, label: {type: string}", v2: "doc: {type: array, items: {type: string}}, label: {type: string}",
		rules:  "{cast: {from: .doc, to: .doc, as: JSON}}",
		object: `"doc":"{a","label":"a"`, edit: `"label":"a"`, with: `"doc":[],"label":"a"`,
		want: `"doc":"[]","label":"a"`,
	},
	"an element that a rule excludes": {
		v1: "l: {type: array, items: {type: object, properties: {a: {type: string}, b: {type: string}}}}", v2: "l: {type: array, items: {type: object, properties: {a: {type: string}}}}",
		rules:  "{each: {from: .l, to: .l, where: [{from: .a}]}}",
		object: `"l":[{"a":"1"},{"b":"x"}]`, edit: `{"a":"1"}`, with: `{"a":"2"}`,
		want: `"l":[{"a":"2"},{"b":"x"}]`,
	},
	"a parent is removed": {
		v1: "o: {type: object, properties: {a: {type: string}, h: {type: string}}}, z: {type: string}", v2: "o: {type: object, properties: {a: {type: string}}}, z: {type: string}",
		object: `"o":{"a":"1","h":"x"},"z":"n"`, edit: `"o":{"a":"1"},`, with: ``,
		want: `"z":"n"`,
	},
	"the first element that the other version has": {
		v1: "l: {type: array, items: {type: object, properties: {a: {type: string}, b: {type: string}}}}, z: {type: string}", v2: "l: {type: array, items: {type: object, properties: {a: {type: string}}}}, z: {type: string}",
		rules:  "{each: {from: .l, to: .l, where: [{from: .a}]}}",
		object: `"l":[{"b":"x"},{"b":"y"}],"z":"n"`, edit: `"z":"n"`, with: `"l":[{"a":"1"}],"z":"n"`,
		want: `"l":[{"b":"x"},{"b":"y"},{"a":"1"}],"z":"n"`,
	},
	"the first element of a list with keys that an expression makes": {
		v1: "l: " + keyedBy("name", ", s: {type: string}"), v2: "s: {type: string}, z: {type: string}", rules: sidecars,
		object: `"l":[{"name":"main"},{"name":"sidecar","s":"x"}]`, edit: `"kind"`, with: `"s":"y","kind"`,
		want: `"l":[{"name":"main","s":"y"},{"name":"sidecar","s":"x"}]`,
	},
	"an element of a set that the other version did not show": {
		v1: "l: {type: array, x-kubernetes-list-type: set, items: {type: string}}", v2: "first: {type: string}",
		rules:  `{cel: {from: {l: .l}, to: {f: .first}, forward: {f: "self.l[0]"}, backward: {l: "[self.f]"}}}`,
		object: `"l":["a","b"]`, edit: `"first":"a"`, with: `"first":"b"`,
		want: `"l":["b"]`,
	},
	"one of several elements without keys that are equal": {
		v1: "l: " + keyedBy("name", ", w: {type: string}"), v2: "l: {type: array, items: {type: object, properties: {w: {type: string}}}}",
		rules:  `{cel: {from: {l: .l}, to: {m: .l}, forward: {m: "self.l.map(e, {'w': e.w})"}, backward: {l: "self.m.transformList(i, e, {'name': 'eth' + string(i), 'w': e.w})"}}}`,
		object: `"l":[{"name":"a","w":"2"},{"name":"b","w":"2"},{"name":"eth0","w":"1"},{"name":"c","w":"2"}]`, edit: `"w":"1"`, with: `"w":"0"`,
		want: `"l":[{"name":"eth0","w":"2"},{"name":"eth1","w":"2"},{"name":"eth2","w":"0"},{"name":"eth3","w":"2"}]`,
	},
	"a field between two that one expression reads": {
		v1: "a: {type: string}, b: {type: string}, c: {type: string}", v2: "joined: {type: string}, seconds: {type: integer}",
		rules: `{cast: {from: .b, to: .seconds, as: Seconds}}, {cel: {from: {a: .a, c: .c}, to: {j: .joined},
			forward: {j: "self.?a.orValue('') + self.?c.orValue('')"}, backward: {a: self.j, c: optional.none()}}}`,
		object: `"a":"x","b":"90000ms","c":"y"`, edit: `"seconds":90`, with: `"seconds":30`,
		want: `"a":"x","b":"30s","c":"y"`,
	},
	"one of two fields that are computed from one": {
		v1: "gates: {type: object, additionalProperties: {type: boolean}}", v2: "live: {type: boolean}, label: {type: string}",
		rules:  `{cel: {from: {g: .gates}, to: {live: .live}, forward: {live: "'live' in self.g ? self.g['live'] : false"}, backward: {g: "{'live': self.live}"}}}`,
		object: `"gates":{"live":true,"unknown":true}`, edit: `"live":true`, with: `"live":false`,
		want: `"gates":{"live":false,"unknown":true}`,
	},
}

// sidecars moves a field of one element of a list.
const sidecars = `{cel: {from: {l: .l}, to: {s: .s}, forward: {s: "self.l.filter(e, e.name == 'main')[0].s"}, backward: {l: "[{'name': 'main', 's': self.s}]"}}}`

// TestEdits converts objects to the other version, edits them there, and converts them back.
func TestEdits(t *testing.T) {
	for name, e := range edits {
		t.Run(name, func(t *testing.T) {
			c := converterOf(t, between(t, e.v1, e.v2, e.rules))
			there := convert(t, c, named("v1", "", e.object), "v2")
			edited := strings.Replace(there, e.edit, e.with, 1)
			if edited == there {
				t.Fatalf("there is no %s in %s", e.edit, there)
			}
			back := withoutServerMetadata(t, convert(t, c, edited, "v1"))
			wantEqual(t, withoutServerMetadata(t, named("v1", "", e.want)), withoutPreserved(back), "edited: %s", edited)
		})
	}
}

// TestEditsBesideHidden edits an element beside another one that the other version cannot have, and reads it again.
func TestEditsBesideHidden(t *testing.T) {
	c := converterOf(t, between(t,
		"l: {type: array, items: {type: object, properties: {run: {type: object, properties: {id: {type: string}}}}}}",
		"l: "+keyedBy("id", ", run: {type: object, properties: {group: {type: string}}}"),
		`{each: {from: .l, to: .l, where: [{to: .id}]}}, {cel: {from: {id: ".l[*].run.id"}, to: {id: ".l[*].id", run: ".l[*].run"}, forward: {id: self.id}, backward: {id: "self.?run.optMap(r, self.id)"}}}`))
	there := convert(t, c, named("v1", "", `"l":[{},{"run":{"id":"ship"}}]`), "v2")
	edited := strings.Replace(there, `"id":"ship"`, `"id":"ship","run":{"group":"deploy"}`, 1)
	again := convert(t, c, convert(t, c, edited, "v1"), "v2")
	wantEqual(t, withoutPreserved(decode(t, edited)), withoutPreserved(decode(t, again)), "edited: %s", edited)
}

// TestForged converts objects with preserved data that a client has written: only what the schema allows, and
// nothing shows at the other version, comes back.
func TestForged(t *testing.T) {
	c := converterOf(t, between(t, "a: {type: string}, h: {type: string}, status: {type: object, properties: {s: {type: string}}}", "a: {type: string}, status: {type: object}", ""))
	for forged, want := range map[string]string{
		`{"format":3,"values":{"/h":"x"}}`:                                   `"a":"1","h":"x"`,
		`{"format":3,"values":{"/a":"forged"}}`:                              `"a":"1"`,
		`{"format":3,"hidden":{"/a":"forged"},"rules":"other"}`:              `"a":"1"`,
		`{"format":3,"values":{"/h":5}}`:                                     `"a":"1"`,
		`{"format":3,"values":{"/metadata/name":"b","/kind":"K","/x":1}}`:    `"a":"1"`,
		`{"format":3,"values":{"/metadata/labels/l":"not a label"}}`:         `"a":"1"`,
		`{"format":3,"absent":{"/a":"","/metadata":"","/kind":""}}`:          `"a":"1"`,
		`{"format":3,"values":{"/a/[0]":"x","/h/[0]":{}},"orders":{"/":[]}}`: `"a":"1"`,
	} {
		object := strings.Replace(named("v2", "", `"a":"1"`), `"metadata":{`, `"metadata":{"annotations":{"`+conversion.AnnotationName("widgets.example.com", "v1")+`":`+quoted(forged)+`},`, 1)
		back := withoutPreserved(withoutServerMetadata(t, convert(t, c, object, "v1")))
		wantEqual(t, withoutServerMetadata(t, named("v1", "", want)), back, "%s", forged)
	}
}
