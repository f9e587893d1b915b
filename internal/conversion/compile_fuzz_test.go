// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// inventor makes up schemas, rules that may or may not fit them, and objects.
type inventor struct{ *rand.Rand }

func (v inventor) oneOf(names ...string) string { return names[v.IntN(len(names))] }

// fields of an object. There are few names, so that both versions share some.
func (v inventor) fields(depth int) map[string]apiextensionsv1.JSONSchemaProps {
	fields := map[string]apiextensionsv1.JSONSchemaProps{}
	for range 1 + v.IntN(5) {
		fields[v.oneOf("a", "b", "c", "d", "e")] = v.schema(depth)
	}
	return fields
}

func (v inventor) schema(depth int) apiextensionsv1.JSONSchemaProps {
	kinds := 7
	if depth > 0 {
		kinds = 14
	}
	s := apiextensionsv1.JSONSchemaProps{Nullable: v.IntN(8) == 0}
	yes := true
	switch v.IntN(kinds) {
	case 0, 1, 2:
		s.Type = "string"
	case 3, 4:
		s.Type = "integer"
	case 5:
		s.XIntOrString = true
	case 6:
		s.Type = "boolean"
	case 7, 8, 9:
		s.Type, s.Properties = "object", v.fields(depth-1)
		if v.IntN(5) == 0 {
			s.XPreserveUnknownFields = &yes
		}
	case 10, 11:
		items := v.schema(depth - 1)
		if v.IntN(2) == 0 {
			items = apiextensionsv1.JSONSchemaProps{Type: "object", Properties: v.fields(depth - 1)}
		}
		s.Type, s.Items = "array", &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &items}
		if items.Type == "object" && items.Properties != nil && v.IntN(2) == 0 {
			items.Properties["k"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
			items.Nullable = false
			kind := "map"
			s.XListType, s.XListMapKeys = &kind, []string{"k"}
		}
	case 12:
		values := v.schema(depth - 1)
		s.Type, s.AdditionalProperties = "object", &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &values}
	case 13:
		s.Type, s.XPreserveUnknownFields = "object", &yes
		if v.IntN(2) == 0 {
			s.XEmbeddedResource, s.Properties = true, v.fields(depth-1)
		}
	}
	return s
}

// kin is a schema that has something to do with another one.
func (v inventor) kin(s apiextensionsv1.JSONSchemaProps, depth int) apiextensionsv1.JSONSchemaProps {
	s = *s.DeepCopy()
	switch v.IntN(10) {
	case 0:
		return v.schema(depth)
	case 1:
		return apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &s}}
	case 2:
		if s.Type == "string" || s.Type == "integer" {
			return apiextensionsv1.JSONSchemaProps{Type: map[string]string{"string": "integer", "integer": "string"}[s.Type]}
		}
		if s.Items != nil {
			return *s.Items.Schema
		}
	case 3, 4:
		if s.Items != nil && s.Items.Schema.Properties["k"].Type != "" {
			values := s.Items.Schema
			delete(values.Properties, "k")
			return apiextensionsv1.JSONSchemaProps{Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: values}}
		}
	}
	if s.Properties != nil {
		s.Properties = v.kinOf(s.Properties, depth-1)
	}
	if s.Items != nil && s.XListType == nil {
		items := v.kin(*s.Items.Schema, depth-1)
		s.Items.Schema = &items
	}
	return s
}

func (v inventor) kinOf(fields map[string]apiextensionsv1.JSONSchemaProps, depth int) map[string]apiextensionsv1.JSONSchemaProps {
	made := map[string]apiextensionsv1.JSONSchemaProps{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		to := name
		if v.IntN(4) == 0 {
			to = v.oneOf("a", "b", "c", "d", "e")
		}
		if v.IntN(6) > 0 {
			made[to] = v.kin(fields[name], depth)
		}
	}
	return made
}

