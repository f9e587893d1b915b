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
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func crontabs(t *testing.T) *Checker {
	t.Helper()
	directory := filepath.Join("testdata", "nothing-lost")
	return checkerOf(t, from[v1alpha1.ConversionPolicy](t, directory, "policy.yaml"), from[apiextensionsv1.CustomResourceDefinition](t, directory, "crd.yaml"))
}

func crontab(version, name, fields string) manifest.Object {
	return manifest.NewObject("f", []byte(`{"apiVersion":"example.com/`+version+`","kind":"CronTab","metadata":{"name":"`+name+`"`+fields+`}`))
}

// TestNotConverted has an object whose annotations leave no room for preserved data.
func TestNotConverted(t *testing.T) {
	c := crontabs(t)
	c.Check(t.Context(), crontab("v1beta1", "big", `,"annotations":{"all":"`+strings.Repeat("x", 256<<10-10)+`"}},"hostPort":"a:1","note":"no room"`))
	report := c.Report("f")
	if report.Outcome != Failed || report.Objects != 1 || len(report.Findings) != 1 {
		t.Fatalf("report: %+v", report)
	}
	finding := report.Findings[0]
	if !strings.HasPrefix(finding.Example.Message, "the fields that only version v1beta1 has take ") {
		t.Errorf("message is %q", finding.Example.Message)
	}
	finding.Example.Message = ""
	want := Finding{Severity: SeverityError, Kind: NotConverted, From: "v1beta1", To: "v1", Objects: 1, Example: Example{Object: "f (big)"}}
	expect.Equal(t, "finding", want, finding)
	for _, direction := range report.Directions {
		// It never became an object of v1, so nothing came back from there.
		want := map[string][2]int{"v1beta1": {1, 1}, "v1": {0, 0}}[direction.From]
		expect.Equal(t, "objects and failed from "+direction.From, want, [2]int{direction.Objects, direction.Failed})
	}
}

