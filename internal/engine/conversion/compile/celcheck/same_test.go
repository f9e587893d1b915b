// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package celcheck

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/json"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/expression"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/internal/generate"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/internal/kindtest"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestSameTypesAndValues compares what converter pods make of the small form of a schema with what
// the API server's libraries make of the schema: the declared types, values with everything in
// them, and their equality.
func TestSameTypesAndValues(t *testing.T) {
	random := generator{&generate.Objects{Choices: generate.Choose(1, nil), MisfitEvery: 12}}
	errors, equal := 0, 0
	for range 3000 {
		props := random.schema(3)
		full, small := kindtest.Structural(t, props), podSchema(t, props)
		want := describe(model.SchemaDeclType(full, full.XEmbeddedResource))
		if diff := cmp.Diff(want, describe(common.SchemaDeclType(small, small.IsXEmbeddedResource()))); diff != "" {
			t.Fatalf("type of %s (-library +pod):\n%s", plain(props), diff)
		}
		values := []any{random.value(full), random.value(full), random.value(&schema.Structural{}), nil}
		for _, value := range values {
			want, got := dump(schemacel.UnstructuredToVal(value, full)), dump(common.UnstructuredToVal(value, small))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%v of %s (-library +pod):\n%s", value, plain(props), diff)
			}
			if strings.Contains(want, "error") {
				errors++
				continue // whether a comparison fails depends on the order of a map
			}
			for _, other := range values {
				if strings.Contains(dump(schemacel.UnstructuredToVal(other, full)), "error") {
					continue
				}
				want := dump(schemacel.UnstructuredToVal(value, full).Equal(schemacel.UnstructuredToVal(other, full)))
				if got := dump(common.UnstructuredToVal(value, small).Equal(common.UnstructuredToVal(other, small))); got != want {
					t.Fatalf("%v == %v of %s is %s in pods and %s in the library", value, other, plain(props), got, want)
				}
				if want == "bool true" {
					equal++
				}
			}
		}
	}
	if errors < 1000 || equal < 3000 {
		t.Errorf("only %d values were refused, and %d pairs equal: the test tries too little", errors, equal)
	}
}

