// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/expression"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// costlyConverter has a rule that compares a text with itself, which has a high cost and takes no
// time.
func costlyConverter(t testing.TB) *conversion.Converter {
	t.Helper()
	compared := strings.Repeat("self.text == self.text && ", 99) + "true"
	return converterOf(t, between(t,
		`l: {type: array, items: {type: object, properties: {text: {type: string}}}}`, `l: {type: array, items: {type: object, properties: {same: {type: boolean}}}}`,
		`{cel: {from: {text: ".l[*].text"}, to: {same: ".l[*].same"}, forward: {same: "`+compared+`"}, backward: {text: "string(self.same)"}}}`))
}

// longTexts returns a list of count texts of a length.
func longTexts(count, length int) string {
	return repeated(`"l":[`, `{"text":"`+strings.Repeat("a", length)+`"}`, `]`)(count)
}

// TestExpressionsHaveABudget converts an object with a thousand texts of the length that estimates
// assume. An object in which each text costs as much as one evaluation may cost fails, always at
// the same cost.
func TestExpressionsHaveABudget(t *testing.T) {
	c := costlyConverter(t)
	convert(t, c, widget("v1", longTexts(1000, 128)), "v2")

	tooMuch := widget("v1", longTexts(70, 9000))
	_, err := c.Convert(nil, []byte(tooMuch), "v2")
	exceeded := wantError[*conversion.BudgetError](t, "too much", err)
	if exceeded.Field != ".l[*].same" || exceeded.Limit != expression.BudgetLimit || exceeded.Cost <= exceeded.Limit || exceeded.Cost > exceeded.Limit+110_000 {
		t.Errorf("error %+v", exceeded)
	}
	_, again := c.Convert(nil, []byte(tooMuch), "v2")
	expect.Equal(t, "error the second time", err.Error(), fmt.Sprint(again))
	convert(t, c, widget("v1", longTexts(10, 9000)), "v2")
}

// TestForgedElementsHaveTheSameBudget checks that elements in an annotation, which are converted
// for comparison, use the budget of the object.
func TestForgedElementsHaveTheSameBudget(t *testing.T) {
	c := costlyConverter(t)
	preserved := repeated("{", `"~/l/%d":{"text":"`+strings.Repeat("a", 9000)+`"}`, "}")(70)
	_, err := c.Convert(nil, []byte(annotated("v2", "v1 "+preserved, `"l":[{"same":true}]`)), "v1")
	expect.Equal(t, "field", ".l[*].same", wantError[*conversion.BudgetError](t, "forged", err).Field)
}

// TestManyEditsStayReadable edits elements of a list that one expression reads as a whole: what would cost too much to judge stays
// preserved, and the object comes back.
func TestManyEditsStayReadable(t *testing.T) {
	const list = "{type: array, maxItems: 1000, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], " +
		"items: {type: object, required: [name], properties: {name: {type: string, maxLength: 10}, %s: {type: string, maxLength: 10}%s}}}"
	c := converterOf(t, between(t, "l: "+fmt.Sprintf(list, "a", ", b: {type: string, maxLength: 10}"), "m: "+fmt.Sprintf(list, "ab", ""), `{cel: {from: {l: .l}, to: {m: .m},
		forward: {m: "self.l.map(e, {'name': e.name, 'ab': e.a + e.?b.orValue('')})"}, backward: {l: "self.m.map(e, {'name': e.name, 'a': e.ab})"}}}`))
	var elements []string
	for i := range 400 {
		elements = append(elements, fmt.Sprintf(`{"name":"n%d","a":"a%d","b":"own"}`, i, i))
	}
	there := convert(t, c, named("v1", "", `"l":[`+strings.Join(elements, ",")+`]`), "v2")
	for i := range 50 {
		there = strings.Replace(there, fmt.Sprintf(`"ab":"a%down"`, 8*i), `"ab":"edited"`, 1)
	}
	back := convert(t, c, there, "v1")
	expect.Equal(t, "edits", 50, strings.Count(back, `"a":"edited"`))
	if unedited := strings.Count(back, `"b":"own"`) + strings.Count(back, `]/b\":\"own\"`); unedited < 350 || unedited > 400 {
		t.Errorf("%d values are restored or preserved, want those of the 350 elements that are not edited: %s", unedited, back)
	}
}

// TestStop checks that a conversion calls stop from time to time, but not for a small object.
func TestStop(t *testing.T) {
	c := costlyConverter(t)
	asked := 0
	stop := func(int64) bool { asked++; return asked == 3 }
	if _, _, err := c.Answer(nil, []byte(widget("v1", longTexts(10, 20))), "v2", stop); err != nil || asked > 0 {
		t.Errorf("asked %d times, error %v", asked, err)
	}
	out, _, err := c.Answer([]byte("["), []byte(widget("v1", longTexts(5000, 1))), "v2", stop)
	if !errors.Is(err, conversion.ErrStopped) || asked != 3 || string(out) != "[" {
		t.Errorf("asked %d times, error %v, output %.20s", asked, err, out)
	}
}

// TestWorkHasALimit checks that a very long name is not multiplied by the values below it, and that
// as many elements as an API server accepts are converted.
func TestWorkHasALimit(t *testing.T) {
	const schema = `m: {type: object, additionalProperties: {type: object, properties: {a: {type: string},
		in: {type: object, additionalProperties: {type: object, properties: {%s: {type: string}}}}}}}`
	c := converterOf(t, between(t, fmt.Sprintf(schema, "b"), fmt.Sprintf(schema, "c"), ``))
	fields := func(name string, count int, value string) string {
		return `"m":{"` + name + `":{"in":` + repeated("{", `"%d":`+value, "}")(count) + `}}`
	}
	long := strings.Repeat("k", 300_000)
	_, err := c.Convert(nil, []byte(widget("v1", fields(long, 3000, `{"b":""}`))), "v2")
	expect.Equal(t, "limit", conversion.WorkLimit, wantError[*conversion.BudgetError](t, "leaving", err).Limit)
	const preserved = `v1 {"/m/k/in/1/b":"x"}`
	convert(t, c, annotated("v2", preserved, fields(long, 30_000, `{}`)), "v1")
	convert(t, c, widget("v1", fields("k", 100_000, `{}`)), "v2")
	convert(t, c, annotated("v2", preserved, fields("k", 100_000, `{}`)), "v1")
}
