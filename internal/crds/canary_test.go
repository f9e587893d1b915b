// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func TestCanaries(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	read(t, `
spec:
  group: example.com
  scope: Namespaced
  names: {kind: CronTab}
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        type: object
        properties:
          apiVersion: {type: string}
          kind: {type: string}
          metadata: {type: object}
          spec:
            type: object
            properties:
              text: {type: string}
              when: {type: string, format: date-time}
              mode: {type: string, enum: [A, B]}
              size: {type: integer, default: 7}
              ratio: {type: number}
              on: {type: boolean}
              either: {x-kubernetes-int-or-string: true}
              list: {type: array, items: {type: object, properties: {count: {type: integer}}}}
              map: {type: object, additionalProperties: {type: string}}
              any: {type: object, x-kubernetes-preserve-unknown-fields: true}
              template: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
  - name: v2
`, crd)
	const envelope = `apiVersion: example.com/%s
kind: CronTab
metadata:
  name: conversion-canary
  namespace: conversion-canary
  uid: 00000000-0000-0000-0000-000000000001
  labels: {conversion-canary: label}
  annotations: {conversion-canary: annotation}
`
	cases := map[string]struct {
		got  []byte
		want string
	}{
		"bare":                  {BareCanary(crd, "v1"), fmt.Sprintf(envelope, "v1")},
		"filled":                {FilledCanary(crd, "v1"), fmt.Sprintf(envelope, "v1") + `spec: {text: "1", when: "2000-01-01T00:00:00Z", mode: A, size: 7, ratio: 1.5, on: true, either: 1, list: [{count: 1}], map: {canary: "1"}, any: {}, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: conversion-canary}}}`},
		"filled without schema": {FilledCanary(crd, "v2"), fmt.Sprintf(envelope, "v2")},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got, want map[string]any
			if err := json.Unmarshal(c.got, &got); err != nil {
				t.Fatal(err)
			}
			read(t, c.want, &want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("canary (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCanariesAreBounded for a schema with more than maxSamples fields.
func TestCanariesAreBounded(t *testing.T) {
	schema := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
	for i := range 2 * maxSamples {
		schema.Properties[fmt.Sprint("field", i)] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{
		{Name: "v1", Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &schema}}}
	var got map[string]any
	if err := json.Unmarshal(FilledCanary(crd, "v1"), &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != maxSamples+3 { // apiVersion, kind and metadata
		t.Errorf("the canary has %d fields", len(got))
	}
}

func read(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}