// TestSameProgram compiles expressions as the compiler does, with all limits and the library of the
// oldest supported release, and as converter pods do, and runs both: types, functions, results,
// errors and costs are the same.
func TestSameProgram(t *testing.T) {
	schemas := map[string]string{
		"i": integer, "d": double, "b": boolean,
		"s": text, "l": texts, "m": textMap,
		"p": port, "e": either, "o": open,
		"t": `{type: string, format: date-time}`, "u": `{type: string, format: duration}`,
		"y": `{type: string, format: byte}`,
		"k": `{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: ` + port + `}`,
		"z": `{type: array, x-kubernetes-list-type: set, items: {type: string}}`,
		"r": `{type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true, properties: {spec: {type: object, properties: {namespace: {type: string}}}}}`,
		"n": `{type: object, properties: {q: {type: string, nullable: true}}}`,
	}
	values := map[string]any{
		"i": int64(7), "d": 1.5, "b": true, "s": "a:b", "l": []any{"b", "a"}, "m": map[string]any{"x": "1", "w": "2"},
		"p": map[string]any{"name": "n", "port": int64(80)}, "e": "50%", "t": "2024-01-02T03:04:05Z", "u": "90m", "y": "aGk=",
		"k": []any{map[string]any{"name": "b"}, map[string]any{"name": "a", "port": int64(1)}}, "z": []any{"v", "u"},
		"r": map[string]any{"apiVersion": "v1", "kind": "K", "metadata": map[string]any{"name": "x", "labels": map[string]any{}}, "spec": map[string]any{"namespace": "ns"}},
		"n": map[string]any{"q": nil},
	}
	var fields []Field
	full, small, podTypes := map[string]any{}, map[string]any{}, map[string]*apiservercel.DeclType{}
	for name, text := range schemas {
		ofPod := podSchema(t, schemaOf(t, text))
		fields, podTypes[name] = append(fields, Field{Name: name, Schema: structural(t, text)}), common.SchemaDeclType(ofPod, ofPod.IsXEmbeddedResource())
		if value, found := values[name]; found {
			full[name], small[name] = schemacel.UnstructuredToVal(value, structural(t, text)), common.UnstructuredToVal(value, ofPod)
		}
	}
	manager, err := newScope(fields)
	expect.NoError(t, err)
	pod, err := expression.NewScope(podTypes, expression.StoredExpressions)
	expect.NoError(t, err)
	for _, text := range []string{
		"self.i * 2 + int(self.d)", "self.d / 0.0", "1 / (self.i - 7)", "self.s.split(':').map(x, x + '!')", "self.l + ['c']", "self.l.sort()", "self.l.join()",
		"self.m.map(k, k + self.m[k])", "self.m.transformList(k, v, k + v)", "self.m.transformMap(k, v, v + k)", "self.m['nothing']", "self.?m['nothing'].orValue('')",
		"{'name': dyn(self.s), 'port': dyn(self.i)}", "has(self.p.tags) ? 1 : 0", "self.p.port + 1", "self.p.tags", "self.p", "type(self.e) == int ? 1 : 2",
		"self.e == 'x'", "string(self.t)", "self.t + self.u", "self.u.getSeconds()", "string(self.y)", "self.k == self.k.filter(p, true)", "self.k + self.k",
		"self.k[0].name", "self.z + ['w']", "self.z == ['u', 'v']", "self.r.metadata.name", "has(self.r.metadata.generateName)", "self.r.kind", "self.r.spec.namespace",
		"has(self.n.q)", "self.n", "self.?n.?q.orValue('none')", "self.l.all(x, self.l.exists(y, x == y))", "quantity('1k').asInteger()", "ip('::1').family()",
		"self.s.find('[a-z]')", "self.s.replace('a', self.s)", "sets.contains(self.l, self.z)", "self.l.distinct()", "'%s %d'.format([self.s, self.i])",
		"isSemver('1.2.3')", "url('https://a/b').getHost()", "format.dns1123Label().validate('A')", "self.l.indexOf('a')", "self.l.sum() == ''", "optional.of(self.k)", "self",
	} {
		t.Run(text, func(t *testing.T) {
			wantAST, err := manager.Compile(text)
			gotAST, podErr := pod.Compile(text)
			if err != nil || podErr != nil {
				expect.Equal(t, "error (-compiler +pod)", fmt.Sprint(err), fmt.Sprint(podErr))
				return
			}
			expect.Equal(t, "types and functions (-compiler +pod)", checked(wantAST), checked(gotAST))
			expect.Equal(t, "result and cost (-libraries +pod)", run(t, manager.Scope, wantAST, full), run(t, pod, gotAST, small))
		})
	}
}

// checked returns the types and functions that the type checker found.
func checked(compiled *cel.Ast) map[int64]string {
	found := map[int64]string{}
	for id, of := range compiled.NativeRep().TypeMap() {
		found[id] = of.String()
	}
	for id, reference := range compiled.NativeRep().ReferenceMap() {
		found[id] += fmt.Sprint(reference.Name, slices.Sorted(slices.Values(reference.OverloadIDs)), reference.Value)
	}
	return found
}

func run(t *testing.T, scope *expression.Scope, compiled *cel.Ast, self map[string]any) string {
	t.Helper()
	program, err := scope.Program(compiled)
	expect.NoError(t, err)
	result, details, err := program.Eval(map[string]any{expression.Self: self})
	if err != nil {
		return fmt.Sprintf("error %v, cost %d", err, *details.ActualCost())
	}
	return fmt.Sprintf("%s, cost %d", dump(result), *details.ActualCost())
}

