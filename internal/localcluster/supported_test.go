// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const csv = "conversion-operator.clusterserviceversion.yaml"

// TestSupportedVersionsAgree: every place that names the supported versions of Kubernetes agrees
// with the versions that make test and make test-oldest use.
func TestSupportedVersionsAgree(t *testing.T) {
	oldest, newest := minor(OldestKubernetesVersion), minor(DefaultKubernetesVersion)
	supported := "Kubernetes " + oldest + " to " + newest
	tested := []string{strings.TrimPrefix(OldestKubernetesVersion, "v"), strings.TrimPrefix(DefaultKubernetesVersion, "v")}
	for file, says := range map[string][]string{
		"README.md":                                append(tested, supported, "a real Kubernetes "+newest),
		"api/docs/installing.md":                   append(tested, supported),
		".ci/run":                                  {supported, "run on Kubernetes " + newest},
		"config/manifests/bases/" + csv:            {supported, "minKubeVersion: " + oldest + ".0\n"},
		"bundle/manifests/" + csv:                  {supported, "minKubeVersion: " + oldest + ".0\n"},
		"internal/tools/api-reference/config.yaml": {`kubernetesVersion: "` + newest + `"`},
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			t.Error(err)
		}
		for _, want := range says {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s does not say %q", file, strings.TrimSpace(want))
			}
		}
	}
}

// minor returns a version without its last number: 1.37 of v1.37.0.
func minor(version string) string {
	version = strings.TrimPrefix(version, "v")
	return version[:strings.LastIndex(version, ".")]
}
