// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"encoding/json"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/internal/cli/draft"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/internal/generate"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/internal/kindtest"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestDraftsSayWhereTheyDiffer checks in random worlds that a policy drafted by asking a converter gives the answers
// of that converter, or names the difference. Objects that the converter was not asked about may differ in what no
// probe shows: single values without an enum, and single keys of maps. That is rare.
func TestDraftsSayWhereTheyDiffer(t *testing.T) {
	const worlds = 100
	exact, others, rules := 0, 0, 0
	for seed := range uint64(worlds) {
		if seed%2 == 1 {
			seed |= generate.Nested
		}
		w := newDraftWorld(t, seed)
		w.checkAnswers(t)
		if rules += len(w.draft.Rules); w.draft.IsAmbiguous() || len(w.draft.Equivalent) > 0 {
			continue
		}
		exact++
		if w.differsElsewhere(t) {
			others++
		}
	}
	t.Logf("of %d drafts, with %d rules, %d differ nowhere, of which %d convert other objects in another way", worlds, rules, exact, others)
	if exact < worlds/3 || rules < worlds/3 || others > exact/10 {
		t.Errorf("of %d drafts, with %d rules, %d differ nowhere, of which %d convert other objects in another way", worlds, rules, exact, others)
	}
}

// draftWorld has rules, and a draft by asking a converter for them.
type draftWorld struct {
	seed               uint64
	choices            *generate.Choices
	crd                *apiextensionsv1.CustomResourceDefinition
	converter, drafted *conversion.Converter
	draft              *draft.Draft
	exchanges          []exchange
}

// exchange is a question to a converter, and its answer.
type exchange struct {
	to               string
	question, answer []byte
}

func newDraftWorld(t *testing.T, seed uint64) *draftWorld {
	t.Helper()
	w := &draftWorld{seed: seed, choices: generate.Choose(seed, nil)}
	crd, rules := randomWorld(t, w.choices)
	w.crd, w.converter = crd, kindtest.Converter(t, compile.Compile(crd, rules).Ruleset)
	found, err := draft.Make(draft.Input{CRD: crd, Spoke: "v1", Hub: "v2", Convert: w.answer})
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	compiled := compile.Compile(crd, found.Policy.Spec.Converter.Declarative)
	if len(compiled.Errors) > 0 {
		t.Fatalf("seed %d: the draft does not compile: %v", seed, compiled.Errors)
	}
	w.draft, w.drafted = found, kindtest.Converter(t, compiled.Ruleset)
	return w
}

func (w *draftWorld) answer(to string, objects [][]byte) (answers [][]byte, err error) {
	for _, object := range objects {
		answer, err := w.converter.Convert(nil, object, to)
		if err != nil {
			return nil, draft.ErrRefused
		}
		w.exchanges, answers = append(w.exchanges, exchange{to, object, answer}), append(answers, answer)
	}
	return answers, nil
}

// checkAnswers checks that the draft gives the same answers, or says that it does not.
func (w *draftWorld) checkAnswers(t *testing.T) {
	t.Helper()
	for _, e := range w.exchanges {
		converted, err := w.drafted.Convert(nil, e.question, e.to)
		if err != nil {
			t.Fatalf("seed %d: %v", w.seed, err)
		}
		said := len(w.draft.Probe.Problems) > 0
		for _, d := range append(w.draft.Differences, w.draft.Equivalent...) {
			said = said || d.To == e.to
		}
		if !said && fieldsOf(t, converted) != fieldsOf(t, e.answer) {
			t.Fatalf("seed %d: to %s, the draft converts %s in another way, and does not say so", w.seed, e.to, e.question)
		}
	}
}

// differsElsewhere reports whether the draft converts random objects in another way.
func (w *draftWorld) differsElsewhere(t *testing.T) bool {
	t.Helper()
	objects := generate.Objects{Choices: w.choices}
	for i, to := range []string{"v2", "v1"} {
		from := w.crd.Spec.Versions[i]
		for range 20 {
			object := objects.Object(kindtest.Structural(t, from.Schema.OpenAPIV3Schema), "example.com/"+from.Name, "Widget")
			delete(object, "metadata")
			text, err := json.Marshal(object)
			expect.NoError(t, err)
			want, errWant := w.converter.Convert(nil, text, to)
			got, errGot := w.drafted.Convert(nil, text, to)
			if errWant != nil || errGot != nil {
				t.Fatalf("seed %d: %v, %v", w.seed, errWant, errGot)
			}
			if fieldsOf(t, got) != fieldsOf(t, want) {
				return true
			}
		}
	}
	return false
}

// fieldsOf returns the fields of an object without its metadata, in a canonical form.
func fieldsOf(t *testing.T, object []byte) string {
	t.Helper()
	value, err := decodeAny(object)
	expect.NoError(t, err)
	delete(value.(map[string]any), "metadata")
	text, err := json.Marshal(value)
	expect.NoError(t, err)
	return string(text)
}
