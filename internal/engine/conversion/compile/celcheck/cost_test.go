// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package celcheck

import (
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/expression"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestSizes compares the estimates for expressions over a list of objects with their real cost for
// 128 elements with the longest values: an estimate must not be lower, and only some times higher.
func TestSizes(t *testing.T) {
	const schema = `{type: array, items: {type: object, properties: {text: {type: string}, num: {type: integer}, float: {type: number},
		flag: {type: boolean}, either: {x-kubernetes-int-or-string: true}, at: {type: string, format: date-time}, for: {type: string, format: duration}}}}`
	long := strings.Repeat("t", assumedLength)
	element := `{"text":"` + long + `","num":-9223372036854775808,"float":-1.2345678901234567e-300,"flag":false,"either":"` + long + `",
		"at":"2024-10-11T12:13:14.123456789Z","for":"2540400h10m10.000000001s"}`
	var elements any
	expect.NoError(t, json.Unmarshal([]byte("["+element+strings.Repeat(","+element, assumedItems-1)+"]"), &elements))
	for text, atMost := range map[string]uint64{
		`string(c.num) + "s"`:                      5,
		`string(c.float) + "s"`:                    5,
		`string(c.flag) + "s"`:                     5,
		`string(c.at) + "s"`:                       5,
		`string(c.for) + "s"`:                      5,
		`string(c.either) + "s"`:                   5,
		`string(c.text) + "s"`:                     3,
		`c.?text.orValue("") + "s"`:                3,
		`"%d-%b".format([c.num, c.num]) + "s"`:     3,
		`"%s".format([c.text + "x"]) + "s"`:        3,
		`"%.3f".format([c.float * 1e300]) + "s"`:   8,
		`"%e %s".format([c.float, c.flag]) + "s"`:  8,
		`"%.90e".format([c.float]) + "s"`:          8,
		`"%s".format([c.either]) + "s"`:            4,
		`(c.flag ? string(c.num) : c.text) + "s"`:  4,
		`string(c.flag ? c.text : c.text) + "s"`:   3,
		`(c.flag ? dyn(c.num) : dyn(c.text)) == 1`: 9,
	} {
		scope, err := newScope([]Field{{Name: "l", Schema: structural(t, schema)}})
		expect.NoError(t, err)
		compiled, err := scope.Compile("self.l.map(c, " + text + ")")
		expect.NoError(t, err)
		estimate, err := scope.Env.EstimateCost(compiled, scope.estimator())
		expect.NoError(t, err)
		program, err := scope.Env.Program(compiled, cel.CostLimit(1<<40))
		expect.NoError(t, err)
		_, details, err := program.Eval(map[string]any{expression.Self: map[string]any{"l": schemacel.UnstructuredToVal(elements, structural(t, schema))}})
		expect.NoError(t, err)
		if cost := *details.ActualCost(); cost > estimate.Max || estimate.Max > cost*atMost {
			t.Errorf("%s is estimated at %d, and costs %d", text, estimate.Max, cost)
		}
	}
}

// TestComparisons checks estimates for comparisons of values without a size of their own: an
// unknown size would make an expression too expensive whatever the schema says.
func TestComparisons(t *testing.T) {
	fields := []Field{
		{Name: "either", Schema: structural(t, `{x-kubernetes-int-or-string: true}`)},
		{Name: "num", Schema: structural(t, `{type: integer}`)},
		{Name: "at", Schema: structural(t, `{type: string, format: date-time}`)},
		{Name: "text", Schema: structural(t, `{type: string, nullable: true}`)},
	}
	for _, text := range []string{
		`type(self.either) == int`, `type(self.either) == type(self.num)`, `type(self.either) == int ? optional.of(int(self.either)) : optional.none()`,
		`self.either == self.num`, `self.num == 3`, `self.?num == optional.of(3)`, `self.at == timestamp("2026-01-02T03:04:05Z")`,
		`self.either == dyn("x")`, `(self.num > 3) == true`,
	} {
		scope, err := newScope(fields)
		expect.NoError(t, err)
		compiled, err := scope.Compile(text)
		expect.NoError(t, err)
		if err := scope.checkCost(compiled, 1); err != nil {
			t.Errorf("%s %v", text, err)
		}
	}
}
