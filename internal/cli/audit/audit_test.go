// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/operator/terminal"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// now is the time of all audits.
var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// check is a test case.
type check struct {
	// crd is YAML as definition reads it.
	crd string
	// observe changes the observed state.
	observe func(*Observed)
	// want are the findings as short writes them.
	want []string
}

// run checks all cases.
func run(t *testing.T, cases map[string]check) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			observed := &Observed{CRD: definition(t, c.crd), Live: true, Now: now, Soon: 30 * 24 * time.Hour}
			if c.observe != nil {
				c.observe(observed)
			}
			var got []string
			for _, finding := range Check(observed) {
				got = append(got, short(finding))
				if finding.Cure == "" || finding.CRD != "widgets.example.com" {
					t.Errorf("finding %+v", finding)
				}
			}
			expect.Equal(t, "findings", c.want, got)
		})
	}
}

func short(f Finding) string {
	return fmt.Sprintf("%s %s %s %s: %s", f.Severity, f.Confidence, f.ID, terminal.OrDash(f.Version), f.Evidence)
}

// definition reads a definition from YAML. Its versions map a name and the words served,
// storage and deprecated to types of fields.
func definition(t *testing.T, text string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	short := struct {
		Versions map[string]map[string]string `json:"versions"`
		Metadata map[string]any               `json:"metadata"`
		Spec     map[string]any               `json:"spec"`
		Status   map[string]any               `json:"status"`
	}{}
	expect.NoError(t, yaml.UnmarshalStrict([]byte(text), &short))
	long, err := yaml.Marshal(map[string]any{"metadata": short.Metadata, "spec": short.Spec, "status": short.Status})
	expect.NoError(t, err)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	expect.NoError(t, yaml.UnmarshalStrict(long, crd))
	crd.Name, crd.Spec.Group, crd.Spec.Names.Kind, crd.Spec.Names.Plural = "widgets.example.com", "example.com", "Widget", "widgets"
	for name, fields := range short.Versions {
		crd.Spec.Versions = append(crd.Spec.Versions, version(name, fields))
	}
	slices.SortFunc(crd.Spec.Versions, func(a, b apiextensionsv1.CustomResourceDefinitionVersion) int { return strings.Compare(a.Name, b.Name) })
	return crd
}

func version(text string, fields map[string]string) apiextensionsv1.CustomResourceDefinitionVersion {
	name, marks, _ := strings.Cut(text, " ")
	schema := &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
	for field, kind := range fields {
		schema.Properties[field] = apiextensionsv1.JSONSchemaProps{Type: kind}
	}
	return apiextensionsv1.CustomResourceDefinitionVersion{
		Name: name, Served: strings.Contains(marks, "served"), Storage: strings.Contains(marks, "storage"), Deprecated: strings.Contains(marks, "deprecated"),
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: schema},
	}
}

// TestKinds checks that Kinds and api/docs/auditing.md have each kind of finding, once.
func TestKinds(t *testing.T) {
	docs, err := os.ReadFile(filepath.Join("..", "..", "..", "api", "docs", "auditing.md"))
	expect.NoError(t, err)
	seen := map[ID]bool{}
	for _, kind := range Kinds {
		expect.Contains(t, "api/docs/auditing.md", string(docs), "| `"+string(kind.ID)+"` | "+string(kind.Severity)+" | "+kind.Means+" |")
		if seen[kind.ID] || !slices.Contains(Severities, kind.Severity) {
			t.Errorf("kind %+v", kind)
		}
		seen[kind.ID] = true
	}
}
