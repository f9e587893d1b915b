// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/conversion-operator/conversion-operator/internal/conversion/compile"
)

// TestMoveWider moves a value between fields of which one allows more: what both allow
// is moved, and all else is preserved, as at one path.
func TestMoveWider(t *testing.T) {
	const (
		integer = "{type: integer}"
		either  = "{x-kubernetes-int-or-string: true}"
		text    = "{type: string}"
		label   = `.metadata.labels["l"]`
	)
	for name, test := range map[string]struct{ a, b, from, object, want string }{
		"an integer":                   {integer, either, "v1", `"a":80`, widget("v2", `"b":80`)},
		"an integer back":              {integer, either, "v2", `"b":80`, widget("v1", `"a":80`)},
		"a string where an integer is": {integer, either, "v2", `"b":"http"`, annotated("v1", `v2 {"/b":"http"}`, "")},
		"an integer where either is":   {either, integer, "v2", `"b":80`, widget("v1", `"a":80`)},
		"a string of either":           {either, integer, "v1", `"a":"80"`, annotated("v2", `v1 {"/a":"80"}`, "")},
		"a string":                     {either, text, "v1", `"a":"http"`, widget("v2", `"b":"http"`)},
		"an integer where a string is": {either, text, "v1", `"a":80`, annotated("v2", `v1 {"/a":80}`, "")},
		"a fraction":                   {integer, "{type: number}", "v2", `"b":1.5`, annotated("v1", `v2 {"/b":1.5}`, "")},
		"a number without a fraction":  {integer, "{type: number}", "v2", `"b":12345678901234567890`, widget("v1", `"a":12345678901234567890`)},
		"a null":                       {"{type: integer, nullable: true}", either, "v1", `"a":null`, annotated("v2", `v1 {"/a":null}`, "")},
		"a null on both sides":         {"{type: integer, nullable: true}", "{x-kubernetes-int-or-string: true, nullable: true}", "v2", `"b":null`, widget("v1", `"a":null`)},
	} {
		t.Run(name, func(t *testing.T) {
			c := converterOf(t, between(t, "a: "+test.a, "b: "+test.b, "{move: {from: .a, to: .b}}"))
			to := map[string]string{"v1": "v2", "v2": "v1"}[test.from]
			object := widget(test.from, test.object)
			got := convert(t, c, object, to)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("there (-want +got):\n%s", diff)
			}
			if back := convert(t, c, got, test.from); !sameJSON(t, object, back) {
				t.Errorf("back: %s, want %s", back, object)
			}
		})
	}

	t.Run("to a label", func(t *testing.T) {
		c := converterOf(t, between(t, "a: "+either, "", "{move: {from: .a, to: '"+label+"'}}"))
		got := convert(t, c, widget("v1", `"a":"http"`), "v2")
		if want := `"labels":{"l":"http"}`; !strings.Contains(got, want) {
			t.Errorf("got %s, want %s in it", got, want)
		}
		there := convert(t, c, widget("v1", `"a":80`), "v2")
		if back := convert(t, c, there, "v1"); strings.Contains(there, `"l":80`) || !sameJSON(t, widget("v1", `"a":80`), back) {
			t.Errorf("%s comes back as %s", there, back)
		}
	})

	t.Run("an edit wins", func(t *testing.T) {
		c := converterOf(t, between(t, "a: "+integer, "b: "+either, "{move: {from: .a, to: .b}}"))
		there := convert(t, c, widget("v2", `"b":"http"`), "v1")
		edited := strings.TrimSuffix(there, "}") + `,"a":81}`
		if back := convert(t, c, edited, "v2"); back != widget("v2", `"b":81`) {
			t.Errorf("back: %s", back)
		}
	})
}

// TestMoveWiderIsOdd: the side that allows more has values that the other one has not.
func TestMoveWiderIsOdd(t *testing.T) {
	for rule, want := range map[string][2]bool{
		"a: {type: integer}/b: {x-kubernetes-int-or-string: true}": {false, true},
		"a: {type: number}/b: {type: integer}":                     {true, false},
		"a: {type: integer}/b: {type: integer}":                    {false, false},
	} {
		a, b, _ := strings.Cut(rule, "/")
		for _, leaf := range between(t, a, b, "{move: {from: .a, to: .b}}").Leaves {
			if wanted := want[map[string]int{"v1": 0, "v2": 1}[leaf.Version]]; leaf.Odd != wanted || leaf.Owner != compile.OwnerExact {
				t.Errorf("%s: %s is %s, odd: %t; want %s, odd: %t", rule, leaf, leaf.Owner, leaf.Odd, compile.OwnerExact, wanted)
			}
		}
	}
}

// TestMoveWiderHasACanary: a pod that cannot move such a value is found out.
func TestMoveWiderHasACanary(t *testing.T) {
	for _, sides := range [][2]string{{"{type: integer}", "{x-kubernetes-int-or-string: true}"}, {"{x-kubernetes-int-or-string: true}", "{type: string}"}} {
		c := converterOf(t, between(t, "a: "+sides[0], "b: "+sides[1], "{move: {from: .a, to: .b}}"))
		for version, field := range map[string]string{"v1": "b", "v2": "a"} {
			other := map[string]string{"v1": "v2", "v2": "v1"}[version]
			if got := canaryAt(t, c, version, other); got[field] == nil {
				t.Errorf("%v: the canary of %s has no %s at %s: %s", sides, version, field, other, got)
			}
		}
	}
}
