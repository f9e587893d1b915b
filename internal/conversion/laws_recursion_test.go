// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/conversion/internal/generate"
)

// FuzzRecursion puts the fields and rules of a random world into a group that uses itself: objects in objects, of which
// the schema says nothing, come back as they went, whatever is in them, and edits of them stay. What
// nothing is preserved of converts as it does alone.
func FuzzRecursion(f *testing.F) {
	const alone = "objects that convert as they do alone"
	counted := newTally(f, 16, alone, cameBack)
	f.Fuzz(func(t *testing.T, seed uint64, choices []byte) {
		if counted.isOver() {
			return
		}
		flat := newWorld(t, generate.Choose(seed%(1<<objectBits), choices))
		nested := nestedWorld(t, flat)
		if nested == nil {
			return
		}
		nested.tally = counted
		defer nested.describe(t)
		counted.world(t, seed, flat.Choices, func() {
			from := generate.One(flat.Choices, "v1", "v2")
			to := map[string]string{"v1": "v2", "v2": "v1"}[from]
			node := flat.node(t, from, 3)
			object := inEnvelope(from, map[string]any{"node": node})
			nested.roundTrip(t, object, from, to)
			if isAlone(t, flat, nested, object, node, to) {
				counted.count(alone)
			}
			edited := nested.edited(t, convert(t, nested.converter, object, to), generate.Plain(map[string]any{"node": flat.node(t, to, 2)}))
			nested.editWins(t, edited, to, from)
		})
	})
}

// nestedWorld has an object with the fields and rules of a world, and a list of objects of the same type in it. It is
// nil if the world has rules for metadata, which only the outermost object has.
func nestedWorld(t *testing.T, flat *world) *world {
	t.Helper()
	rules := flat.rules.Spokes[0].DeepCopy().Rules
	for i := range rules {
		spoke, hub := rules[i].Paths()
		for _, path := range slices.Concat(spoke, hub) {
			if strings.HasPrefix(string(path), ".metadata") || strings.HasPrefix(string(path), ".children") || strings.HasPrefix(string(path), ".node") {
				return nil
			}
		}
	}
	crd := widgets(t, map[string]string{"v1": "", "v2": ""})
	for i, version := range []string{"v1", "v2"} {
		fields := maps.Clone(flat.crd.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties)
		withoutEnvelope(fields)
		fields["children"] = apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{XPreserveUnknownFields: new(true)}}}
		if flat.crd.Spec.Versions[i].Name != version {
			t.Fatalf("the versions are %v", flat.crd.Spec.Versions)
		}
		root := crd.Spec.Versions[i].Schema.OpenAPIV3Schema
		root.Properties = maps.Clone(root.Properties)
		root.Properties["node"] = apiextensionsv1.JSONSchemaProps{Type: "object", Properties: fields}
	}
	use := func(path v1alpha1.Path) v1alpha1.Rule {
		return v1alpha1.Rule{Use: &v1alpha1.UseRule{Group: "node", From: path, To: path}}
	}
	converter := &v1alpha1.DeclarativeConverter{Hub: "v2",
		RuleGroups: []v1alpha1.RuleGroup{{Name: "node", Rules: append(rules, use(".children[*]"))}},
		Spokes:     []v1alpha1.Spoke{{Version: "v1", Rules: []v1alpha1.Rule{use(".node")}}}}
	if result := compile.Compile(crd, converter); result.Ruleset == nil {
		return nil
	}
	nested := worldOf(t, crd, converter)
	nested.Objects = flat.Objects
	return nested
}

// node generates an object with others in it.
func (w *world) node(t *testing.T, version string, depth int) map[string]any {
	t.Helper()
	node := decode(t, w.object(version))
	withoutEnvelope(node)
	var children []any
	for range w.IntN(3) {
		if depth > 0 {
			children = append(children, w.node(t, version, depth-1))
		}
	}
	if children != nil {
		node["children"] = children
	}
	return node
}

// isAlone compares the innermost first child with what it converts to alone, if nothing is preserved of either.
func isAlone(t *testing.T, flat, nested *world, object string, node map[string]any, to string) bool {
	t.Helper()
	there := decode(t, convert(t, nested.converter, object, to))
	converted, isObject := there["node"].(map[string]any)
	for isObject {
		children, _ := node["children"].([]any)
		others, _ := converted["children"].([]any)
		if len(children) == 0 {
			break
		}
		if len(others) != len(children) {
			t.Fatalf("there are other children: %s\nat %s\n%s", object, to, generate.Plain(there))
		}
		node = children[0].(map[string]any)
		converted, isObject = others[0].(map[string]any)
	}
	from := map[string]string{"v1": "v2", "v2": "v1"}[to]
	want := decode(t, convert(t, flat.converter, inEnvelope(from, node), to))
	if hasAnnotations(want) || hasAnnotations(there) || !isObject {
		return false
	}
	withoutEnvelope(want)
	wantEqual(t, want, converted, "a child of %s\nat %s", object, to)
	return true
}

// inEnvelope returns an object with these fields.
func inEnvelope(version string, fields map[string]any) string {
	object := maps.Clone(fields)
	maps.Copy(object, map[string]any{"apiVersion": "example.com/" + version, "kind": "Widget", "metadata": map[string]any{"name": "w", "namespace": "default"}})
	return generate.Plain(object)
}

func withoutEnvelope[V any](fields map[string]V) {
	maps.DeleteFunc(fields, func(name string, _ V) bool { return conversion.IsEnvelope(name) })
}

func hasAnnotations(object map[string]any) bool {
	return object["metadata"].(map[string]any)["annotations"] != nil
}
