// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

var betweenDocuments = regexp.MustCompile(`(?m)^---\n`)

// TestYAML: YAML on the pages is valid, and a ConversionPolicy or a ConverterFleet has no unknown
// field.
func TestYAML(t *testing.T) {
	policies := 0
	for _, page := range all(t) {
		for _, block := range page.Blocks {
			if block.Language != "yaml" {
				continue
			}
			for _, text := range betweenDocuments.Split(block.Text, -1) {
				if err := yaml.Unmarshal([]byte(text), new(any)); err != nil {
					t.Errorf("%s, block of line %d: %v", page.Path, block.Line, err)
				}
				var into any = &v1alpha1.ConversionPolicy{}
				switch {
				case strings.Contains(text, "…"):
					continue
				case strings.Contains(text, "kind: ConversionPolicy\n"):
					policies++
				case strings.Contains(text, "kind: ConverterFleet\n"):
					into = &v1alpha1.ConverterFleet{}
				default:
					continue
				}
				if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
					t.Errorf("%s, block of line %d: %v", page.Path, block.Line, err)
				}
			}
		}
	}
	if policies < 5 {
		t.Errorf("only %d policies were found", policies)
	}
}

// TestRetirementMatchesSample: the page's policy equals the sample's, for another group.
func TestRetirementMatchesSample(t *testing.T) {
	sample, err := os.ReadFile(filepath.Join(root, "config/samples/crontab-hostport/5-policy-retirement.yaml"))
	expect.NoError(t, err)
	page, err := Read(root, Folder+"/retiring.md")
	expect.NoError(t, err)
	at := slices.IndexFunc(page.Blocks, func(block Block) bool { return block.File() == "policy.yaml" })
	if at < 0 {
		t.Fatal("the page has no policy.yaml")
	}
	var want, got v1alpha1.ConversionPolicy
	for text, into := range map[string]*v1alpha1.ConversionPolicy{string(sample): &want, page.Blocks[at].Text: &got} {
		expect.NoError(t, yaml.UnmarshalStrict([]byte(text), into))
	}
	if diff := cmp.Diff(want.Spec, got.Spec); diff != "" {
		t.Errorf("the sample and the page (-sample +page):\n%s", diff)
	}
}
