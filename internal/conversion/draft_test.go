// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"encoding/json"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/conversion/internal/generate"
	"github.com/conversion-operator/conversion-operator/internal/conversion/internal/kindtest"
	"github.com/conversion-operator/conversion-operator/internal/conversion/reference"
	"github.com/conversion-operator/conversion-operator/internal/draft"
)

// TestDraftsSayWhereTheyDiffer checks in random worlds that a policy drafted by asking a converter gives the answers
// of that converter, or names the difference.
func TestDraftsSayWhereTheyDiffer(t *testing.T) {
	const worlds = 100
	silent, exact, rules := 0, 0, 0
	for seed := range uint64(worlds) {
		if seed%2 == 1 {
			seed |= generate.Nested
		}
		c := generate.Choose(seed, nil)
		crd, declared := randomWorld(t, c)
		compiled := compile.Compile(crd, declared)
		converter := kindtest.Converter(t, compiled.Ruleset)
		type exchange struct {
			to               string
			question, answer []byte
		}
		var exchanges []exchange
		input := draft.Input{CRD: crd, Spoke: "v1", Hub: "v2", Convert: func(to string, objects [][]byte) (answers [][]byte, err error) {
			for _, object := range objects {
				answer, err := converter.Convert(nil, object, to)
				if err != nil {
					return nil, draft.ErrRefused
				}
				exchanges, answers = append(exchanges, exchange{to, object, answer}), append(answers, answer)
			}
			return answers, nil
		}}
		found, err := draft.Make(input)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		drafted := compile.Compile(crd, found.Policy.Spec.Converter.Declarative)
		if len(drafted.Errors) > 0 {
			t.Fatalf("seed %d: the draft does not compile: %v", seed, drafted.Errors)
		}
		ours := kindtest.Converter(t, drafted.Ruleset)
		differs := map[string][]byte{}
		for _, e := range exchanges {
			converted, err := ours.Convert(nil, e.question, e.to)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if fieldsOf(t, converted) != fieldsOf(t, e.answer) {
				differs[e.to] = e.question
			}
		}
		for to, question := range differs {
			said := len(found.Probe.Problems) > 0
			for _, d := range append(found.Differences, found.Equivalent...) {
				said = said || d.To == to
			}
			if !said {
				silent++
				t.Errorf("seed %d: to %s, the draft converts %s in another way, and does not say so", seed, to, question)
			}
		}
		if len(found.Differences)+len(found.Probe.Problems) == 0 {
			exact++
		}
		rules += len(found.Rules)
	}
	t.Logf("of %d drafts, with %d rules, %d differ nowhere", worlds, rules, exact)
	if exact < worlds/4 || rules < worlds/2 {
		t.Errorf("of %d drafts with %d rules, only %d differ nowhere: the test shows little", worlds, rules, exact)
	}
}

// fieldsOf returns the fields of an object without its metadata, in a canonical form.
func fieldsOf(t *testing.T, object []byte) string {
	t.Helper()
	value, err := reference.Decode(object)
	if err != nil {
		t.Fatal(err)
	}
	delete(value.(map[string]any), "metadata")
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
