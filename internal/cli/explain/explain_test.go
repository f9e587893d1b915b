// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/golden"
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

// TestEveryKindOfRule checks that each kind of rule has its name, and that the policy of the tests has
// a rule of it. A use is the rules of its group.
func TestEveryKindOfRule(t *testing.T) {
	policy := expect.YAML[v1alpha1.ConversionPolicy](t, "testdata", "rules", "policy.yaml")
	explained := map[string]bool{}
	rules, _ := rulesOf(policy.Spec.Converter.Declarative)
	for at, rule := range rules {
		explained[rule.kind] = true
		explained["use"] = explained["use"] || strings.HasSuffix(at, "ruleGroups[0].rules[0] (used by spokes[0].rules[10])")
	}
	for member := range reflect.TypeFor[v1alpha1.Rule]().Fields() {
		want, _, _ := strings.Cut(member.Tag.Get("json"), ",")
		of := &v1alpha1.Rule{}
		reflect.ValueOf(of).Elem().FieldByIndex(member.Index).Set(reflect.New(member.Type.Elem()))
		if got := ruleOf(of).kind; got != want && want != "use" {
			t.Errorf("a rule %s is called %s", want, got)
		}
		expect.Equal(t, "testdata/rules/policy.yaml has a rule "+want, true, explained[want])
	}
}
