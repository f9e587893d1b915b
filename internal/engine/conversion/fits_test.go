// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestFits has fields of which one version allows more: values that both allow are copied, and all
// others are preserved. FuzzPruned covers more cases.
func TestFits(t *testing.T) {
	const open = "{type: object, x-kubernetes-preserve-unknown-fields: true"
	logs := func(log string) string { return "c: " + open + ", properties: {log: " + log + "}}" }
	level := logs("{type: object, properties: {level: {type: string}}}")
	items := logs("{type: array, items: {type: object, properties: {level: {type: string}}}}")
	for name, test := range map[string]struct{ v1, v2, from, object, want string }{
		"a name in what is unknown":           {"c: " + open + "}", level, "v1", `"c":{"log":{"level":"1","format":"x"},"x":{"y":1}}`, annotated("v2", `v1 {"/c/log/format":"x"}`, `"c":{"log":{"level":"1"},"x":{"y":1}}`)},
		"the other way":                       {level, "c: " + open + "}", "v2", `"c":{"log":{"level":"1","format":"x"}}`, annotated("v1", `v2 {"/c/log/format":"x"}`, `"c":{"log":{"level":"1"}}`)},
		"of another type":                     {"c: " + open + "}", level, "v1", `"c":{"log":"loud"}`, annotated("v2", `v1 {"/c/log":"loud"}`, `"c":{}`)},
		"of another type, deeper":             {"c: " + open + "}", level, "v1", `"c":{"log":{"level":{"x":1}}}`, annotated("v2", `v1 {"/c/log/level":{"x":1}}`, `"c":{"log":{}}`)},
		"a null":                              {"c: " + open + "}", level, "v1", `"c":{"log":null}`, annotated("v2", `v1 {"/c/log":null}`, `"c":{}`)},
		"a list":                              {"c: " + open + "}", items, "v1", `"c":{"log":[{"level":"1","x":2}]}`, annotated("v2", `v1 {"/c/log/0":{"level":"1","x":2},"@/c/log/0":`+digest(`{"level":"1"}`)+`}`, `"c":{"log":[{"level":"1"}]}`)},
		"a list of anything":                  {"c: " + open + "}", items, "v1", `"c":{"log":[{"level":"1","x":2},7]}`, annotated("v2", `v1 {"/c/log":[{"level":"1","x":2},7]}`, `"c":{}`)},
		"a map":                               {"c: " + open + "}", logs("{type: object, additionalProperties: {type: object, properties: {level: {type: string}}}}"), "v1", `"c":{"log":{"k":{"level":"1","x":2}}}`, annotated("v2", `v1 {"/c/log/k/x":2}`, `"c":{"log":{"k":{"level":"1"}}}`)},
		"an object of a kind":                 {"c: " + open + "}", logs(open + ", x-kubernetes-embedded-resource: true}"), "v1", `"c":{"log":{"x":1}}`, annotated("v2", `v1 {"/c/log":{"x":1}}`, `"c":{}`)},
		"an object of a kind on one side":     {"c: " + open + "}", "c: " + open + ", x-kubernetes-embedded-resource: true}", "v1", `"c":{"x":1}`, annotated("v2", `v1 {"/c":{"x":1}}`, "")},
		"additionalProperties: true":          {"c: " + open + "}", "c: {type: object, additionalProperties: true}", "v1", `"c":{"x":{"y":1}}`, annotated("v2", `v1 {"/c":{"x":{"y":1}}}`, "")},
		"an integer":                          {"p: {type: integer}", "p: {x-kubernetes-int-or-string: true}", "v1", `"p":80`, widget("v2", `"p":80`)},
		"an integer back":                     {"p: {type: integer}", "p: {x-kubernetes-int-or-string: true}", "v2", `"p":80`, widget("v1", `"p":80`)},
		"a string where an integer is":        {"p: {type: integer}", "p: {x-kubernetes-int-or-string: true}", "v2", `"p":"http"`, annotated("v1", `v2 {"/p":"http"}`, "")},
		"a string":                            {"p: {x-kubernetes-int-or-string: true}", "p: {type: string}", "v1", `"p":"http"`, widget("v2", `"p":"http"`)},
		"an integer where a string is":        {"p: {x-kubernetes-int-or-string: true}", "p: {type: string}", "v1", `"p":80`, annotated("v2", `v1 {"/p":80}`, "")},
		"a number":                            {"p: {type: number}", "p: {type: integer}", "v1", `"p":80`, widget("v2", `"p":80`)},
		"a fraction where an integer is":      {"p: {type: number}", "p: {type: integer}", "v1", `"p":1.5`, annotated("v2", `v1 {"/p":1.5}`, "")},
		"a list of integers":                  {"p: {type: array, items: {type: integer}}", "p: {type: array, items: {x-kubernetes-int-or-string: true}}", "v2", `"p":[1,2]`, widget("v1", `"p":[1,2]`)},
		"a list with a string":                {"p: {type: array, items: {type: integer}}", "p: {type: array, items: {x-kubernetes-int-or-string: true}}", "v2", `"p":[1,"2"]`, annotated("v1", `v2 {"/p":[1,"2"]}`, "")},
		"a map with a string":                 {"p: {type: object, additionalProperties: {type: integer}}", "p: {type: object, additionalProperties: {x-kubernetes-int-or-string: true}}", "v2", `"p":{"a":1,"b":"2"}`, annotated("v1", `v2 {"/p":{"a":1,"b":"2"}}`, "")},
		"a null list whose elements differ":   {"l: {type: array, nullable: true, items: {type: object, properties: {a: {type: string}, b: {type: string}}}}", "l: {type: array, items: {type: object, properties: {a: {type: string}}}}", "v1", `"l":null`, annotated("v2", `v1 {"/l":null}`, "")},
		"a null map whose values differ":      {"m: {type: object, additionalProperties: {type: object, properties: {a: {type: string}}}}", "m: {type: object, nullable: true, additionalProperties: {type: object, properties: {b: {type: string}}}}", "v2", `"m":null`, annotated("v1", `v2 {"/m":null}`, "")},
		"a list that may be null, and is not": {"l: {type: array, nullable: true, items: {type: object, properties: {a: {type: string}, b: {type: string}}}}", "l: {type: array, items: {type: object, properties: {a: {type: string}}}}", "v1", `"l":[]`, widget("v2", `"l":[]`)},
	} {
		t.Run(name, func(t *testing.T) {
			c := converterOf(t, between(t, test.v1, test.v2, ""))
			object := widget(test.from, test.object)
			wantRoundTrip(t, c, test.from, object, test.want, object)
		})
	}
}