// rule has paths of both versions, chosen without much thought.
func (v inventor) rule(spoke, hub []v1alpha1.Path) v1alpha1.Rule {
	from, to := spoke[v.IntN(len(spoke))], hub[v.IntN(len(hub))]
	if v.IntN(2) == 0 && slices.Contains(hub, from) {
		to = from
	}
	one := v.IntN(2) == 0
	switch v.IntN(12) {
	default:
		return v1alpha1.Rule{Move: &v1alpha1.MoveRule{From: from, To: to}}
	case 4:
		return v1alpha1.Rule{Format: &v1alpha1.FormatRule{From: from, Template: "{p}:{q}", To: map[string]v1alpha1.Path{"p": to, "q": hub[v.IntN(len(hub))]}}}
	case 5:
		return v1alpha1.Rule{Values: &v1alpha1.ValuesRule{From: from, To: to, Table: []v1alpha1.ValuePair{{From: "a", To: "b"}, {From: "x", To: "b"}}}}
	case 6:
		return v1alpha1.Rule{Wrap: &v1alpha1.WrapRule{From: from, To: to}}
	case 7:
		return v1alpha1.Rule{Cast: &v1alpha1.CastRule{From: from, To: to, As: v1alpha1.CastType(v.oneOf("Integer", "Seconds"))}}
	case 8, 10, 11:
		return v1alpha1.Rule{Index: &v1alpha1.IndexRule{From: from, To: to, Key: "k"}}
	case 9:
		switch value := (apiextensionsv1.JSON{Raw: []byte(v.oneOf(`"a"`, `7`, `true`))}); {
		case v.IntN(2) == 0 && one:
			return v1alpha1.Rule{Drop: &v1alpha1.DropRule{From: from}}
		case one:
			return v1alpha1.Rule{Default: &v1alpha1.DefaultRule{From: from, Value: value}}
		case v.IntN(2) == 0:
			return v1alpha1.Rule{Drop: &v1alpha1.DropRule{To: to}}
		default:
			return v1alpha1.Rule{Default: &v1alpha1.DefaultRule{To: to, Value: value}}
		}
	}
}

// paths of a schema, and some that are in none.
func (v inventor) paths(s *schema.Structural) []v1alpha1.Path {
	paths := []v1alpha1.Path{".z", ".a.z", ".a[*]", `.metadata.labels["l"]`, `.metadata.annotations["n"]`}
	eachField(s, nil, func(path Path) { paths = append(paths, v1alpha1.Path(path.String())) })
	for _, path := range paths[5:] {
		if found, err := parsePath(string(path)); err == nil {
			if at, err := resolve(s, found); err == nil && valuesOf(at) != nil {
				paths = append(paths, path+`["x"]`)
			}
		}
		if one := strings.Replace(string(path), each, `["x"]`, 1); one != string(path) {
			paths = append(paths, v1alpha1.Path(one))
		}
	}
	return paths
}

// policy collects rules as long as they fit.
func (v inventor) policy(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, schemas map[string]*schema.Structural) (*v1alpha1.DeclarativeConverter, Result) {
	rules := &v1alpha1.DeclarativeConverter{Hub: "v2", Spokes: []v1alpha1.Spoke{{Version: "v1"}}}
	spoke, hub := v.paths(schemas["v1"]), v.paths(schemas["v2"])
	compiled := Compile(crd, rules)
	if len(compiled.Errors) > 0 {
		t.Fatalf("without a rule: %v", compiled.Errors)
	}
	for range 40 {
		attempt := rules.DeepCopy()
		attempt.Spokes[0].Rules = append(attempt.Spokes[0].Rules, v.rule(spoke, hub))
		result := Compile(crd, attempt)
		if (result.Plan == nil) == (len(result.Errors) == 0) {
			t.Fatalf("a plan, and errors: %v", result.Errors)
		}
		if result.Plan != nil {
			rules, compiled = attempt, result
		}
	}
	return rules, compiled
}

