// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
)

// TestChanges converts an object to v2 by one set of rules, and back by another: data that was
// preserved under the first is not lost under the second.
func TestChanges(t *testing.T) {
	const (
		note   = "spec: {type: object, properties: {a: {type: string}, note: {type: string}}}"
		noted  = "spec: {type: object, properties: {b: {type: string}, note: {type: string}}}"
		bare   = "spec: {type: object, properties: {b: {type: string}}}"
		move   = "{move: {from: .spec.a, to: .spec.b}}"
		object = `"spec":{"a":"1","note":"precious"}`

		weighed = "ports: {type: array, items: {type: object, properties: {name: {type: string}, w: {type: integer}}}}"
		plain   = "ports: {type: array, items: {type: object, properties: {name: {type: string}}}}"
	)
	for name, test := range map[string]struct {
		before, after         [3]string // v1, v2, rules
		object, at, back, now string
	}{
		"the field is added": {
			before: [3]string{note, bare, move}, after: [3]string{note, noted, move},
			object: object, at: named("v2", `v1 {"/spec/note":"precious"}`, `"spec":{"b":"1"}`),
			back: named("v1", "", `"spec":{"a":"1","note":"precious"}`), now: named("v2", "", `"spec":{"note":"precious","b":"1"}`),
		},
		"a move is added": {
			before: [3]string{note, bare, move},
			after:  [3]string{note, "spec: {type: object, properties: {b: {type: string}, remark: {type: string}}}", move + ", {move: {from: .spec.note, to: .spec.remark}}"},
			object: object, at: named("v2", `v1 {"/spec/note":"precious"}`, `"spec":{"b":"1"}`),
			back: named("v1", "", `"spec":{"a":"1","note":"precious"}`), now: named("v2", "", `"spec":{"b":"1","remark":"precious"}`),
		},
		"a table is added": {
			before: [3]string{note, bare, move},
			after:  [3]string{note, "spec: {type: object, properties: {b: {type: string}, worth: {type: string}}}", move + ", {values: {from: .spec.note, to: .spec.worth, table: [{from: precious, to: High}]}}"},
			object: object, at: named("v2", `v1 {"/spec/note":"precious"}`, `"spec":{"b":"1"}`),
			back: named("v1", "", `"spec":{"a":"1","note":"precious"}`), now: named("v2", "", `"spec":{"b":"1","worth":"High"}`),
		},
		"a list gets keys": {
			before: [3]string{weighed, plain, ""},
			after: [3]string{
				"ports: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, w: {type: integer}}}}",
				"ports: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}}}}", "",
			},
			object: `"ports":[{"name":"b"},{"name":"a","w":7}]`,
			at:     named("v2", `v1 {"/ports/1":{"name":"a","w":7},"@/ports/1":`+digest(`{"name":"a"}`)+`}`, `"ports":[{"name":"b"},{"name":"a"}]`),
			back:   named("v1", "", `"ports":[{"name":"b"},{"name":"a","w":7}]`),
			now:    named("v2", `v1 {"/ports/[name=\"a\"]/w":7}`, `"ports":[{"name":"b"},{"name":"a"}]`),
		},
		"a field of an element is added": {
			before: [3]string{weighed, plain, ""},
			after: [3]string{
				weighed,
				"ports: {type: array, items: {type: object, properties: {name: {type: string}, w: {type: integer}, x: {type: string}}}}", "",
			},
			object: `"ports":[{"name":"b"},{"name":"a","w":7}]`,
			at:     named("v2", `v1 {"/ports/1":{"name":"a","w":7},"@/ports/1":`+digest(`{"name":"a"}`)+`}`, `"ports":[{"name":"b"},{"name":"a"}]`),
			back:   named("v1", "", `"ports":[{"name":"b"},{"name":"a","w":7}]`),
			now:    named("v2", "", `"ports":[{"name":"b"},{"name":"a","w":7}]`),
		},
		"an element is one of two that are alike": {
			before: [3]string{weighed, plain, ""},
			after: [3]string{
				weighed,
				"ports: {type: array, items: {type: object, properties: {name: {type: string}, x: {type: string}}}}", "{default: {to: '.ports[*].x', value: d}}",
			},
			object: `"ports":[{"name":"a"},{"name":"a","w":7}]`,
			at:     named("v2", `v1 {"/ports/1":{"name":"a","w":7},"@/ports/1":`+digest(`{"name":"a"}`)+`}`, `"ports":[{"name":"a"},{"name":"a"}]`),
			back:   named("v1", `v2 {"/ports/0":{"name":"a"},"@/ports/0":`+digest(`{"name":"a"}`)+`,"/ports/1":{"name":"a"},"@/ports/1":`+digest(`{"name":"a","w":7}`)+`}`, `"ports":[{"name":"a"},{"name":"a","w":7}]`),
			now:    named("v2", `v1 {"/ports/1":{"name":"a","w":7},"@/ports/1":`+digest(`{"name":"a"}`)+`}`, `"ports":[{"name":"a"},{"name":"a"}]`),
		},
		"the hub gets the field of an element that is one of two that are alike": {
			before: [3]string{weighed, plain, ""},
			after:  [3]string{weighed, weighed, ""},
			object: `"ports":[{"name":"a"},{"name":"a","w":7}]`,
			at:     named("v2", `v1 {"/ports/1":{"name":"a","w":7},"@/ports/1":`+digest(`{"name":"a"}`)+`}`, `"ports":[{"name":"a"},{"name":"a"}]`),
			back:   named("v1", "", `"ports":[{"name":"a"},{"name":"a","w":7}]`),
			now:    named("v2", "", `"ports":[{"name":"a"},{"name":"a","w":7}]`),
		},
		"the field goes and comes": {
			before: [3]string{note, bare, move}, after: [3]string{"spec: {type: object, properties: {a: {type: string}}}", bare, move},
			object: object, at: named("v2", `v1 {"/spec/note":"precious"}`, `"spec":{"b":"1"}`),
			back: named("v1", `v1 {"/spec/note":"precious"}`, `"spec":{"a":"1"}`), now: named("v2", `v1 {"/spec/note":"precious"}`, `"spec":{"b":"1"}`),
		},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := converterOf(t, between(t, test.before[0], test.before[1], test.before[2])), converterOf(t, between(t, test.after[0], test.after[1], test.after[2]))
			there := convert(t, before, named("v1", "", test.object), "v2")
			wantAnyPreserved(t, "there", test.at, there)
			back := convert(t, after, there, "v1")
			wantAnyPreserved(t, "back", test.back, back)
			wantAnyPreserved(t, "now", test.now, convert(t, after, back, "v2"))
		})
	}
}

