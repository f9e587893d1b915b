// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"strings"
	"testing"

	"github.com/google/cel-go/cel"

	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// BenchmarkEvaluate measures the time of expressions, and of a unit of cost.
func BenchmarkEvaluate(b *testing.B) {
	long := `"` + strings.Repeat("a1,", 2000) + `"`
	for name, tc := range map[string]struct{ expression, from, to, value string }{
		"integer":     {"self.a / 65536", integer, integer, `131075`},
		"text":        {"self.a.split(':')[0]", text, text, `"host:80"`},
		"list":        {"self.a.map(x, x + ':80').join(',')", texts, text, `["a","b","c","d"]`},
		"long text":   {"self.a.split(',').map(x, x + '!').join(',')", text, text, long},
		"long regexp": {"string(self.a.matches('(a|1|,)*(b|c|d|e|f|g|h|i|j)+$'))", text, text, long},
		"loops":       {"self.a.all(x, self.a.all(y, x == y))", texts, boolean, longList},
		"loops of integers": {"self.a.all(x, self.a.map(y, x + y).size() > 0)", `{type: array, items: {type: integer}}`, boolean,
			strings.ReplaceAll(longList, `"a"`, `1`)},
	} {
		b.Run(name, func(b *testing.B) {
			from := []Field{{Name: "a", Schema: schemaOf(b, tc.from)}}
			scope, self := scopeOf(b, from[0].Schema, tc.value)
			compiled, err := scope.Compile(tc.expression)
			expect.NoError(b, err)
			program, err := scope.Env.Program(compiled, cel.CostLimit(1<<40), cel.CustomDecoratorV2(iterateSorted(compiled.NativeRep())))
			expect.NoError(b, err)
			_, details, err := program.Eval(self)
			expect.NoError(b, err)
			p := &Program{sources: from, reads: []bool{true}, targets: []target{{program, shapeOf(schemaOf(b, tc.to))}}}
			b.ReportAllocs()
			for b.Loop() {
				a := tree.NewArena()
				p.Evaluate(a, Input{Values: []*tree.Node{nodeOf(b, a, tc.value)}}, new(Budget))
				a.Free()
			}
			cost := float64(*details.ActualCost())
			b.ReportMetric(cost, "units")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/cost, "ns/unit")
		})
	}
}