// value is one that a schema allows.
func (v inventor) value(s *schema.Structural) any {
	switch {
	case s.Nullable && v.IntN(8) == 0:
		return nil
	case s.XIntOrString:
		return []any{7, "a"}[v.IntN(2)]
	case s.Type == "string":
		return v.oneOf("", "a", "b", "x", "c", "a:1", ":", "7", "007", "90s", "1m30s")
	case s.Type == "integer":
		return json.Number(v.oneOf("0", "7", "-5", "9223372036854775807"))
	case s.Type == "boolean":
		return v.IntN(2) == 0
	case s.Items != nil:
		list := []any{}
		for i := range v.IntN(4) {
			element := v.value(s.Items)
			if object, ok := element.(map[string]any); ok && isListMap(s) {
				object["k"] = fmt.Sprint("k/", i)
			}
			list = append(list, element)
		}
		return list
	}
	return v.object(s)
}

func (v inventor) object(s *schema.Structural) map[string]any {
	object := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if property := s.Properties[name]; v.IntN(3) > 0 {
			object[name] = v.value(&property)
		}
	}
	for _, name := range []string{"x", "y/~", "a", "b"} {
		if _, known := s.Properties[name]; known {
			continue
		}
		switch values := valuesOf(s); {
		case values != nil && v.IntN(2) == 0:
			object[name] = v.value(values)
		case s.XPreserveUnknownFields && v.IntN(3) == 0:
			object[name] = []any{map[string]any{"a": []any{1}}, "a", 7, map[string]any{}}[v.IntN(4)]
		}
	}
	return object
}

func (v inventor) widget(version string, s *schema.Structural) string {
	object := v.object(s)
	metadata := map[string]any{}
	if v.IntN(2) == 0 {
		metadata["name"] = "w"
	}
	if v.IntN(3) == 0 {
		metadata["labels"] = map[string]any{v.oneOf("l", "other"): "a"}
	}
	object["apiVersion"], object["kind"], object["metadata"] = "example.com/"+version, "Widget", metadata
	return string(must(json.Marshal(object)))
}

// FuzzCompile compiles whatever fits between two schemas that may have little to
// do with each other. Every leaf has one owner, and every object comes back.
func FuzzCompile(f *testing.F) {
	for seed := range uint64(120) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		v := inventor{rand.New(rand.NewPCG(seed, 3))}
		crd := widgets(t, map[string]string{"v1": "", "v2": ""})
		for i := range crd.Spec.Versions {
			crd.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties = v.fields(3)
		}
		if v.IntN(3) > 0 {
			crd.Spec.Versions[1].Schema.OpenAPIV3Schema.Properties = v.kinOf(crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties, 2)
		}
		schemas, errs := structuralSchemas(crd)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		rules, compiled := v.policy(t, crd, schemas)
		checkOwners(t, compiled, schemas)
		c := converterOf(t, compiled)
		for _, leaf := range compiled.Leaves {
			v.checkLeaf(t, c, leaf, schemas[leaf.Version])
		}
		for range 10 {
			for _, pair := range c.plan.Pairs() {
				object := v.widget(pair[0], schemas[pair[0]])
				if first, ok := comesBack(t, c, object, pair, compiled.Verdicts[0]); !ok {
					t.Fatalf("seed %d: between\n%s\nand\n%s\nby\n%s\n%s", seed, shown(t, crd, "v1"), shown(t, crd, "v2"), must(json.Marshal(rules.Spokes[0].Rules)), first)
				}
			}
		}
	})
}

// comesBack converts there and back twice. What is dropped does not come back,
// and everything else does.
func comesBack(t *testing.T, c *Converter, object string, pair [2]string, verdict v1alpha1.Verdict) (string, bool) {
	t.Helper()
	there := convert(t, c, object, pair[1])
	back := convert(t, c, there, pair[0])
	again := convert(t, c, back, pair[1])
	last := convert(t, c, again, pair[0])
	says := fmt.Sprintf("%s\nis\n%s\ncomes back as\n%s\nis then\n%s\nand then\n%s", object, there, back, again, last)
	direction := verdict.ToHub
	if pair[0] != verdict.Version {
		direction = verdict.FromHub
	}
	lossless := direction == v1alpha1.FidelityLossy || sameJSON(t, object, back)
	return says, lossless && sameJSON(t, there, again) && sameJSON(t, back, last)
}

func shown(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, version string) []byte {
	t.Helper()
	i := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
	return must(json.Marshal(crd.Spec.Versions[i].Schema.OpenAPIV3Schema))
}
