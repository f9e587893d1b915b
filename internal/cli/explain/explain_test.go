// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/golden"
	"github.com/conversion-operator/conversion-operator/internal/test/rulecases"
)

func explainer(t *testing.T, folder string) *Explainer {
	t.Helper()
	policy := expect.YAML[v1alpha1.ConversionPolicy](t, "testdata", folder, "policy.yaml")
	result := compile.Compile(expect.YAML[apiextensionsv1.CustomResourceDefinition](t, "testdata", folder, "crd.yaml"), policy.Spec.Converter.Declarative)
	if len(result.Errors) > 0 {
		t.Fatal(result.Errors)
	}
	explainer, err := New(policy, result)
	expect.NoError(t, err)
	return explainer
}

// objects returns the objects of a folder, by name.
func objects(t *testing.T, folder string) map[string][]byte {
	t.Helper()
	documents, err := manifest.ReadAll([]string{filepath.Join("testdata", folder, "objects.yaml")}, nil)
	expect.NoError(t, err)
	found := map[string][]byte{}
	for _, document := range documents {
		object := manifest.NewObject("", document.JSON)
		found[object.Name] = object.JSON
	}
	return found
}

func explain(t *testing.T, folder, name, to string, all bool) *Report {
	t.Helper()
	e := explainer(t, folder)
	report := e.Report()
	report.RulesetHash = "HASH"
	object, err := e.Object(name, objects(t, folder)[name], to, all)
	expect.NoError(t, err)
	report.Objects = append(report.Objects, object)
	return report
}

func TestTables(t *testing.T) {
	for file, test := range map[string]struct {
		object, to string
		all        bool
		table      Table
	}{
		"fits.txt":        {"fits", "v2", false, Table{}},
		"fits-wide.txt":   {"fits", "v2", true, Table{Wide: true, Colors: true}},
		"odd.txt":         {"odd", "v2", false, Table{}},
		"odd-all.txt":     {"odd", "v2", true, Table{}},
		"back.txt":        {"back", "v1", false, Table{}},
		"carried.txt":     {"carried", "v1", false, Table{}},
		"two-steps.txt":   {"odd", "v3", false, Table{}},
		"same-object.txt": {"fits", "v3", false, Table{Wide: true}},
	} {
		t.Run(file, func(t *testing.T) {
			var out bytes.Buffer
			expect.NoError(t, explain(t, "rules", test.object, test.to, test.all).WriteTables(&out, test.table))
			golden.Check(t, out.String(), "rules", file)
		})
	}
}

// TestMoved has lists with other names, and rules for fields in them.
func TestMoved(t *testing.T) {
	for file, test := range map[string]struct{ object, to string }{
		"some.txt": {"some", "v2"}, "back.txt": {"back", "v1"}, "none.txt": {"none", "v2"},
	} {
		t.Run(file, func(t *testing.T) {
			var out bytes.Buffer
			expect.NoError(t, explain(t, "moved", test.object, test.to, false).WriteTables(&out, Table{}))
			golden.Check(t, out.String(), "moved", file)
		})
	}
}

func TestJSON(t *testing.T) {
	text, err := json.MarshalIndent(explain(t, "rules", "odd", "v2", false), "", "  ")
	expect.NoError(t, err)
	golden.Check(t, string(text)+"\n", "rules", "odd.json")
}

func TestOnly(t *testing.T) {
	for field, want := range map[string][]string{
		"spec.host":          {".spec.host"},
		".spec.crate":        {".spec.crate.depth", ".spec.crate.width"},
		"spec.items[1].new":  {".spec.items[1].new"},
		"spec.items[*].new":  {".spec.items[0].new", ".spec.items[1].new"},
		"spec.address":       {".spec.host", ".spec.port"},
		`metadata.labels`:    {".spec.fromLabel"},
		"spec.portMap.a":     {".spec.portMap.a.port"},
		"spec.nothing.there": nil,
	} {
		t.Run(field, func(t *testing.T) {
			report := explain(t, "rules", "fits", "v2", false)
			found := report.Only(field)
			var got []string
			for _, field := range report.Objects[0].Steps[0].Fields {
				got = append(got, field.Path)
			}
			expect.Equal(t, "fields", want, got)
			expect.Equal(t, "the path is found", len(want) > 0, found)
		})
	}
}

// TestOverflow has an annotation that had no room for a value.
func TestOverflow(t *testing.T) {
	e := explainer(t, "rules")
	s := step{
		Explainer: e, from: "v1", to: "v2",
		after: map[string]any{"metadata": map[string]any{"annotations": map[string]any{
			conversion.AnnotationName("jobs.example.com", "v1"): `{"format":3,"rules":"","hidden":{"/spec/size":"big"},"dropped":["/spec/note"]}`,
		}}},
	}
	want := []Preserved{{Version: "v1", Path: ".spec.note", Why: "there was no room for it in the annotation, and overflow is Drop"}}
	expect.Equal(t, "dropped", want, s.dropped())
}

// TestEveryKindOfRule explains objects of each kind of rule: the first one, and the first that is preserved.
func TestEveryKindOfRule(t *testing.T) {
	for _, kind := range rulecases.All(t) {
		if len(kind.Conversions) == 0 {
			continue // a use is the rules of its group
		}
		of := kind.Conversions[0]
		policy, crd := &v1alpha1.ConversionPolicy{}, &apiextensionsv1.CustomResourceDefinition{}
		expect.NoError(t, yaml.UnmarshalStrict([]byte("{spec: {converter: {type: Declarative, declarative: {hub: v2, spokes: [{version: v1, rules: ["+string(of.Rules)+"]}]}}}}"), policy))
		version := "{name: %s, schema: {openAPIV3Schema: {type: object, properties: {%s}}}}"
		expect.NoError(t, yaml.UnmarshalStrict(fmt.Appendf(nil, "{metadata: {name: widgets.example.com}, spec: {group: example.com, names: {kind: Widget}, scope: Cluster, versions: ["+version+", "+version+"]}}",
			"v1", of.V1, "v2", of.V2), crd))
		e, err := New(policy, compile.Compile(crd, policy.Spec.Converter.Declarative))
		expect.NoError(t, err)
		report := e.Report()
		report.RulesetHash = "HASH"
		preserved := slices.IndexFunc(of.Objects, func(o rulecases.Object) bool { return o.Preserved && o.From == "" })
		for _, object := range slices.Compact([]rulecases.Object{of.Objects[0], of.Objects[max(0, preserved)]}) {
			explained, err := e.Object(object.Name, []byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","uid":"u"},`+object.V1+"}"), "v2", false)
			expect.NoError(t, err)
			report.Objects = append(report.Objects, explained)
		}
		var out bytes.Buffer
		expect.NoError(t, report.WriteTables(&out, Table{}))
		golden.Check(t, out.String(), "kinds", kind.Name+".txt")
	}
}
