// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// maxAtRest is how much memory the program may have with the rules of a policy and without calls, in bytes, besides
// its pages of files, of which the kernel decides.
const maxAtRest = 12 << 20

// TestAtRest prints the memory of a pod without calls, and limits it.
func TestAtRest(t *testing.T) {
	status := run(t, sampleRuleset(t)).status(t)
	t.Logf("resident %.1f MiB, of which %.1f MiB are not pages of files", mebibytes(status.VmRSS), mebibytes(status.RssAnon))
	if status.RssAnon > maxAtRest {
		t.Errorf("%.1f MiB are not pages of files", mebibytes(status.RssAnon))
	}
}

// sampleRuleset compiles the rules of a sample as the manager does for converter pods.
func sampleRuleset(t *testing.T) *conversion.Ruleset {
	t.Helper()
	policy, crd := &v1alpha1.ConversionPolicy{}, &apiextensionsv1.CustomResourceDefinition{}
	for file, into := range map[string]any{"2-policy.yaml": policy, "3-crd-both.yaml": crd} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "config", "samples", "crontab-hostport", file))
		expect.NoError(t, err)
		expect.NoError(t, yaml.UnmarshalStrict(text, into))
	}
	return compile.Compile(crd, policy.Spec.Converter.Declarative).Ruleset
}

func mebibytes(size uint64) float64 { return float64(size) / (1 << 20) }
