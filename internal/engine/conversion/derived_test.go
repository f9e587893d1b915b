// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// replicas are rules for objects that say in the spoke how many replicas there are, and in the hub whether they run.
const (
	ofReplicas = "spec: {type: object, properties: {replicas: {type: integer}}}, status: {type: object, properties: {replicas: {type: integer}, node: {type: string}}}"
	ofMode     = "spec: {type: object, properties: {mode: {type: string}}}, status: {type: object, properties: {node: {type: string}}}"
	toMode     = `{cel: {from: {c: .spec.replicas}, to: {m: .spec.mode}, forward: {m: "self.c > 0 ? 'Running' : 'Suspended'"}, backward: {c: "self.m == 'Running' ? 1 : 0"}}}`
	derived    = toMode + `, {cel: {from: {c: .status.replicas}, to: {m: .spec.mode}, backward: {c: "self.m == 'Running' ? 1 : 0"}}}`
)

// TestReads has rules in both directions that read a field which another rule moves, and one that only its version has.
func TestReads(t *testing.T) {
	c := converterOf(t, between(t,
		"spec: {type: object, properties: {size: {type: integer}, unit: {type: string}, own: {type: string}}}", "spec: {type: object, properties: {amount: {type: string}, unit: {type: string}}}, of: {type: string}",
		`{move: {from: .spec.unit, to: .of}}, {drop: {to: .spec.unit}},
		 {cel: {from: {size: .spec.size, unit: .spec.unit, own: .spec.own}, to: {amount: .spec.amount, of: .of}, forward: {amount: "string(self.size) + self.?unit.orValue('') + self.?own.orValue('')"}, backward: {size: "int(self.amount.replace(self.?of.orValue(''), ''))"}}}`))
	roundTrips{
		"both":             {"v1", `"spec":{"size":3,"unit":"Mi"}`, named("v2", "", `"spec":{"amount":"3Mi"},"of":"Mi"`)},
		"back":             {"v2", `"spec":{"amount":"3Mi"},"of":"Mi"`, named("v1", "", `"spec":{"size":3,"unit":"Mi"}`)},
		"without the unit": {"v1", `"spec":{"size":3}`, named("v2", "", `"spec":{"amount":"3"}`)},
		"only the unit":    {"v1", `"spec":{"unit":"Mi"}`, named("v2", "", `"of":"Mi"`)},
		"what is only there": {"v1", `"spec":{"size":3,"own":"x"}`,
			named("v2", `v1 {"/spec/own":"x","/spec/size":3}`, `"spec":{"amount":"3x"}`)},
	}.check(t, c)
	edited := strings.Replace(convert(t, c, named("v1", "", `"spec":{"size":3,"unit":"Mi"}`), "v2"), "3Mi", "4Mi", 1)
	wantAnyPreserved(t, "edited", named("v1", "", `"spec":{"size":4,"unit":"Mi"}`), convert(t, c, edited, "v1"))
}

