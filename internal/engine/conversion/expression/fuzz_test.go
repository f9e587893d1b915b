// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"encoding/json"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// FuzzEvaluate checks that for any expression and values, nothing panics, every result is JSON that
// fits the field, and another program for the same expression always gives the same result.
func FuzzEvaluate(f *testing.F) {
	schemas := []string{integer, double, boolean, text, texts, textMap, port, either,
		`{type: string, format: date-time}`, `{type: string, format: duration}`, `{type: string, format: byte}`,
		`{type: object, x-kubernetes-preserve-unknown-fields: true}`, `{type: string, nullable: true}`,
		`{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: ` + port + `}`}
	values := `[7, 1.5, true, "a:b", ["c","b"], {"y":"1","x":"2"}, {"name":"n","port":80}, "50%",
		"2024-01-02T03:04:05Z", "90m", "aGk=", {"any":[1,{"z":null}]}, null, [{"name":"b"},{"name":"a","port":1}]]`
	for i, expression := range []string{
		"self.a * 2 + int(self.b)", "self.d.split(':').map(x, x + '!')", "self.f.map(k, k + self.f[k])", "self.f.transformList(k, v, k + v)",
		"{'name': dyn(self.d), 'port': dyn(self.a)}", "self.?m", "self.i + self.j", "string(self.k)", "self.l", "self.n.map(p, p.name)",
		"self.e.all(x, self.e.exists(y, x == y))", "type(self.h) == int ? 1 : 2", "dyn(self.g) == dyn(self.f)", "self.n == self.n.filter(p, true)",
		"dyn(self.g).map(k, k)", "[1, 2.0, 'x'].map(x, dyn(x))", "{1: 'a', 'b': 'c'}.map(k, k)", "self.f.exists(k, 1 / int(self.f[k]) > 0)",
		"'%s'.format([self.f])", "quantity(self.d)", "self", "dyn(self)", "optional.of(self.n)", "-self.a / 0", "self.d.find('[a-z]')",
	} {
		f.Add(expression, values, uint8(i))
	}
	fields := make([]Field, len(schemas))
	for i, text := range schemas {
		fields[i] = Field{Name: string(rune('a' + i)), Schema: schemaOf(f, text)}
	}
	f.Fuzz(func(t *testing.T, expression, values string, target uint8) {
		to := []Field{{Name: "x", Schema: Anything, Expression: expression}, {Name: "y", Schema: fields[int(target)%len(fields)].Schema, Expression: expression}}
		var raw []json.RawMessage
		if json.Unmarshal([]byte(values), &raw) != nil || len(raw) > len(fields) {
			return
		}
		sources := make([]string, len(fields))
		for i, value := range raw {
			if _, err := new(tree.Arena).Read(value); err != nil {
				return // a name comes twice
			}
			sources[i] = string(value)
		}
		first, err := New(fields, to)
		if err != nil {
			return
		}
		second, err := New(fields, to)
		if err != nil {
			t.Fatalf("%s is no expression the second time: %v", expression, err)
		}
		want := results(t, first, sources...)
		for i, result := range want {
			if result == "" {
				continue
			}
			if !json.Valid([]byte(result)) || result == "null" {
				t.Errorf("%s gives %s", expression, result)
			}
			if err := shapeOf(to[i].Schema).Fits(nodeOf(t, new(tree.Arena), result)); err != nil {
				t.Errorf("%s gives %s, which the field cannot hold: %v", expression, result, err)
			}
		}
		for range 3 {
			expect.Equal(t, expression+", another result", want, results(t, second, sources...))
		}
	})
}
