// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/golden"
)

// TestReports tests the rules of every directory in testdata on its objects, and
// compares both forms of the report with golden files.
func TestReports(t *testing.T) {
	directories, err := filepath.Glob(filepath.Join("testdata", "*"))
	expect.NoError(t, err)
	for _, directory := range directories {
		t.Run(filepath.Base(directory), func(t *testing.T) {
			report := check(t, directory, "objects.yaml")
			if report.RulesetHash != "" {
				report.RulesetHash = "0123456789abcdef" // it differs with each change of the engine
			}
			var text bytes.Buffer
			expect.NoError(t, report.WriteText(&text))
			golden.Check(t, text.String(), filepath.Base(directory), "report.md")
			encoded, err := json.MarshalIndent(report, "", "  ")
			expect.NoError(t, err)
			golden.Check(t, string(encoded)+"\n", filepath.Base(directory), "report.json")
		})
	}
}

// check reads policy.yaml and crd.yaml of a directory, and the objects if there are any.
func check(t *testing.T, directory, objects string) *Report {
	t.Helper()
	c := checkerOf(t, from[v1alpha1.ConversionPolicy](t, directory, "policy.yaml"), from[apiextensionsv1.CustomResourceDefinition](t, directory, "crd.yaml"))
	if !c.Valid() {
		return c.Report("")
	}
	c.Canaries(t.Context())
	if _, err := os.Stat(filepath.Join(directory, objects)); os.IsNotExist(err) {
		return c.Report("")
	}
	documents, err := manifest.ReadAll([]string{filepath.Join(directory, objects)}, nil)
	expect.NoError(t, err)
	for i := range documents {
		documents[i].Source = objects
		found, err := documents[i].Objects()
		expect.NoError(t, err)
		for _, object := range found {
			c.Check(t.Context(), object)
		}
	}
	return c.Report(objects)
}

// checkerOf makes a Checker for which every conversion takes a microsecond.
func checkerOf(t *testing.T, policy *v1alpha1.ConversionPolicy, crd *apiextensionsv1.CustomResourceDefinition) *Checker {
	t.Helper()
	clock := time.Unix(0, 0)
	c, err := New(policy, crd, func() time.Time {
		clock = clock.Add(time.Microsecond)
		return clock
	})
	expect.NoError(t, err)
	return c
}

func from[T any](t *testing.T, directory, file string) *T {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(directory, file))
	expect.NoError(t, err)
	value := new(T)
	if err := yaml.UnmarshalStrict(text, value); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return value
}
