// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compatibility

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// kubernetesOwn are fields with types of Kubernetes.
var kubernetesOwn = []string{"affinity", "env", "tolerations", "topologySpreadConstraints"}

// TestFields: the policies of each earlier version use every field of their CRD.
func TestFields(t *testing.T) {
	for _, version := range find(t, "*") {
		t.Run(filepath.Base(version), func(t *testing.T) {
			used := map[string]bool{}
			for _, file := range find(t, filepath.Join(filepath.Base(version), "policies", "*.yaml")) {
				policy := map[string]any{}
				unmarshal(t, file, &policy)
				use(used, "", policy)
			}
			for _, file := range find(t, filepath.Join(filepath.Base(version), "crds", "*.yaml")) {
				crd := &apiextensionsv1.CustomResourceDefinition{}
				unmarshal(t, file, crd)
				for _, each := range crd.Spec.Versions {
					for _, field := range unused(used, "", each.Schema.OpenAPIV3Schema) {
						t.Errorf("no policy has %s", field)
					}
				}
			}
		})
	}
}

func unmarshal(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	expect.NoError(t, err)
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// use records the paths of a value's fields, without list indices.
func use(used map[string]bool, path string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, each := range value {
			used[path+"."+key] = true
			use(used, path+"."+key, each)
		}
	case []any:
		for _, each := range value {
			use(used, path, each)
		}
	}
}

// unused returns the sorted fields of a schema that no value uses.
func unused(used map[string]bool, path string, schema *apiextensionsv1.JSONSchemaProps) []string {
	var fields []string
	for name, field := range schema.Properties {
		below := path + "." + name
		switch {
		case !used[below]:
			fields = append(fields, below)
		case !slices.Contains(kubernetesOwn, name):
			fields = append(fields, unused(used, below, &field)...)
		}
	}
	if schema.Items != nil {
		fields = append(fields, unused(used, path, schema.Items.Schema)...)
	}
	slices.Sort(fields)
	return fields
}
