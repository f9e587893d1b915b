// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func TestVersionsInUse(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{
		{Name: "v1", Served: true}, {Name: "v2"}, {Name: "v3"}, {Name: "v4", Storage: true}}
	crd.Status.StoredVersions = []string{"v2", "v4"}
	expect.Equal(t, "versions", []string{"v1", "v2", "v4"}, VersionsInUse(crd))
	crd.Spec.Group, crd.Spec.Names.Plural = "example.com", "crontabs"
	expect.Equal(t, "resource", "example.com/v2, Resource=crontabs", Resource(crd, "v2").String())
}

func TestInjector(t *testing.T) {
	cases := map[string]struct {
		annotations map[string]string
		want        string
	}{
		"none":         {nil, ""},
		"cert-manager": {map[string]string{"cert-manager.io/inject-ca-from": "a/b"}, "cert-manager.io/inject-ca-from"},
		"Gardener":     {map[string]string{"cert.gardener.cloud/inject-ca-from-secret": "a/b"}, "cert.gardener.cloud/inject-ca-from-secret"},
		"service-ca":   {map[string]string{"service.beta.openshift.io/inject-cabundle": "true"}, "service.beta.openshift.io/inject-cabundle"},
		"switched off": {map[string]string{"service.beta.openshift.io/inject-cabundle": "false"}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Annotations: c.annotations}}
			expect.Equal(t, "injector", c.want, Injector(crd))
		})
	}
}

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
			expect.NoError(t, json.Unmarshal(c.got, &got))
			read(t, c.want, &want)
			expect.Equal(t, "canary", want, got)
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
	expect.NoError(t, json.Unmarshal(FilledCanary(crd, "v1"), &got))
	if len(got) != maxSamples+3 { // apiVersion, kind and metadata
		t.Errorf("the canary has %d fields", len(got))
	}
}

func read(t *testing.T, text string, into any) {
	t.Helper()
	expect.NoError(t, yaml.UnmarshalStrict([]byte(text), into))
}

func TestReaderOf(t *testing.T) {
	for group, want := range map[string]string{
		"karpenter.sh":                       "Karpenter",
		"karpenter.k8s.aws":                  "Karpenter",
		"cluster.x-k8s.io":                   "Cluster API",
		"infrastructure.cluster.x-k8s.io":    "Cluster API",
		"crd.projectcalico.org":              "Calico",
		"templates.gatekeeper.sh":            "Gatekeeper",
		"acme.cert-manager.io":               "cert-manager",
		"policy.cert-manager.io":             "approver-policy",
		"conversion-operator.io":             "conversion-operator",
		"probe.conversion-operator.io":       "conversion-operator",
		"my-cluster.x-k8s.io":                "",
		"example.karpenter.sh":               "",
		"karpenter.sh.example.com":           "",
		"gatekeeper.sh":                      "",
		"trust.cert-manager.io":              "",
		"my-conversion-operator.io":          "",
		"conversion-operator.io.example.com": "",
		"example.com":                        "",
		"":                                   "",
	} {
		got := ""
		if reader := ReaderOf(group); reader != nil {
			got = reader.Name
		}
		expect.Equal(t, "what needs group "+group, want, got)
	}
}

// TestReaders: each group belongs to one component, and each component has a source.
func TestReaders(t *testing.T) {
	seen := map[string]bool{}
	for _, reader := range Readers {
		if reader.Name == "" || reader.Need == "" || reader.Source == "" || len(reader.Groups) == 0 {
			t.Errorf("incomplete: %+v", reader)
		}
		for _, group := range reader.Groups {
			expect.Equal(t, group+" is there twice", false, seen[group])
			seen[group] = true
		}
	}
}

var (
	groupsInRow = regexp.MustCompile(`(?m)^\| [^|]+ \| (` + "`" + `[^|]+` + "`" + `) \| [^|]+ \|$`)
	groupInRow  = regexp.MustCompile("`([^`]+)`")
)

// TestReadersAreDocumented: users find every group, and no other.
func TestReadersAreDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "api", "docs", "bootstrap.md"))
	expect.NoError(t, err)
	var known, documented []string
	for _, reader := range Readers {
		known = append(known, reader.Groups...)
	}
	for _, row := range groupsInRow.FindAllStringSubmatch(string(page), -1) {
		for _, group := range groupInRow.FindAllStringSubmatch(row[1], -1) {
			documented = append(documented, group[1])
		}
	}
	slices.Sort(known)
	slices.Sort(documented)
	expect.Equal(t, "groups, known and documented", known, documented)
}