// wantAnyPreserved compares objects without preserved data: by other rules, it may also say what was absent.
func wantAnyPreserved(t *testing.T, what, want, got string) {
	t.Helper()
	left, _ := splitPreserved(t, want)
	if right, _ := splitPreserved(t, got); left != right {
		t.Errorf("%s: got %s, want %s", what, got, want)
	}
}

// ofFormerRules returns an object whose preserved data was written by other rules.
func ofFormerRules(object string) string { return strings.ReplaceAll(object, currentRules, "former") }

// TestPartsOfARule has values of fields that a rule computes together, which were preserved before
// that rule existed. Each comes back by itself.
func TestPartsOfARule(t *testing.T) {
	const rule = `{format: {from: '.metadata.labels["l"]', template: "{c}-{b}", to: {c: .c, b: .o.b}}}`
	c := converterOf(t, between(t,
		"o: {type: object, properties: {a: {type: string}}}",
		"o: {type: object, properties: {a: {type: string}, b: {type: string}}}, c: {type: string}", rule))
	for name, test := range map[string]struct{ preserved, live, want string }{
		"both":                           {`v2 {"/c":"1","/o/b":"2"}`, `"o":{"a":"3"}`, `"o":{"a":"3","b":"2"},"c":"1"`},
		"the object around one is gone":  {`v2 {"/c":"1","/o/b":"2"}`, ``, `"c":"1","o":{"b":"2"}`},
		"one is preserved in its object": {`v2 {"/c":"1","/o":{"b":"2"}}`, `"o":{"a":"3"}`, `"o":{"a":"3","b":"2"},"c":"1"`},
	} {
		t.Run(name, func(t *testing.T) {
			wantAnyPreserved(t, "back", named("v2", "", test.want), convert(t, c, ofFormerRules(named("v1", test.preserved, test.live)), "v2"))
		})
	}
}

// TestListMadeAgain has an element that had no list by newer rules, and a list that a client makes there later: the list is
// as the client made it.
func TestListMadeAgain(t *testing.T) {
	const value = "l: {type: object, properties: {a: {type: string}}}"
	before := converterOf(t, between(t, "l: {type: array, items: {type: object, properties: {a: {type: string}}}}", value, "{each: {from: .l, to: .l}}"))
	after := converterOf(t, between(t, "l: {x-kubernetes-preserve-unknown-fields: true}", value, ""))
	there := convert(t, before, named("v1", "", `"l":[{"a":"1"},{"a":"2"}]`), "v2")
	back := convert(t, after, there, "v1")
	wantAnyPreserved(t, "at first", named("v1", "", `"l":{"a":"1"}`), back)
	wantAnyPreserved(t, "by the former rules", named("v1", "", `"l":[{"a":"1"},{"a":"2"}]`), convert(t, before, convert(t, after, back, "v2"), "v1"))
	const list = `"l":[{"a":"3"},{"a":"4"}]`
	made := strings.Replace(back, `"l":{"a":"1"}`, list, 1)
	wantAnyPreserved(t, "again", named("v1", "", list), convert(t, after, convert(t, after, made, "v2"), "v1"))
}

