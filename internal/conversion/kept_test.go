// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// TestOverflow has more to keep aside than the annotations may hold.
func TestOverflow(t *testing.T) {
	crd := widgets(t, map[string]string{"v1": "a: {type: string}, b: {type: string}, c: {type: string}", "v2": "x: {type: string}"})
	compile := func(overflow v1alpha1.OverflowAction) *Converter {
		rules := from[v1alpha1.DeclarativeConverter](t, "{hub: v2, spokes: [{version: v1}]}")
		rules.Overflow = overflow
		return converterOf(t, Compile(crd, rules))
	}
	large, larger := strings.Repeat("a", 150<<10), strings.Repeat("b", 160<<10)
	object := named("v1", "", `"a":"`+large+`","b":"`+larger+`","c":"1"`)
	_, err := compile(v1alpha1.OverflowFail).Convert(nil, []byte(object), "v2")
	want := "the fields that only version v1 has take 317466 bytes, and all annotations together may take 262144: shorten the object's annotations, of which the others take 0, or those fields, or set overflow to Drop in the ConversionPolicy"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}

	c := compile(v1alpha1.OverflowDrop)
	there, outcome, err := c.Answer(nil, []byte(object), "v2")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(named("v2", `v1 {"/a":"`+large+`","/c":"1","dropped":["/b"]}`, ""), string(there)); diff != "" {
		t.Errorf("there (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Outcome{Read: len(object), From: "v1", KeptBytes: len(large) + 35, DroppedValues: 1}, outcome); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(named("v1", "", `"a":"`+large+`","c":"1"`), convert(t, c, string(there), "v1")); diff != "" {
		t.Errorf("back (-want +got):\n%s", diff)
	}

	crowded := strings.Replace(object, `"metadata":{`, `"metadata":{"annotations":{"other":"`+strings.Repeat("x", maxAnnotations-50)+`"},`, 1)
	if _, err := c.Convert(nil, []byte(crowded), "v2"); err == nil || !strings.Contains(err.Error(), "of which the others take 262099") {
		t.Errorf("no room at all: got %v", err)
	}
}

// TestAnswer leaves out the metadata that the API server restores, and stops
// where the object ends.
func TestAnswer(t *testing.T) {
	c := converterOf(t, between(t, "a: {type: string}", "b: {type: string}", "{move: {from: .a, to: .b}}"))
	const object = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"generation":1,"name":"w","namespace":"n","uid":"u","labels":{"l":"1"},"annotations":{"a":"1"},"managedFields":[{}]},"a":"1"}`
	out, outcome, err := c.Answer([]byte("["), []byte(object+" ,{]"), "v2")
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"name":"w","namespace":"n","uid":"u","labels":{"l":"1"},"annotations":{"a":"1"}},"b":"1"}`
	if diff := cmp.Diff(want, string(out)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Outcome{Read: len(object), From: "v1"}, outcome); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
}

// TestNoAllocations converts by rules of every kind that computes nothing large.
func TestNoAllocations(t *testing.T) {
	c := converterOf(t, between(t,
		"a: {type: string}, hp: {type: string}, e: {type: string}, w: {type: string}, s: {type: string}, l: {type: array, items: {type: object, properties: {x: {type: string}}}}, own: {type: string}",
		"b: {type: string}, h: {type: string}, p: {type: integer}, e: {type: string}, w: {type: array, items: {type: string}}, s: {type: integer}, l: {type: array, items: {type: object, properties: {z: {type: string}}}}",
		`{move: {from: .a, to: .b}}, {format: {from: .hp, template: "{h}:{p}", to: {h: .h, p: .p}}}, {values: {from: .e, to: .e, table: [{from: a, to: b}]}},
		{wrap: {from: .w, to: .w}}, {cast: {from: .s, to: .s, as: Integer}}, {move: {from: ".l[*].x", to: ".l[*].z"}}`))
	for name, object := range map[string]string{
		"plain":        named("v1", "", `"a":"1","hp":"x:80","e":"a","w":"1","s":"7","l":[{"x":"1"},{"x":"2"},{}]`),
		"a kept field": named("v1", "", `"a":"1","own":"x"`),
		"back":         named("v2", `v1 {"/own":"x"}`, `"b":"1"`),
	} {
		input, out := []byte(object), []byte(nil)
		to := map[bool]string{true: "v2", false: "v1"}[strings.Contains(object, "example.com/v1")]
		allocations := testing.AllocsPerRun(200, func() {
			var err error
			if out, err = c.Convert(out[:0], input, to); err != nil {
				t.Fatal(err)
			}
		})
		if allocations > 0 {
			t.Errorf("%s: %v allocations, want none", name, allocations)
		}
	}
}
