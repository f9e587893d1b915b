// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command crd removes descriptions from CustomResourceDefinitions that controller-gen wrote.
// `make manifests` runs it. kubectl apply stores a whole definition in an annotation, which must have
// room for two versions: internal/decisions/0071. The schemas accept the same objects as before.
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// explained are the ends of the paths of fields whose members are described elsewhere: types of
// Kubernetes at its own kinds, and rules of groups at those of a spoke.
var explained = []string{".affinity", ".conditions", ".env", ".ruleGroups.rules", ".tolerations", ".topologySpreadConstraints"}

func main() {
	for _, file := range os.Args[1:] {
		if err := shorten(file); err != nil {
			fmt.Fprintf(os.Stderr, "error: %s: %v\n", file, err)
			os.Exit(1)
		}
	}
}

func shorten(file string) error {
	text, err := os.ReadFile(file) //nolint:gosec // a file of the checkout
	if err != nil {
		return err
	}
	var definition map[string]any
	if err := yaml.Unmarshal(text, &definition); err != nil {
		return err
	}
	versions, _, err := unstructured.NestedSlice(definition, "spec", "versions")
	if err != nil {
		return err
	}
	for _, version := range versions {
		if schema, ok, _ := unstructured.NestedFieldNoCopy(version.(map[string]any), "schema", "openAPIV3Schema"); ok {
			walk(schema, "", false)
		}
	}
	if err := unstructured.SetNestedSlice(definition, versions, "spec", "versions"); err != nil {
		return err
	}
	shorter, err := yaml.Marshal(definition)
	if err != nil {
		return err
	}
	return os.WriteFile(file, append([]byte("---\n"), shorter...), 0o644) //nolint:gosec // the mode of the checkout
}

// walk visits the schemas below the one of a field, which has the path. Below a field of explained,
// it removes their descriptions.
func walk(node any, path string, below bool) {
	schema, is := node.(map[string]any)
	if !is {
		return
	}
	if below {
		delete(schema, "description")
	}
	below = below || slices.ContainsFunc(explained, func(end string) bool { return strings.HasSuffix(path, end) })
	walk(schema["items"], path, below)
	walk(schema["additionalProperties"], path, below)
	properties, _ := schema["properties"].(map[string]any)
	for name, property := range properties {
		walk(property, path+"."+name, below)
	}
}
