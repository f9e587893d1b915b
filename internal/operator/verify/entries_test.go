// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// forgetful returns a converter that removes preserved data: before and after select the
// versions whose annotations it removes from the object before or after the conversion.
func forgetful(converter Convert, before, after func(from, to, of string) bool) Convert {
	forget := func(object []byte, selected func(of string) bool) []byte {
		tree := map[string]any{}
		_ = json.Unmarshal(object, &tree) // it was JSON
		metadata := tree["metadata"].(map[string]any)
		annotations, _ := metadata["annotations"].(map[string]any)
		maps.DeleteFunc(annotations, func(name string, _ any) bool {
			of, _, _ := strings.Cut(strings.TrimPrefix(name, conversion.PreservedPrefix), ".")
			return selected(of)
		})
		if len(annotations) == 0 {
			delete(metadata, "annotations")
		}
		text, _ := json.Marshal(tree)
		return text
	}
	return func(dst, object []byte, to string) ([]byte, error) {
		_, from, _ := strings.Cut(manifest.NewObject("", object).APIVersion, "/")
		out, err := converter(nil, forget(object, func(of string) bool { return before(from, to, of) }), to)
		return append(dst, forget(out, func(of string) bool { return after(from, to, of) })...), err
	}
}

// TestEntriesLost converts objects with converters that remove preserved data.
func TestEntriesLost(t *testing.T) {
	directory := filepath.Join("testdata", "preserved-data")
	crd := from[apiextensionsv1.CustomResourceDefinition](t, directory, "crd.yaml")
	rules := compile.Compile(crd, from[v1alpha1.ConversionPolicy](t, directory, "policy.yaml").Spec.Converter.Declarative)
	good, err := conversion.NewConverter(rules.Ruleset)
	expect.NoError(t, err)
	never := func(string, string, string) bool { return false }
	arriving := func(_, to, of string) bool { return to == "v1" && of == "v1" }
	leaving := func(from, _, of string) bool { return from == "v1" && of == "v1" }
	third := func(_, to, of string) bool { return to == "v1" && of != "v1" }
	const object, annotated = `{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"name":"o"},"spec":{}}`, `"name":"o","annotations":`
	of := func(version, annotations, spec string) string {
		text := strings.Replace(object, `"name":"o"`, annotated+annotations, 1)
		return strings.NewReplacer("example.com/v2", "example.com/"+version, `"spec":{}`, `"spec":`+spec).Replace(text)
	}
	const (
		note    = `{"conversion-operator.io/v1.widgets.example.com":"{\"format\":3,\"rules\":\"\",\"hidden\":{\"/spec/note\":\"n\"}}"}`
		former  = `{"conversion-operator.io/v1.widgets.example.com":"{\"format\":3,\"rules\":\"\",\"hidden\":{\"/spec/former\":\"n\"}}"}`
		tier    = `{"conversion-operator.io/v3.widgets.example.com":"{\"format\":3,\"rules\":\"\",\"hidden\":{\"/spec/tier\":\"gold\"}}"}`
		parts   = `{"conversion-operator.io/v1.widgets.example.com":"{\"format\":3,\"rules\":\"\",\"hidden\":{\"/spec/parts/[#fe3ac8c8908c8db3]\":{\"image\":\"i\",\"weight\":2}}}"}`
		hubsOwn = `{"conversion-operator.io/v2.widgets.example.com":"{\"format\":3,\"rules\":\"\",\"hidden\":{\"/spec/parts\":[{\"image\":\"i\"}]}}"}`
		within  = `{"conversion-operator.io/v1.widgets.example.com":"{\"format\":3,\"rules\":\"\",\"hidden\":{\"/spec/gone/owner\":\"me\"}}"}`
	)
	for name, test := range map[string]struct {
		object        string
		before, after func(from, to, of string) bool
		want          []string
	}{
		"nothing is removed":                               {of("v2", note, "{}"), never, never, nil},
		"data of a third version is intact":                {of("v2", tier, "{}"), never, never, nil},
		"data of an element is intact":                     {of("v2", parts, `{"parts":[{"image":"i"}]}`), never, never, nil},
		"data of the hub is intact between spokes":         {of("v3", hubsOwn, "{}"), never, never, nil},
		"data of its own version is intact":                {of("v1", former, "{}"), never, never, nil},
		"a value that has a place now":                     {of("v2", note, "{}"), arriving, never, []string{"v2 → v1: .spec.note of v1", "v3 → v1: .spec.note of v1"}},
		"a value without a place":                          {of("v2", former, "{}"), arriving, never, []string{"v2 → v1: .spec.former of v1", "v3 → v1: .spec.former of v1"}},
		"a value without a place, after the conversion":    {of("v2", former, "{}"), never, arriving, []string{"v2 → v1: .spec.former of v1", "v3 → v1: .spec.former of v1"}},
		"a value of its own version":                       {of("v1", former, "{}"), leaving, never, []string{"v1 → v2: .spec.former of v1", "v1 → v3: .spec.former of v1"}},
		"a value of a third version":                       {of("v2", tier, "{}"), third, never, []string{"v2 → v1: .spec.tier of v3"}},
		"a value of a third version, after the conversion": {of("v2", tier, "{}"), never, third, []string{"v2 → v1: .spec.tier of v3"}},
		"an element":                            {of("v2", parts, `{"parts":[{"image":"i"}]}`), arriving, never, []string{"v2 → v1: .spec.parts[#fe3ac8c8908c8db3] of v1"}},
		"an element that was edited":            {of("v2", parts, `{"parts":[{"image":"j"}]}`), arriving, never, nil},
		"an element that was deleted":           {of("v2", parts, `{"parts":[]}`), arriving, never, nil},
		"a value in an object that was deleted": {of("v2", within, "{}"), arriving, never, nil},
		"a value that live data supersedes":     {of("v2", note, `{"note":"live"}`), arriving, never, nil},
		"a value of the hub, between spokes":    {of("v3", hubsOwn, "{}"), third, never, []string{"v3 → v1: .spec.parts of v2"}},
	} {
		t.Run(name, func(t *testing.T) {
			checker, err := NewThrough(crd, rules, forgetful(good.Convert, test.before, test.after))
			expect.NoError(t, err)
			checker.Check(t.Context(), manifest.NewObject("f", []byte(test.object)))
			report := checker.Report("f")
			var got []string
			for _, f := range report.Findings {
				if f.Kind == Lost && f.Example.Preserved != "" {
					got = append(got, f.From+" → "+f.To+": "+f.Example.Path+" of "+f.Example.Preserved)
				}
			}
			slices.Sort(got)
			expect.Equal(t, "lost", test.want, got)
			expect.Equal(t, "there is a loss", test.want != nil, checker.Loss() != nil)
			expect.Equal(t, "it has failed", test.want != nil, report.Outcome == Failed)
		})
	}
}