// TestLost compares an object with one that a wrong conversion returns.
func TestLost(t *testing.T) {
	for name, test := range map[string]struct {
		returned string
		want     []Finding
	}{
		"nothing":         {`{"b":[{"c":1.50}],"a":"x"}`, []Finding{}},
		"the annotations": {`{"a":"x","b":[{"c":1.50}],"metadata":{"annotations":{"conversion-operator.io/v1.crontabs.example.com":"{}"}}}`, []Finding{}},
		"a digit": {`{"a":"x","b":[{"c":1.5}]}`, []Finding{{
			Path: ".b[*].c", Objects: 1, Example: Example{Object: "o", Path: ".b[0].c", Before: new("1.50"), After: new("1.5"), Fields: 1},
		}}},
		"two fields": {`{"b":[],"d":null}`, []Finding{{
			Path: ".a", Objects: 1, Example: Example{Object: "o", Path: ".a", Before: new(`"x"`), Fields: 3},
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			c := crontabs(t)
			start, err := preserved.Decode([]byte(`{"a":"x","b":[{"c":1.50}],"metadata":{}}`))
			expect.NoError(t, err)
			returned, err := preserved.Decode([]byte(test.returned))
			expect.NoError(t, err)
			if members := returned.(map[string]any); members["metadata"] == nil {
				members["metadata"] = map[string]any{}
			}
			lost := c.lost(testObject{name: "o", start: value{tree: start}}, "v1beta1", "v1", value{tree: returned}, nil)
			expect.Equal(t, "lost", len(test.want) > 0, lost)
			for i := range test.want {
				test.want[i].Severity, test.want[i].Kind, test.want[i].From, test.want[i].To = SeverityError, Lost, "v1beta1", "v1"
			}
			expect.Equal(t, "findings", test.want, c.Report("").Findings)
		})
	}
}

// TestReportDoesNotGrow has more findings than a report holds.
func TestReportDoesNotGrow(t *testing.T) {
	c := crontabs(t)
	for i := range maxPreserved + 50 {
		c.Check(t.Context(), crontab("v1beta1", fmt.Sprint("o", i), fmt.Sprintf(`},"hostPort":"a:1","field%d":1,"note":"n"`, i)))
	}
	report := c.Report("f")
	expect.Equal(t, "findings", maxFindings, len(report.Findings))
	expect.Equal(t, "more findings", maxPreserved+50-maxFindings, report.MoreFindings)
	want := []PreservedField{{From: "v1beta1", To: "v1", Path: ".note", Objects: maxPreserved + 50, MaxBytes: 3}}
	expect.Equal(t, "kept", want, report.PreservedFields)
	for i := range maxPreserved + 50 {
		c.tally.addPreservedFields("v1", "v1beta1", []preservedPart{{fmt.Sprint(".map.", i), 1}})
	}
	expect.Equal(t, "kept fields", maxPreserved, len(c.Report("f").PreservedFields))
}

func TestNoRules(t *testing.T) {
	c := checkerOf(t, &v1alpha1.ConversionPolicy{Spec: v1alpha1.ConversionPolicySpec{Converter: v1alpha1.Converter{Type: v1alpha1.ConverterNone}}}, &apiextensionsv1.CustomResourceDefinition{})
	want := []RuleError{{"spec.converter.declarative", "the policy has no rules to test: only this kind of converter has rules"}}
	expect.Equal(t, "errors", want, c.Report("").Errors)
	expect.Equal(t, "valid", false, c.Valid())
}

func TestPreservedParts(t *testing.T) {
	tree, err := preserved.Decode([]byte(`{"metadata":{"annotations":{"other":"x",` +
		`"conversion-operator.io/v1.ts.example.com":"{\"format\":3,\"rules\":\"\",\"hidden\":{\"/spec/a~1b\":1,\"/spec/l/[n=\\\"x\\\"]/w\":22,\"/spec/m/[#0123456789abcdef]\":[]},\"absent\":{\"/spec/no\":\"\"}}",` +
		`"conversion-operator.io/v2.ts.example.com":"not JSON","conversion-operator.io/v3.others.example.com":"{}"}}}`))
	expect.NoError(t, err)
	of := preserved.Resource{Name: "ts.example.com", Versions: []string{"v1", "v2", "v3"}}
	parts, size := preservedParts(tree, of, of.Versions)
	want := []preservedPart{{`.spec["a/b"]`, 1}, {".spec.l[*].w", 2}, {".spec.m[*]", 2}, {".spec.no", 4}}
	expect.Equal(t, "parts", want, parts)
	expect.Equal(t, "size", 220, size)
}

func TestOnlyDropped(t *testing.T) {
	var drops []conversion.Path
	for _, text := range []string{".spec.legacy.mode", ".spec.parts[*].old", `.spec["a/b"]`, ".spec.map[*].old"} {
		path, err := conversion.ParsePath(text)
		expect.NoError(t, err)
		drops = append(drops, path)
	}
	for name, test := range map[string]struct {
		before, after string
		want          bool
	}{
		"a field":          {`{"spec":{"legacy":{"mode":1,"x":2}}}`, `{"spec":{"legacy":{"x":2}}}`, true},
		"with its object":  {`{"spec":{"legacy":{"mode":1},"x":2}}`, `{"spec":{"x":2}}`, true},
		"in a list":        {`{"spec":{"parts":[{"old":1,"x":2},{"x":3}]}}`, `{"spec":{"parts":[{"x":2},{"x":3}]}}`, true},
		"in a map":         {`{"spec":{"map":{"k":{"old":1,"x":2}}}}`, `{"spec":{"map":{"k":{"x":2}}}}`, true},
		"a quoted name":    {`{"spec":{"a/b":1}}`, `{"spec":{}}`, true},
		"another field":    {`{"spec":{"legacy":{"mode":1,"x":2}}}`, `{"spec":{"legacy":{}}}`, false},
		"with its element": {`{"spec":{"parts":[{"old":1}]}}`, `{"spec":{"parts":[]}}`, false},
		"an empty object":  {`{"spec":{"legacy":{}}}`, `{"spec":{}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			before, err := preserved.Decode([]byte(test.before))
			expect.NoError(t, err)
			after, err := preserved.Decode([]byte(test.after))
			expect.NoError(t, err)
			expect.Equal(t, "only dropped", test.want, onlyDropped(before, after, drops))
			expect.Equal(t, "dropped without a drop rule", false, onlyDropped(before, after, nil))
		})
	}
}
