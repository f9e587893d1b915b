// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/conversion/internal/kindtest"
)

// from reads YAML strictly.
func from[T any](t testing.TB, text string) *T {
	t.Helper()
	return kindtest.From[T](t, text)
}

func widgets(t testing.TB, versions map[string]string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	return kindtest.Widgets(t, versions)
}

// between compiles rules between the spoke v1 and the hub v2.
func between(t testing.TB, v1, v2, rules string) compile.Result {
	t.Helper()
	return compile.Compile(widgets(t, map[string]string{"v1": v1, "v2": v2}),
		from[v1alpha1.DeclarativeConverter](t, "{hub: v2, spokes: [{version: v1, rules: ["+rules+"]}]}"))
}

// converterOf fails the test on what Compile refuses.
func converterOf(t testing.TB, result compile.Result) *conversion.Converter {
	t.Helper()
	if len(result.Errors) > 0 || result.Plan == nil {
		t.Fatalf("the rules are refused: %v, missing: %v", result.Errors, result.Missing)
	}
	return kindtest.Converter(t, result.Plan)
}

// convert converts, and fails the test if that changed its input.
func convert(t testing.TB, c *conversion.Converter, object, to string) string {
	t.Helper()
	input := []byte(object)
	output, err := c.Convert(nil, input, to)
	if err != nil {
		t.Fatalf("to %s: %v: %s", to, err, object)
	}
	if string(input) != object {
		t.Fatalf("the input was changed from %s to %s", object, input)
	}
	return string(output)
}

// sample reads the rules and both versions of a sample.
func sample(t testing.TB, name string) *conversion.Converter {
	t.Helper()
	read := func(file string) string {
		text, err := os.ReadFile(filepath.Join("..", "..", "config", "samples", name, file))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	policy := from[v1alpha1.ConversionPolicy](t, read("2-policy.yaml"))
	crd := from[apiextensionsv1.CustomResourceDefinition](t, read("3-crd-both.yaml"))
	return converterOf(t, compile.Compile(crd, policy.Spec.Converter.Declarative))
}

// widget writes an object of the kind Widget. Its fields follow the metadata.
func widget(version, fields string) string {
	return annotated(version, "", fields)
}

// annotated writes an object with one annotation of preserved values: a version, and
// values by their pointers. A ! begins the pointer of an absence, a # that of an
// order, and a @ that of images.
func annotated(version, preserved, fields string) string {
	metadata := `{}`
	if owner, values, found := strings.Cut(preserved, " "); found {
		metadata = `{"annotations":{"` + conversion.AnnotationName("widgets.example.com", owner) + `":` + conversion.Quoted(conversion.PreservedText(values)) + `}}`
	}
	if fields != "" {
		fields = "," + fields
	}
	return `{"apiVersion":"example.com/` + version + `","kind":"Widget","metadata":` + metadata + fields + `}`
}

// digest is the image of an element without keys that became a text of canonical
// JSON, as a JSON string.
func digest(became string) string {
	sum := sha256.Sum256([]byte(became))
	return `"` + hex.EncodeToString(sum[:8]) + `"`
}

// structuralSchemas are the schemas of versions.
func structuralSchemas(crd *apiextensionsv1.CustomResourceDefinition) (map[string]*schema.Structural, error) {
	schemas := map[string]*schema.Structural{}
	for _, version := range crd.Spec.Versions {
		internal := &apiextensions.JSONSchemaProps{}
		err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, internal, nil)
		if err != nil {
			return nil, err
		}
		if schemas[version.Name], err = schema.NewStructural(internal); err != nil {
			return nil, err
		}
	}
	return schemas, nil
}

// step is the schema of an element, a member or a field, nil where there is none.
func step(at *schema.Structural, segment string) *schema.Structural {
	if segment == conversion.Each && at.Items != nil {
		return at.Items
	}
	if next, found := at.Properties[segment]; found && segment != conversion.Each {
		return &next
	}
	if at.AdditionalProperties == nil {
		return nil
	}
	return at.AdditionalProperties.Structural
}
