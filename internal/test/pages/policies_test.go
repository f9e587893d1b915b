// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

var betweenDocuments = regexp.MustCompile(`(?m)^---\n`)

// TestYAML: what the pages show as YAML can be read, and a ConversionPolicy has
// no field that there is none of.
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
				if !strings.Contains(text, "kind: ConversionPolicy\n") || strings.Contains(text, "…") {
					continue
				}
				policies++
				if err := yaml.UnmarshalStrict([]byte(text), &v1alpha1.ConversionPolicy{}); err != nil {
					t.Errorf("%s, block of line %d: %v", page.Path, block.Line, err)
				}
			}
		}
	}
	if policies < 5 {
		t.Errorf("only %d policies were found", policies)
	}
}
