// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/golden"
)

// recordedOf returns the golden file of objects.
func recordedOf(t *testing.T, objects ...manifest.Object) string {
	t.Helper()
	c := crontabs(t)
	c.Record()
	for _, object := range objects {
		c.Check(t.Context(), object)
	}
	text, count, left, err := c.Recorded()
	expect.NoError(t, err)
	expect.Equal(t, "objects recorded and left out", [2]int{len(objects), 0}, [2]int{count, left})
	return text
}

// strange has numbers and texts that YAML could change, and what an API server sets.
func strange(name string) manifest.Object {
	return crontab("v1beta1", name, `,"uid":"1","resourceVersion":"2","generation":3,"managedFields":[{"manager":"a"}],"labels":{"on":"yes","n":"1e3"}},"hostPort":"<a>:1","note":"two\nlines","replicas":3`)
}

func TestGoldenFile(t *testing.T) {
	text := recordedOf(t, strange("a"), crontab("v1", "b", `},"host":"h","port":"80","timeoutSeconds":1`))
	expect.Equal(t, "recorded again", text, recordedOf(t, strange("a"), crontab("v1", "b", `},"host":"h","port":"80","timeoutSeconds":1`)))
	recorded, err := ReadGolden("golden.yaml", []byte(text))
	expect.NoError(t, err)
	c := crontabs(t)
	expect.NoError(t, c.Compare(recorded))
	report := c.Report("")
	expect.Equal(t, "compared", Compared{"golden.yaml", 2, 0}, *report.Golden)
	expect.Equal(t, "findings and warnings", [2]int{0, 0}, [2]int{len(report.Findings), len(report.Warnings)})
	expect.Equal(t, "title", "the rules are valid, and convert as recorded", report.Title())
	// The hashes differ with each change of the engine.
	text = strings.NewReplacer(recorded.head.RulesetHash, "0123456789abcdef").Replace(text)
	golden.Check(t, text, "nothing-lost", "golden.yaml")
}