// TestDerived computes fields of one version from fields that other rules convert.
func TestDerived(t *testing.T) {
	for name, d := range map[string]struct{ v1, v2, rules, at, object, there, edit, with, back string }{
		"follows": {
			ofReplicas, ofMode, derived, "v2", `"spec":{"mode":"Running"},"status":{"node":"a"}`,
			`"spec":{"replicas":1},"status":{"node":"a","replicas":1}`, `"spec":{"replicas":1}`, `"spec":{"replicas":0}`, `"spec":{"mode":"Suspended"},"status":{"node":"a"}`,
		},
		"makes its object, which goes again": {
			ofReplicas, ofMode, derived, "v2", `"spec":{"mode":"Running"}`, `"spec":{"replicas":1},"status":{"replicas":1}`, "", "", `"spec":{"mode":"Running"}`,
		},
		"from nothing": {ofReplicas, ofMode, derived, "v2", `"spec":{}`, `"spec":{}`, "", "", `"spec":{}`},
		"what a client writes is dropped": {
			ofReplicas, ofMode, derived, "v1", `"spec":{"replicas":1},"status":{"replicas":5}`, `"spec":{"mode":"Running"}`, "", "", `"spec":{"replicas":1},"status":{"replicas":1}`,
		},
		"in elements, with other names": {
			"items: {type: array, items: {type: object, properties: {text: {type: string}}}}", "entries: {type: array, items: {type: object, properties: {word: {type: string}, size: {type: integer}}}}",
			`{move: {from: .items, to: .entries}}, {move: {from: '.items[*].text', to: '.entries[*].word'}}, {cel: {from: {t: '.items[*].text'}, to: {s: '.entries[*].size'}, forward: {s: self.t.size()}}}`,
			"v1", `"items":[{"text":"a"},{"text":"bcd"}]`, `"entries":[{"word":"a","size":1},{"word":"bcd","size":3}]`,
			`{"word":"a","size":1},{"word":"bcd"`, `{"word":"bcde"`, `"items":[{"text":"bcde"}]`,
		},
		"of what only one version has": {
			"a: {type: string}", "a: {type: string}, list: {type: array, items: {type: string}}, length: {type: integer}", "{cel: {from: {a: .a}, to: {c: .length}, forward: {c: self.a.size()}}}",
			"v2", `"a":"xy","list":["p"],"length":2`, `"a":"xy"`, `"a":"xy"`, `"a":"xyz"`, `"a":"xyz","list":["p"],"length":3`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := converterOf(t, between(t, d.v1, d.v2, d.rules))
			there := convert(t, c, named(d.at, "", d.object), other(d.at))
			wantEqual(t, withoutServerMetadata(t, named(other(d.at), "", d.there)), withoutPreserved(withoutServerMetadata(t, there)), "there")
			if strings.Contains(there, "absent") {
				t.Errorf("more is preserved than has to be: %s", there)
			}
			if !strings.Contains(there, d.edit) {
				t.Fatalf("there is no %s in %s", d.edit, there)
			}
			there = strings.Replace(there, d.edit, d.with, 1)
			back := convert(t, c, there, d.at)
			wantEqual(t, withoutServerMetadata(t, named(d.at, "", d.back)), withoutPreserved(withoutServerMetadata(t, back)), "back from %s", there)
		})
	}
}

// TestDerivedWins: what was preserved of a field before a rule derived it, or is forged, does not come back.
func TestDerivedWins(t *testing.T) {
	before, after := converterOf(t, between(t, ofReplicas, ofMode, toMode)), converterOf(t, between(t, ofReplicas, ofMode, derived))
	there := convert(t, before, named("v1", "", `"spec":{"replicas":1},"status":{"replicas":5,"node":"a"}`), "v2")
	if !strings.Contains(there, "/status/replicas") {
		t.Fatalf("nothing is preserved: %s", there)
	}
	want := withoutServerMetadata(t, named("v1", "", `"spec":{"replicas":1},"status":{"replicas":1,"node":"a"}`))
	wantEqual(t, want, withoutPreserved(withoutServerMetadata(t, convert(t, after, there, "v1"))), "%s", there)
	forged := strings.Replace(named("v2", "", `"spec":{"mode":"Running"},"status":{"node":"a"}`), `"metadata":{`,
		`"metadata":{"annotations":{"`+conversion.AnnotationName("widgets.example.com", "v1")+`":`+quoted(`{"format":3,"values":{"/status/replicas":7}}`)+`},`, 1)
	wantEqual(t, want, withoutPreserved(withoutServerMetadata(t, convert(t, after, forged, "v1"))), "%s", forged)
}

// TestDerivedFragment: a fragment of an object has a derived field only if it has what that is computed from.
func TestDerivedFragment(t *testing.T) {
	c := converterOf(t, between(t, ofReplicas, ofMode, derived))
	for fragment, want := range map[string]string{
		`"spec":{"mode":"Running"}`: `"spec":{"replicas":1},"status":{"replicas":1}`,
		`"status":{"node":"a"}`:     `"status":{"node":"a"}`,
	} {
		got := convert(t, c, annotated("v2", "", fragment), "v1")
		wantEqual(t, withoutServerMetadata(t, annotated("v1", "", want)), withoutServerMetadata(t, got), "%s", fragment)
	}
}
