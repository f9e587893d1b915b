// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestCritical: the manager, from which other pods inherit, has the priority class that the quota is for.
func TestCritical(t *testing.T) {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(root, "internal/test/rbac/testdata/critical"))
	expect.NoError(t, err)
	const class = "system-cluster-critical"
	var found []string
	for _, object := range built.Resources() {
		text, err := object.AsYAML()
		expect.NoError(t, err)
		switch object.GetKind() {
		case "Deployment":
			if strings.Contains(string(text), "priorityClassName: "+class) {
				found = append(found, "Deployment")
			}
		case "ResourceQuota":
			if strings.Contains(string(text), "- "+class) && object.GetNamespace() == "conversion-system" {
				found = append(found, "ResourceQuota")
			}
		}
	}
	slices.Sort(found)
	if !slices.Equal(found, []string{"Deployment", "ResourceQuota"}) {
		t.Errorf("only these are as they should be: %v", found)
	}
}
