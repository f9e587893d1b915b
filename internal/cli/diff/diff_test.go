// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/golden"
)

func side(t *testing.T, folder, when string) Side {
	t.Helper()
	file := func(kind string) string { return filepath.Join("testdata", folder, when+"-"+kind+".yaml") }
	side := Side{CRD: expect.YAML[apiextensionsv1.CustomResourceDefinition](t, file("crd"))}
	if _, err := os.Stat(file("policy")); err == nil {
		side.Policy = expect.YAML[v1alpha1.ConversionPolicy](t, file("policy"))
	}
	if _, err := os.Stat(file("objects")); err != nil {
		return side
	}
	documents, err := manifest.ReadAll([]string{file("objects")}, nil)
	expect.NoError(t, err)
	for _, document := range documents {
		side.Objects = append(side.Objects, manifest.NewObject(document.Source, document.JSON))
	}
	return side
}

func report(t *testing.T, folder string) *Report {
	t.Helper()
	policy, err := Compare(side(t, folder, "before"), side(t, folder, "after"))
	expect.NoError(t, err)
	return &Report{Format: Format, Policies: []Policy{policy}}
}

func TestTables(t *testing.T) {
	worse := map[string]bool{"dropped": true, "field-removed": true, "type-changed": true, "does-not-fit": true, "preserved-data": true, "fields-moved": true, "moved-in-group": true, "scale-lost": true}
	folders, err := filepath.Glob(filepath.Join("testdata", "*", "after-crd.yaml"))
	if err != nil || len(folders) == 0 {
		t.Fatalf("%v: %d cases", err, len(folders))
	}
	for _, folder := range folders {
		folder = filepath.Base(filepath.Dir(folder))
		t.Run(folder, func(t *testing.T) {
			found := report(t, folder)
			expect.Equal(t, "worse", worse[folder], found.Worse())
			var out bytes.Buffer
			expect.NoError(t, found.WriteTables(&out, Table{}))
			golden.Check(t, out.String(), folder, "table.txt")
		})
	}
}

func TestWideAndColored(t *testing.T) {
	var out bytes.Buffer
	both := &Report{Policies: append(report(t, "dropped").Policies, report(t, "does-not-fit").Policies...)}
	expect.NoError(t, both.WriteTables(&out, Table{Wide: true, Colors: true}))
	golden.Check(t, out.String(), "dropped", "wide-colored.txt")
}

func TestJSON(t *testing.T) {
	for _, folder := range []string{"dropped", "preserved-data", "fields-moved", "scale-lost"} {
		text, err := json.MarshalIndent(report(t, folder), "", "  ")
		expect.NoError(t, err)
		text = regexp.MustCompile(`"ruleset(Before|After)": "[0-9a-f]{16}"`).ReplaceAll(text, []byte(`"ruleset$1": "HASH"`))
		golden.Check(t, string(text)+"\n", folder, "report.json")
	}
}

// TestInvalidBefore has rules that are not valid before or after the change.
func TestInvalidBefore(t *testing.T) {
	if _, err := Compare(side(t, "does-not-fit", "after"), side(t, "does-not-fit", "before")); err == nil ||
		!strings.HasPrefix(err.Error(), "crontabs.example.com: the previous rules are not valid: spec.converter.declarative.spokes[0]") {
		t.Errorf("error is %v", err)
	}
	image := side(t, "same", "after")
	image.Policy = image.Policy.DeepCopy()
	image.Policy.Spec.Converter = v1alpha1.Converter{Type: v1alpha1.ConverterImage, Image: &v1alpha1.ImageConverter{}}
	if policy, err := Compare(side(t, "same", "before"), image); err != nil || !policy.Worse || len(policy.Errors) != 1 {
		t.Errorf("%v: %+v", err, policy)
	}
}

// TestUnknownHub has a hub that neither CustomResourceDefinition has: nothing is converted after the change.
func TestUnknownHub(t *testing.T) {
	before := side(t, "preserved-data", "after")
	after := before
	after.Policy = before.Policy.DeepCopy()
	after.Policy.Spec.Converter.Declarative.Hub = "v7"
	policy, err := Compare(before, after)
	expect.NoError(t, err)
	if !policy.Worse || len(policy.Errors) != 1 || !strings.HasPrefix(policy.Errors[0], `spec.converter.declarative.hub: Not found: "v7": `) {
		t.Errorf("%+v", policy)
	}
}

func wantSentences(t *testing.T, policy Policy, want ...string) {
	t.Helper()
	var got []string
	for _, field := range policy.Preserved {
		got = append(got, field.Sentences()...)
	}
	expect.Equal(t, "sentences", want, got)
}

// TestWithoutObjects checks that the rules suffice to find gained and lost counterparts.
func TestWithoutObjects(t *testing.T) {
	after := side(t, "preserved-data", "after")
	after.Objects = nil
	policy, err := Compare(side(t, "preserved-data", "before"), after)
	expect.NoError(t, err)
	wantSentences(t, policy,
		".spec.mode of v1 no longer has a place in v2: it is preserved in an annotation while an object is there",
		"objects that preserve .spec.note of v1: it becomes data in v2 (.spec.note) by a migration run",
		"objects that preserve .spec.owner of v1: it becomes data in v2 (.spec.leader) by a migration run",
	)
}

// TestAnotherHub has two spokes that the previous rules converted through the former hub.
func TestAnotherHub(t *testing.T) {
	before := side(t, "preserved-data", "after")
	before.Objects = nil
	after := before
	after.Policy = before.Policy.DeepCopy()
	after.Policy.Spec.Converter = v1alpha1.Converter{Type: v1alpha1.ConverterDeclarative, Declarative: &v1alpha1.DeclarativeConverter{Hub: "v1", Spokes: []v1alpha1.Spoke{{Version: "v2"}, {Version: "v3"}}}}
	policy, err := Compare(before, after)
	expect.NoError(t, err)
	wantSentences(t, policy,
		".spec.a of v1 no longer has a place in v2: it is preserved in an annotation while an object is there",
		".spec.a of v1 no longer has a place in v3: it is preserved in an annotation while an object is there",
		".spec.owner of v1 no longer has a place in v2: it is preserved in an annotation while an object is there",
		".spec.b of v2 no longer has a place in v1: it is preserved in an annotation while an object is there",
		".spec.leader of v2 no longer has a place in v1: it is preserved in an annotation while an object is there",
		".spec.b of v3 no longer has a place in v1: it is preserved in an annotation while an object is there",
	)
}
