// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const csv = "conversion-operator.clusterserviceversion.yaml"

// TestSupportedVersionsAgree: every place that names the supported versions of Kubernetes agrees
// with SupportedVersions.
func TestSupportedVersionsAgree(t *testing.T) {
	oldest, newest := minor(OldestKubernetesVersion), minor(DefaultKubernetesVersion)
	supported := "Kubernetes " + oldest + " to " + newest
	var releases, rows, stages []string
	for _, version := range SupportedVersions {
		releases = append(releases, strings.TrimPrefix(version, "v"))
		rows = append(rows, "\n| "+minor(version)+" | supported: ")
		if version != DefaultKubernetesVersion && version != OldestKubernetesVersion {
			stages = append(stages, " integration@"+minor(version)+" ", " helm@"+minor(version)+" ")
		}
	}
	for file, says := range map[string][]string{
		"README.md":                                slices.Concat(releases, []string{supported, "a real Kubernetes " + newest}),
		"api/docs/installing.md":                   slices.Concat(releases, rows, []string{supported}),
		"internal/tools/test.sh":                   stages,
		".ci/run":                                  {supported, "run on Kubernetes " + newest},
		"config/manifests/bases/" + csv:            {supported, "minKubeVersion: " + OldestInstallableMinor + ".0\n"},
		"bundle/manifests/" + csv:                  {supported, "minKubeVersion: " + OldestInstallableMinor + ".0\n"},
		"config/chart/Chart.yaml":                  {"kubeVersion: '>=" + OldestInstallableMinor + ".0-0'\n"},
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

// minor returns the minor version without the letter: 1.37 of v1.37.0.
func minor(version string) string { return strings.TrimPrefix(minorOf(version), "v") }

// TestSupportedVersionsAreInOrder: there is one release of each minor version, from the oldest to the
// newest.
func TestSupportedVersionsAreInOrder(t *testing.T) {
	first, last := SupportedVersions[0], SupportedVersions[len(SupportedVersions)-1]
	if first != OldestKubernetesVersion || last != DefaultKubernetesVersion {
		t.Errorf("versions from %s to %s", first, last)
	}
	previous := 0
	for _, version := range SupportedVersions {
		var number int
		if _, err := fmt.Sscanf(minorOf(version), "v1.%d", &number); err != nil || previous != 0 && number != previous+1 {
			t.Errorf("%s follows v1.%d: %v", version, previous, err)
		}
		previous = number
	}
}
