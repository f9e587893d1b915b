// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/cli/rulekinds"
	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/golden"
)

var made = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// inputFiles are the input files of a report.
type inputFiles struct{ policy, crd, objects string }

func filesIn(folder, policy, crd string) inputFiles {
	return inputFiles{filepath.Join(folder, policy), filepath.Join(folder, crd), filepath.Join(folder, "objects.yaml")}
}

// inputs are the input files of the reports in testdata.
var inputs = map[string]inputFiles{
	"crontab-cronspec": filesIn("../../../config/samples/crontab-cronspec", "2-policy.yaml", "3-crd-both.yaml"),
	"crontab-hostport": filesIn("../../../config/samples/crontab-hostport", "2-policy.yaml", "3-crd-both.yaml"),
	"preserved-data":   filesIn("../../operator/verify/testdata/preserved-data", "policy.yaml", "crd.yaml"),
	"cluster":          filesIn("testdata/cluster", "policy.yaml", "crd.yaml"),
	"hostile":          filesIn("testdata/hostile", "policy.yaml", "crd.yaml"),
}

func TestWrite(t *testing.T) {
	for name, files := range inputs {
		t.Run(name, func(t *testing.T) {
			compare(t, name+".html", write(t, read(t, files)))
		})
	}
}

// compare compares a report with its golden file, which has the name of the style sheet
// instead of its text.
func compare(t *testing.T, file, got string) {
	t.Helper()
	got = strings.Replace(got, "<style>"+style+"</style>", "<style>style.css</style>", 1)
	golden.Check(t, got, file)
}

func write(t *testing.T, in Input) string {
	t.Helper()
	var out bytes.Buffer
	expect.NoError(t, Write(&out, in))
	return out.String()
}

// read returns an input from files, like the command; there may be none of objects.
func read(t *testing.T, from inputFiles) Input {
	t.Helper()
	crd := expect.YAML[apiextensionsv1.CustomResourceDefinition](t, from.crd)
	policy, invalid, err := verify.ReadPolicy(t.Context(), *expect.YAML[json.RawMessage](t, from.policy))
	if err != nil || len(invalid) > 0 {
		t.Fatal(err, invalid)
	}
	in := Input{Policy: policy, CRD: crd, From: "policy.yaml and crd.yaml", Tool: "v1.2.3", Made: made}
	checker, err := verify.New(policy, crd, func() time.Time { return made })
	expect.NoError(t, err)
	tried := ""
	if checker.Valid() {
		checker.Canaries(t.Context())
		if from.objects != "" {
			tried = "objects.yaml"
			check(t, checker, from.objects)
		}
	}
	in.Tried = checker.Report(tried)
	return in
}

func check(t *testing.T, checker *verify.Checker, file string) {
	t.Helper()
	documents, err := manifest.ReadAll([]string{file}, nil)
	expect.NoError(t, err)
	for _, document := range documents {
		objects, err := document.Objects()
		expect.NoError(t, err)
		for _, object := range objects {
			checker.Check(t.Context(), object)
		}
	}
}

// TestWide has a policy for more than a thousand fields, most of them the same in
// both versions.
func TestWide(t *testing.T) {
	in := wide(t)
	compare(t, "wide.html", write(t, in))
	page := newPage(in)
	if rows := page.Mappings[0].Drawn.Height; rows > 100 {
		t.Errorf("the drawing has %d rows: fields that are the same in both versions must share rows", rows)
	}
}

// wide has 20 blocks of 50 fields. In every third block, a rule moves one field, and only
// one version has another one.
func wide(t *testing.T) Input {
	t.Helper()
	in := read(t, inputFiles{policy: inputs["crontab-hostport"].policy, crd: inputs["crontab-hostport"].crd})
	spoke, hub := map[string]apiextensionsv1.JSONSchemaProps{}, map[string]apiextensionsv1.JSONSchemaProps{}
	var rules []v1alpha1.Rule
	for i := range 20 {
		left, right := map[string]apiextensionsv1.JSONSchemaProps{}, map[string]apiextensionsv1.JSONSchemaProps{}
		for j := range 50 {
			name := fmt.Sprintf("field%02d", j)
			left[name], right[name] = apiextensionsv1.JSONSchemaProps{Type: "string"}, apiextensionsv1.JSONSchemaProps{Type: "string"}
		}
		block := fmt.Sprintf("block%02d", i)
		if i%3 == 0 {
			delete(right, "field00")
			delete(right, "field01")
			right["renamed"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
			rules = append(rules, v1alpha1.Rule{Move: &v1alpha1.MoveRule{From: v1alpha1.Path("." + block + ".field00"), To: v1alpha1.Path("." + block + ".renamed")}})
		}
		spoke[block] = apiextensionsv1.JSONSchemaProps{Type: "object", Properties: left}
		hub[block] = apiextensionsv1.JSONSchemaProps{Type: "object", Properties: right}
	}
	for i := range in.CRD.Spec.Versions {
		of := &in.CRD.Spec.Versions[i]
		of.Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: spoke}
		if of.Name == string(in.Policy.Spec.Converter.Declarative.Hub) {
			of.Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: hub}
		}
	}
	in.Policy.Spec.Converter.Declarative.Spokes[0].Rules = rules
	checker, err := verify.New(in.Policy, in.CRD, func() time.Time { return made })
	if err != nil || !checker.Valid() {
		t.Fatal(err, checker.Report("").Errors)
	}
	in.Tried = checker.Report("")
	return in
}

