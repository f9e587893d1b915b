// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// FuzzReverse checks that objects of which a conversion notes what they become again are what they are without notes, there and
// back, also after an edit.
func FuzzReverse(f *testing.F) {
	fuzzWorlds(f, func(t *testing.T, w *world) {
		slow, scopes, err := conversion.WithoutNotes(w.ruleset)
		expect.NoError(t, err)
		if scopes > 0 {
			w.count(noting)
		}
		w.MisfitEvery = []int{0, 8, 30}[w.IntN(3)]
		from, to := w.pair()
		there := wantAsSlow(t, w.converter, slow, w.object(from), to)
		wantAsSlow(t, w.converter, slow, there, from)
		wantAsSlow(t, w.converter, slow, w.edited(t, there, w.object(to)), from)
	}, noting)
}

const noting = "objects of rulesets with notes"

// wantAsSlow converts an object, and compares the result with that of a converter without notes.
func wantAsSlow(t *testing.T, c, slow *conversion.Converter, object, to string) string {
	t.Helper()
	want, got := convert(t, slow, object, to), convert(t, c, object, to)
	wantEqual(t, withDecodedAnnotations(t, want), withDecodedAnnotations(t, got), "%s\nis, with notes,\n%s", object, got)
	return got
}

// anyOthers marks the fields of an object that may have others.
const anyOthers = " and others"

// TestReverse converts elements that have fields which their schema does not have.
func TestReverse(t *testing.T) {
	for name, of := range map[string]struct{ v1, v2, rules, element string }{
		"with the other name":                               {ofA, ofB, `{move: {from: ".l[*].a", to: ".l[*].b"}}`, `{"a":"x","b":"y"}`},
		"with a field of the other side":                    {ofA, ofB + ", n: {type: string}", `{move: {from: ".l[*].a", to: ".l[*].b"}}`, `{"a":"x","n":"y"}`},
		"with a field of one side":                          {ofA + ", n: {type: string}", ofB, `{move: {from: ".l[*].a", to: ".l[*].b"}}`, `{"a":"x","n":"y"}`},
		"exchanged":                                         {ofA + ", " + ofB, ofA + ", " + ofB, `{move: {from: ".l[*].a", to: ".l[*].b"}}, {move: {from: ".l[*].b", to: ".l[*].a"}}`, `{"a":"x","b":"y"}`},
		"with an object that moves":                         {"o: " + objectOf(ofA+", old: {type: string}"), "p: " + objectOf(ofA), `{move: {from: ".l[*].o", to: ".l[*].p"}}`, `{"o":{"a":"x","old":"y"}}`},
		"with an object that gets a field":                  {ofA + ", o: " + objectOf(ofB), "o: " + objectOf(ofA+", "+ofB), `{move: {from: ".l[*].a", to: ".l[*].o.a"}}`, `{"a":"x","o":{"b":"y"}}`},
		"with a dropped field":                              {ofA + ", d: {type: string}", ofB, `{move: {from: ".l[*].a", to: ".l[*].b"}}, {drop: {from: ".l[*].d"}}`, `{"a":"x","d":"y"}`},
		"with a field that is dropped inside of what moves": {"o: " + objectOf("x: {type: string}, "+ofA), "p: " + objectOf(ofA), `{move: {from: ".l[*].o", to: ".l[*].p"}}, {drop: {from: ".l[*].o.x"}}`, `{"o":{"a":"x","x":"y"}}`},
		"with a field that gets out of what moves":          {"o: " + objectOf("x: {type: string}, "+ofA), "x: {type: string}, p: " + objectOf(ofA), `{move: {from: ".l[*].o", to: ".l[*].p"}}, {move: {from: ".l[*].o.x", to: ".l[*].x"}}`, `{"o":{"a":"x","x":"y"}}`},
		"with any fields in what moves":                     {"o: {type: object, " + open + "}", "p: " + objectOf(ofA), `{move: {from: ".l[*].o", to: ".l[*].p"}}`, `{"o":{"a":"x","x":"y"}}`},
		"with a translated value":                           {ofA + ", " + "v: {type: string}", ofB + ", v: {type: string}", `{move: {from: ".l[*].a", to: ".l[*].b"}}, {values: {from: ".l[*].v", to: ".l[*].v", table: [{from: x, to: y}]}}`, `{"a":"x","v":"x"}`},
		"in maps in maps":                                   {"m: {type: object, additionalProperties: " + mapOf(ofA) + "}", "m: {type: object, additionalProperties: " + mapOf(ofB) + "}", `{move: {from: ".l[*].m[*][*].a", to: ".l[*].m[*][*].b"}}`, `{"m":{"x":{"a":{"a":"x"},"y":{"a":"y"}}}}`},
		"with any fields beside":                            {ofA + ", n: {type: string}", ofB + anyOthers, `{move: {from: ".l[*].a", to: ".l[*].b"}}`, `{"a":"x","n":"y","z":"z"}`},
		"with any fields":                                   {"a: {type: string}, o: {type: object, " + open + "}", "b: {type: string}, o: " + objectOf(ofA), `{move: {from: ".l[*].a", to: ".l[*].b"}}`, `{"a":"x","o":{"z":"y"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			list := func(fields string) string {
				fields, isOpen := strings.CutSuffix(fields, anyOthers)
				return "l: " + strings.Replace(listOf(fields), "type: object", "type: object"+map[bool]string{true: ", " + open}[isOpen], 1)
			}
			result := between(t, list(of.v1), list(of.v2), of.rules)
			fast := converterOf(t, result)
			slow, _, err := conversion.WithoutNotes(result.Ruleset)
			expect.NoError(t, err)
			for version, other := range map[string]string{"v1": "v2", "v2": "v1"} {
				object := widget(version, `"l":[`+of.element+`,`+of.element+`]`)
				wantAsSlow(t, fast, slow, wantAsSlow(t, fast, slow, object, other), version)
			}
		})
	}
}
