// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/internal/kindtest"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/golden"
)

// recordedWorld is a kind with conversions of its objects, from random worlds and from faults that fuzzers found. A
// second implementation, slow and simple, agreed with each result when it was recorded.
type recordedWorld struct {
	Versions    map[string]*apiextensionsv1.JSONSchemaProps `json:"versions"`
	Rules       *v1alpha1.DeclarativeConverter              `json:"rules"`
	Conversions []*recordedConversion                       `json:"conversions"`
}

// recordedConversion converts an object with the preserved data of an earlier result, or that result itself. So the
// inputs do not depend on how data is preserved.
type recordedConversion struct {
	Object    json.RawMessage `json:"object,omitempty"`
	Preserved *int            `json:"preserved,omitempty"`
	To        string          `json:"to"`
	Want      json.RawMessage `json:"want"`
}

// TestRecorded converts objects of many worlds to the version that they were recorded at, with the same preserved data.
func TestRecorded(t *testing.T) {
	worlds := recordedWorlds(t)
	for i, w := range worlds {
		t.Run(fmt.Sprint("world ", i), w.check)
	}
	if golden.Update() {
		text, err := json.Marshal(worlds)
		expect.NoError(t, err)
		expect.NoError(t, os.WriteFile(recordedFile, conversion.Store(text), 0o600))
	}
}

var recordedFile = filepath.Join("testdata", "recorded.json.gz")

func recordedWorlds(t *testing.T) (worlds []*recordedWorld) {
	t.Helper()
	packed, err := os.ReadFile(recordedFile)
	expect.NoError(t, err)
	text, err := conversion.Expand(packed)
	expect.NoError(t, err)
	expect.NoError(t, json.Unmarshal(text, &worlds))
	return worlds
}

func (r *recordedWorld) check(t *testing.T) {
	crd := kindtest.Widgets(t, nil)
	for name, schema := range r.Versions {
		kindtest.AddVersion(crd, name, schema)
	}
	w := worldOf(t, crd, r.Rules)
	defer describe(t, w.crd, w.rules)
	var results []string
	for _, c := range r.Conversions {
		object := c.input(t, w, results)
		got := convert(t, w.converter, object, c.To)
		results = append(results, got)
		if golden.Update() {
			c.Want = json.RawMessage(got)
		}
		wantEqual(t, withDecodedAnnotations(t, string(c.Want)), withDecodedAnnotations(t, got), "%s\nat %s", object, c.To)
	}
}

// input returns the object to convert, by the results of earlier conversions.
func (c *recordedConversion) input(t *testing.T, w *world, results []string) string {
	t.Helper()
	object := string(c.Object)
	switch {
	case c.Preserved == nil:
		return object
	case object == "":
		return results[*c.Preserved]
	}
	return w.withAllPreservedOf(t, object, results[*c.Preserved])
}