// TestObjectOfFormerRules has values in one object, which were preserved by the current and by former rules: those of the
// former ones make the object again, and the others come back in it.
func TestObjectOfFormerRules(t *testing.T) {
	c := converterOf(t, between(t,
		"o: {type: object, properties: {a: {type: string}, b: {type: string}}}",
		"l: {type: array, items: {type: object, properties: {c: {type: string}}}}", "{each: {from: .o, to: .l}}"))
	object := named("v2", `v1 {"/o/a":"1"}`, "")
	object = strings.Replace(object, `{\"/o/a\":\"1\"}`, `{\"/o/a\":\"1\"},\"older\":{\"rules\":\"former\",\"hidden\":{\"/o/b\":\"2\"}}`, 1)
	wantAnyPreserved(t, "back", named("v1", "", `"o":{"a":"1","b":"2"}`), convert(t, c, object, "v1"))
}

// TestRefusedStatus has a preserved value below .status, of earlier rules or forged. It is restored
// only if the policy allows that.
func TestRefusedStatus(t *testing.T) {
	const fields = "status: {type: object, properties: {phase: {type: string}}}"
	crd := widgets(t, map[string]string{"v1": fields, "v2": fields})
	object := named("v2", `v1 {"/status/phase":"Ready"}`, `"status":{}`)
	for setting, want := range map[string]string{
		"Allow":  named("v1", "", `"status":{"phase":"Ready"}`),
		"Refuse": named("v1", `v1 {"/status/phase":"Ready"}`, `"status":{}`),
	} {
		rules := from[v1alpha1.DeclarativeConverter](t, "{hub: v2, preservedStatus: "+setting+", spokes: [{version: v1}]}")
		wantAnyPreserved(t, setting, want, convert(t, converterOf(t, compile.Compile(crd, rules)), ofFormerRules(object), "v1"))
	}
}

// TestRolledBack converts an object by one set of rules, repeatedly by another, and by the first
// again to its own version: it is unchanged, whatever the second rules support.
func TestRolledBack(t *testing.T) {
	for name, test := range map[string]struct {
		before, after [3]string // v1, v2, rules
		from, object  string
	}{
		"a value and what a rule computes of it have no place": {
			before: [3]string{"c: {type: array, items: {type: string}}", "o: {type: object, properties: {f: {type: string}}}", "{each: {from: .c, to: .o.f}}"},
			after:  [3]string{"c: {type: integer}", "o: {type: object, properties: {f: {type: integer}}}", ""},
			from:   "v1", object: `"c":["1","2"]`,
		},
		"an object is there for what has no place": {
			before: [3]string{"h: {type: string}, o: {type: object}", "o: {type: object, properties: {f: {type: string}, e: {type: string}}}", "{move: {from: .h, to: .o.f}}"},
			after:  [3]string{"h: {type: string}, o: {type: object}", "o: {type: object, properties: {f: {type: string}, e: {type: integer}}}", "{move: {from: .h, to: .o.f}}"},
			from:   "v2", object: `"o":{"f":"1","e":"x"}`,
		},
		"an object that is preserved, and a field of it": {
			before: [3]string{"o: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {x: {type: integer}}}", "o: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {x: {type: string}}}", ""},
			after:  [3]string{"p: {type: string}", "o: {type: integer}", ""},
			from:   "v2", object: `"o":{"a":1,"x":"y"}`,
		},
		"lists in a list": {
			before: [3]string{"l: {type: array, items: {type: array, items: {type: object, properties: {a: {type: array, items: {type: string}}, c: {type: string}}}}}", "l: {type: array, items: {type: array, items: {type: object, properties: {a: {type: string}, b: {type: string}, c: {type: string}}}}}", `{each: {from: ".l[*][*].a", to: ".l[*][*].a"}}`},
			after:  [3]string{"l: {type: array, items: {type: array, items: {type: object, properties: {a: {type: array, items: {type: string}}, c: {type: string}}}}}", "l: {type: array, items: {type: array, items: {type: object, properties: {a: {type: string}, b: {type: string}, c: {type: string}}}}}", ""},
			from:   "v2", object: `"l":[[{"a":"1","b":"2","c":"3"},{"c":"4"}]]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := converterOf(t, between(t, test.before[0], test.before[1], test.before[2])), converterOf(t, between(t, test.after[0], test.after[1], test.after[2]))
			object, there := named(test.from, "", test.object), other(test.from)
			at := object
			for _, by := range []*conversion.Converter{before, after, after, before} {
				at = convert(t, by, at, there)
				at = convert(t, by, at, test.from)
				t.Log(at)
			}
			wantAnyPreserved(t, "in the end", object, at)
			at = convert(t, before, object, there)
			for _, by := range []*conversion.Converter{after, after, before} {
				at = convert(t, by, at, test.from)
				t.Log(at)
				at = convert(t, by, at, there)
				t.Log(at)
			}
			wantAnyPreserved(t, "by the current rules first", object, convert(t, before, at, test.from))
		})
	}
}