// TestGoldenDiffers repeats conversions with another rule, another schema, and without a version.
func TestGoldenDiffers(t *testing.T) {
	recorded, err := ReadGolden("golden.yaml", []byte(recordedOf(t, strange("a"), crontab("v1", "b", `},"host":"h","port":"80","timeoutSeconds":1`))))
	expect.NoError(t, err)
	directory := filepath.Join("testdata", "nothing-lost")
	for name, test := range map[string]struct {
		change   func(*v1alpha1.ConversionPolicy, *apiextensionsv1.CustomResourceDefinition)
		compared Compared
		findings []string
		warnings []string
	}{
		"another rule": {
			func(policy *v1alpha1.ConversionPolicy, _ *apiextensionsv1.CustomResourceDefinition) {
				spoke := &policy.Spec.Converter.Declarative.Spokes[0]
				spoke.Rules = append(spoke.Rules, v1alpha1.Rule{Drop: &v1alpha1.DropRule{From: ".note"}})
			},
			Compared{"golden.yaml", 2, 1},
			[]string{`preserved.v1beta1: golden.yaml, document 2 (a): {"hidden":{"/note":"two\nlines"}} became nothing`},
			[]string{"ruleset"},
		},
		"another schema": {
			func(_ *v1alpha1.ConversionPolicy, crd *apiextensionsv1.CustomResourceDefinition) {
				for _, version := range crd.Spec.Versions {
					if version.Name == "v1" {
						version.Schema.OpenAPIV3Schema.Properties["port"] = apiextensionsv1.JSONSchemaProps{Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"1"`)}}
						delete(version.Schema.OpenAPIV3Schema.Properties, "replicas")
					}
				}
			},
			Compared{"golden.yaml", 2, 1},
			[]string{`.replicas: golden.yaml, document 2 (a): 3 became nothing`, `preserved.v1beta1.hidden["/replicas"]: golden.yaml, document 2 (a): nothing became 3`},
			[]string{"ruleset", "schema of v1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			policy, crd := from[v1alpha1.ConversionPolicy](t, directory, "policy.yaml"), from[apiextensionsv1.CustomResourceDefinition](t, directory, "crd.yaml")
			test.change(policy, crd)
			c := checkerOf(t, policy, crd)
			expect.NoError(t, c.Compare(recorded))
			report := c.Report("")
			expect.Equal(t, "compared and outcome", []any{test.compared, Failed}, []any{*report.Golden, report.Outcome})
			var findings []string
			for _, f := range report.Findings {
				findings = append(findings, f.Path+": "+strings.ReplaceAll(f.ExampleText(), "`", ""))
			}
			expect.Equal(t, "findings", test.findings, findings)
			expect.Equal(t, "number of warnings", len(test.warnings), len(report.Warnings))
			for i, what := range test.warnings {
				if i < len(report.Warnings) && !strings.HasPrefix(report.Warnings[i], "golden.yaml was recorded with another "+what+": its hash was ") {
					t.Errorf("warning: %s", report.Warnings[i])
				}
			}
		})
	}
}

// TestGoldenOfAnother: conversions of other versions fail, and those of another policy are refused.
func TestGoldenOfAnother(t *testing.T) {
	text := recordedOf(t, strange("a"))
	read := func(replaced ...string) *Golden {
		recorded, err := ReadGolden("g", []byte(strings.NewReplacer(replaced...).Replace(text)))
		expect.NoError(t, err)
		return recorded
	}
	c := crontabs(t)
	expect.NoError(t, c.Compare(read("example.com/v1beta1", "example.com/v2")))
	expect.NoError(t, c.Compare(read("apiVersion: example.com/v1\n", "apiVersion: example.com/v2\n")))
	messages := ""
	for _, f := range c.Report("").Findings {
		messages += f.ExampleText() + "; "
	}
	expect.Equal(t, "findings", `g, document 2 (a): the policy does not convert to version "v2"; g, document 2 (a): the policy does not convert version "v2"; `, messages)
	expect.Equal(t, "error", "g has conversions of a.b, and the policy is crontabs.example.com: pass the file of this policy",
		fmt.Sprint(crontabs(t).Compare(read("crontabs.example.com", "a.b"))))
}

func TestDamagedGolden(t *testing.T) {
	text := recordedOf(t, strange("a"), strange("b"))
	for name, test := range map[string]struct{ text, want string }{
		"empty":            {"", "g: it has 0 objects, and should have 0: "},
		"a part":           {text[:strings.LastIndex(text, "---\n")], "g: it has 1 object, and should have 2: "},
		"another file":     {"kind: CronTab\n", `g, document 1: json: unknown field "kind": `},
		"another format":   {strings.Replace(text, "format: 1", "format: 2", 1), "g, document 1: format is 2, and this program reads 1: "},
		"no results":       {text + "---\nobject: {apiVersion: a/v1}\n", "g, document 4: it has no object, or no results: "},
		"the same version": {text + "---\nobject: {apiVersion: a/v1}\nresults: [{object: {apiVersion: a/v1}}]\n", "g, document 4: results[0] is no object of another version: "},
		"a null":           {text + "---\nobject: null\nresults: [null]\n", "g, document 4: it has no object, or no results: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadGolden("g", []byte(test.text))
			expect.Equal(t, "error", test.want+damaged, fmt.Sprint(err))
		})
	}
}

// TestGoldenIsBounded records more than a golden file holds.
func TestGoldenIsBounded(t *testing.T) {
	c := crontabs(t)
	c.Record()
	const all = 30
	for i := range all {
		c.Check(t.Context(), crontab("v1beta1", fmt.Sprintf("n%d", i), `},"hostPort":"a:1","note":"`+strings.Repeat("x", MaxGolden/all)+`"`))
	}
	text, objects, left, err := c.Recorded()
	expect.NoError(t, err)
	if len(text) > MaxGolden || objects == 0 || objects+left != all || left == 0 {
		t.Errorf("%d bytes, %d objects, %d left out", len(text), objects, left)
	}
	_, err = ReadGolden("g", []byte(text))
	expect.NoError(t, err)
}