// TestOneLineOfTime checks that two reports of one input at different times differ in one
// line, and without a time in none.
func TestOneLineOfTime(t *testing.T) {
	in := read(t, inputs["cluster"])
	first := strings.Split(write(t, in), "\n")
	in.Made = made.Add(time.Hour)
	second := strings.Split(write(t, in), "\n")
	var differ []string
	for i := range first {
		if first[i] != second[i] {
			differ = append(differ, second[i])
		}
	}
	want := []string{`  <p>Made <time datetime="2026-03-02T13:00:00Z">2026-03-02 13:00:00 UTC</time></p>`}
	expect.Equal(t, "lines that differ", want, differ)
	expect.Equal(t, "number of lines", len(first), len(second))
	in.Made = time.Time{}
	if again := write(t, in); strings.Contains(again, "Made <time") || again != write(t, in) {
		t.Error("a report without a time has one, or two such reports differ")
	}
}

// TestHostileText parses a report like a browser. For any text of objects, it has only the
// elements and attributes of our templates.
func TestHostileText(t *testing.T) {
	root, err := html.Parse(strings.NewReader(write(t, read(t, inputs["hostile"]))))
	expect.NoError(t, err)
	elements := strings.Fields("html head meta title link style body a header p h1 h2 h3 h4 span div ul ol li b nav main section " +
		"table caption thead tbody tr th td svg line path rect figure figcaption details summary code pre wbr dl dt dd time footer")
	attributes := strings.Fields("lang charset http-equiv content name rel href class id role aria-label aria-labelledby aria-hidden focusable tabindex " +
		"scope width height x y x1 x2 y1 y2 viewbox viewBox preserveAspectRatio d data-from data-to open datetime")
	var text strings.Builder
	for node := range root.Descendants() {
		switch node.Type {
		case html.TextNode:
			text.WriteString(node.Data)
		case html.ElementNode:
			expect.Equal(t, "element "+node.Data+" is expected", true, slices.Contains(elements, node.Data))
			for _, attribute := range node.Attr {
				expect.Equal(t, "attribute "+attribute.Key+" of "+node.Data+" is expected", true, slices.Contains(attributes, attribute.Key))
				if attribute.Key == "href" && !strings.HasPrefix(attribute.Val, "#") && attribute.Val != "data:," {
					t.Errorf("%s leads to %s", node.Data, attribute.Val)
				}
			}
		}
	}
	expect.Contains(t, "the text", text.String(),
		"<script>Kind</script>", "</code></pre><script>alert(1)</script>", "<svg onload=alert(3)>", "<img src=x onerror=alert(7)>",
		`.' style='position:fixed`, "&lt;already&gt;", "<script>alert(8)</script>",
	)
}

// TestHiddenValues checks that a report can hide the values of objects.
func TestHiddenValues(t *testing.T) {
	in := read(t, inputs["hostile"])
	const value = `Invalid value: &#34;integer&#34;`
	expect.Contains(t, "the report", write(t, in), value)
	in.HideValues = true
	hidden := write(t, in)
	expect.Equal(t, "the report shows a value", false, strings.Contains(hidden, value))
	expect.Contains(t, "the report", hidden, "InvalidBefore")
}

// TestRulesOfGroups: a rule of a group is in the report for each use, with the paths there.
func TestRulesOfGroups(t *testing.T) {
	policy := &v1alpha1.ConversionPolicy{}
	policy.Spec.Converter = v1alpha1.Converter{Type: v1alpha1.ConverterDeclarative, Declarative: &v1alpha1.DeclarativeConverter{
		RuleGroups: []v1alpha1.RuleGroup{{Name: "a", Rules: []v1alpha1.Rule{{Move: &v1alpha1.MoveRule{From: ".b", To: ".c"}}}}},
		Spokes: []v1alpha1.Spoke{{Version: "v1", Rules: []v1alpha1.Rule{
			{Drop: &v1alpha1.DropRule{From: ".z"}},
			{Use: &v1alpha1.UseRule{Group: "a", From: ".x", To: ".x"}}, {Use: &v1alpha1.UseRule{Group: "a", From: ".y[*]", To: ".y[*]"}},
		}}},
	}}
	want := []rule{
		{rulekinds.All["drop"], "v1", 1, "spec.converter.declarative.spokes[0].rules[0]", "drop:\n  from: .z\n"},
		{rulekinds.All["move"], "v1", 2, "spec.converter.declarative.ruleGroups[0].rules[0] (used by spokes[0].rules[1])", "move:\n  from: .x.b\n  to: .x.c\n"},
		{rulekinds.All["move"], "v1", 3, "spec.converter.declarative.ruleGroups[0].rules[0] (used by spokes[0].rules[2])", "move:\n  from: .y[*].b\n  to: .y[*].c\n"},
	}
	var got []rule
	for _, one := range rulesOf(policy)[0].Rules {
		got = append(got, *one)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the rules are %+v, want %+v", got, want)
	}
}