// TestNullBesideANamedKey has a rule for a key of a map that may be null in one version only.
func TestNullBesideANamedKey(t *testing.T) {
	c := converterOf(t, between(t, "m: {type: object, nullable: true, additionalProperties: {type: string}}",
		"m: {type: object, additionalProperties: {type: string}}, b: {type: string}", `{move: {from: '.m["k"]', to: .b}}`))
	object := widget("v1", `"m":null`)
	wantRoundTrip(t, c, "v1", object, annotated("v2", `v1 {"/m":null}`, ""), object)
}

// TestFitsVerdict checks that a field which one side does not name is not exact, and that a policy
// can refuse it.
func TestFitsVerdict(t *testing.T) {
	crd := widgets(t, map[string]string{
		"v1": "c: {type: object, x-kubernetes-preserve-unknown-fields: true}, p: {type: integer}",
		"v2": "c: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {log: {type: object, properties: {level: {type: string}}}}}, p: {x-kubernetes-int-or-string: true}",
	})
	result := compile.Compile(crd, from[v1alpha1.DeclarativeConverter](t, "{hub: v2, spokes: [{version: v1}]}"))
	want := []compile.Verdict{{Version: "v1", ToHub: v1alpha1.FidelityPreserved, FromHub: v1alpha1.FidelityExact, Preserved: []compile.VersionedField{{Version: "v1", Path: ".c.log"}}}}
	expect.Equal(t, "verdict", want, result.Verdicts)
	partly := map[string]bool{}
	for _, leaf := range result.Leaves {
		partly[leaf.String()] = leaf.PartlyPreserved
	}
	expect.Equal(t, "odd", map[string]bool{"v1:.c.log": true, "v1:.c[*]": false, "v1:.p": false, "v2:.c.log.level": false, "v2:.c[*]": false, "v2:.p": true}, partly)
	result = compile.Compile(crd, from[v1alpha1.DeclarativeConverter](t, "{hub: v2, minimumFidelity: Exact, spokes: [{version: v1}]}"))
	if len(result.Errors) != 1 || result.Ruleset != nil {
		t.Errorf("with minimumFidelity: Exact there are the errors %v", result.Errors)
	}
}