// describe returns a type with everything in it, but not its maximum size: converter pods make no
// estimates.
func describe(of *apiservercel.DeclType) string {
	if of == nil {
		return "none"
	}
	text := of.CelType().String()
	if of.IsObject() {
		for _, name := range slices.Sorted(maps.Keys(of.Fields)) {
			text += " " + name + "=(" + describe(of.Fields[name].Type) + ")"
		}
	}
	if of.KeyType != nil {
		text += " keys " + describe(of.KeyType)
	}
	if of.ElemType != nil {
		text += " of (" + describe(of.ElemType) + ")"
	}
	return text
}

// dump returns a value with everything in it.
func dump(value ref.Val) string {
	switch value := value.(type) {
	case *types.Err:
		return "error " + value.String()
	case *types.Optional:
		if !value.HasValue() {
			return "none"
		}
		return "optional " + dump(value.GetValue())
	case traits.Lister:
		var elements []string
		for i := types.Int(0); i < value.Size().(types.Int); i++ {
			elements = append(elements, dump(value.Get(i)))
		}
		return fmt.Sprintf("%T %q", value, elements)
	case traits.Mapper:
		names := map[string]bool{"apiVersion": true, "kind": true, "metadata": true, "a": true, "b": true, "namespace": true, "__namespace__": true}
		if members, is := value.Value().(map[string]any); is {
			for name := range members {
				names[name] = true
			}
		}
		var members []string
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if member, found := value.Find(types.String(name)); found {
				members = append(members, name+"="+dump(member))
			}
		}
		return fmt.Sprintf("%T %v %q", value, value.Size(), members)
	}
	return fmt.Sprintf("%s %v", value.Type().TypeName(), value.Value())
}

// generator generates schemas with all features, also combined, and values that mostly fit them.
type generator struct{ *generate.Objects }

func (g generator) schema(depth int) *apiextensionsv1.JSONSchemaProps {
	s := &apiextensionsv1.JSONSchemaProps{Nullable: g.IntN(4) == 0, MaxLength: new(int64(40)), MaxItems: new(int64(5)), MaxProperties: new(int64(6))}
	if g.IntN(6) == 0 {
		s.XPreserveUnknownFields = new(true)
	}
	kinds := []string{"integer", "number", "boolean", "string", "string", "", "array", "object", "object"}
	if depth == 0 {
		kinds = kinds[:6]
	}
	switch s.Type = kinds[g.IntN(len(kinds))]; s.Type {
	case "":
		s.XIntOrString = g.IntN(2) == 0
	case "string":
		s.Format = []string{"", "date", "date-time", "duration", "byte", "uuid"}[g.IntN(6)]
	case "array":
		s.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: g.schema(depth - 1)}
		switch g.IntN(4) {
		case 0:
			s.XListType = new("set")
		case 1:
			s.XListType, s.XListMapKeys = new("map"), []string{"a"}
			s.Items.Schema = &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"a": {Type: "integer"}, "b": *g.schema(0)}}
		case 2:
			s.XListType = new("atomic")
		}
	case "object":
		g.members(s, depth)
	}
	return s
}

func (g generator) members(s *apiextensionsv1.JSONSchemaProps, depth int) {
	s.XEmbeddedResource = g.IntN(5) == 0
	if g.IntN(4) == 0 {
		s.XMapType = new("atomic")
	}
	switch g.IntN(5) {
	case 0:
		s.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: g.schema(depth - 1)}
	case 1:
		s.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: g.IntN(2) == 0}
	case 2, 3:
		s.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
		for _, name := range []string{"a", "b", "namespace", "apiVersion", "kind", "metadata"} {
			if g.IntN(2) == 0 {
				s.Properties[name] = *g.schema(depth - 1)
			}
		}
		s.Required = []string{"a"}
	}
}

// value generates a value as API servers decode it: null for a number that is too large.
func (g generator) value(s *schema.Structural) (value any) {
	_ = json.Unmarshal([]byte(generate.Plain(g.Value(s))), &value)
	return value
}

func plain(s *apiextensionsv1.JSONSchemaProps) string {
	text, _ := json.Marshal(s)
	return string(text)
}