// TestMoveWider moves a value between fields of which one allows more: values that both allow are
// moved, and all others are preserved, as at one path.
func TestMoveWider(t *testing.T) {
	const (
		integer = "{type: integer}"
		either  = "{x-kubernetes-int-or-string: true}"
		text    = "{type: string}"
		label   = `.metadata.labels["l"]`
	)
	for name, test := range map[string]struct{ a, b, from, object, want string }{
		"an integer":                   {integer, either, "v1", `"a":80`, widget("v2", `"b":80`)},
		"a string":                     {either, text, "v1", `"a":"http"`, widget("v2", `"b":"http"`)},
		"an integer where a string is": {either, text, "v1", `"a":80`, annotated("v2", `v1 {"/a":80}`, "")},
		"a fraction":                   {integer, "{type: number}", "v2", `"b":1.5`, annotated("v1", `v2 {"/b":1.5}`, "")},
		"a null":                       {"{type: integer, nullable: true}", either, "v1", `"a":null`, annotated("v2", `v1 {"/a":null}`, "")},
		"anything that is a string":    {"{x-kubernetes-preserve-unknown-fields: true}", text, "v1", `"a":"x"`, widget("v2", `"b":"x"`)},
		"anything that is none":        {"{x-kubernetes-preserve-unknown-fields: true}", text, "v1", `"a":{"c":[1]}`, annotated("v2", `v1 {"/a":{"c":[1]}}`, "")},
		"a string for anything":        {text, "{x-kubernetes-preserve-unknown-fields: true}", "v1", `"a":"x"`, widget("v2", `"b":"x"`)},
		"a list where a string is":     {text, "{x-kubernetes-preserve-unknown-fields: true}", "v2", `"b":["x"]`, annotated("v1", `v2 {"/b":["x"]}`, "")},
		"a null on both sides":         {"{type: integer, nullable: true}", "{x-kubernetes-int-or-string: true, nullable: true}", "v2", `"b":null`, widget("v1", `"a":null`)},
	} {
		t.Run(name, func(t *testing.T) {
			c := converterOf(t, between(t, "a: "+test.a, "b: "+test.b, "{move: {from: .a, to: .b}}"))
			object := widget(test.from, test.object)
			wantRoundTrip(t, c, test.from, object, test.want, object)
		})
	}

	t.Run("to a label", func(t *testing.T) {
		c := converterOf(t, between(t, "a: "+either, "", "{move: {from: .a, to: '"+label+"'}}"))
		expect.Contains(t, "at v2", convert(t, c, widget("v1", `"a":"http"`), "v2"), `"labels":{"l":"http"}`)
		there := convert(t, c, widget("v1", `"a":80`), "v2")
		if back := convert(t, c, there, "v1"); strings.Contains(there, `"l":80`) || !sameJSON(t, widget("v1", `"a":80`), back) {
			t.Errorf("%s comes back as %s", there, back)
		}
	})

	t.Run("an edit wins", func(t *testing.T) {
		c := converterOf(t, between(t, "a: "+integer, "b: "+either, "{move: {from: .a, to: .b}}"))
		there := convert(t, c, widget("v2", `"b":"http"`), "v1")
		edited := strings.TrimSuffix(there, "}") + `,"a":81}`
		expect.Equal(t, "back", widget("v2", `"b":81`), convert(t, c, edited, "v2"))
	})
}

func TestMoveWiderIsPartlyPreserved(t *testing.T) {
	for rule, want := range map[string][2]bool{
		"a: {type: integer}/b: {x-kubernetes-int-or-string: true}":          {false, true},
		"a: {type: number}/b: {type: integer}":                              {true, false},
		"a: {type: integer}/b: {type: integer}":                             {false, false},
		"a: {x-kubernetes-preserve-unknown-fields: true}/b: {type: string}": {true, false},
	} {
		a, b, _ := strings.Cut(rule, "/")
		for _, leaf := range between(t, a, b, "{move: {from: .a, to: .b}}").Leaves {
			if wanted := want[map[string]int{"v1": 0, "v2": 1}[leaf.Version]]; leaf.PartlyPreserved != wanted || leaf.Owner != compile.OwnerExact {
				t.Errorf("%s: %s is %s, odd: %t; want %s, odd: %t", rule, leaf, leaf.Owner, leaf.PartlyPreserved, compile.OwnerExact, wanted)
			}
		}
	}
}

// TestMoveWiderHasACanary checks that probes detect a pod which cannot move such a value.
func TestMoveWiderHasACanary(t *testing.T) {
	for _, sides := range [][2]string{{"{type: integer}", "{x-kubernetes-int-or-string: true}"}, {"{x-kubernetes-int-or-string: true}", "{type: string}"}, {"{type: string}", "{x-kubernetes-preserve-unknown-fields: true}"}} {
		c := converterOf(t, between(t, "a: "+sides[0], "b: "+sides[1], "{move: {from: .a, to: .b}}"))
		for version, field := range map[string]string{"v1": "b", "v2": "a"} {
			if got := canaryAt(t, c, version, other(version)); got[field] == nil {
				t.Errorf("%v: the canary of %s has no %s at %s: %s", sides, version, field, other(version), got)
			}
		}
	}
}

// TestCELHasACanary has a field that an expression only reads, which comes first by its name.
func TestCELHasACanary(t *testing.T) {
	c := converterOf(t, between(t, "a: {type: integer}, b: {type: integer}, s: {type: string}", "a: {type: integer}, b: {type: integer}, t: {type: string}",
		`{cel: {from: {a: .a, s: .s}, to: {b: .b, t: .t}, forward: {t: "self.s + (has(self.a) ? '+' : '')"}, backward: {s: "self.t + (has(self.b) ? '-' : '')"}}}`))
	for version, field := range map[string]string{"v1": "t", "v2": "s"} {
		expect.Contains(t, field+" of the canary of "+version, string(canaryAt(t, c, version, other(version))[field]), `"`)
	}
}

// TestMoveHasAValidCanary: a value that its own schema does not allow would be lost at a third version, which only
// preserves it.
func TestMoveHasAValidCanary(t *testing.T) {
	c := converterOf(t, between(t, "a: {type: boolean}", "b: {type: boolean}", "{move: {from: .a, to: .b}}"))
	for version, field := range map[string]string{"v1": "b", "v2": "a"} {
		if got := string(canaryAt(t, c, version, other(version))[field]); got != "true" && got != "false" {
			t.Errorf("%s of the canary of %s is %s at %s, and no boolean", field, version, got, other(version))
		}
	}
}
