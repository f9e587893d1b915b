// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migrations

import (
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

const (
	oldVersion, newVersion = "v1beta1", "v1"
	kind, plural           = "Widget", "widgets"
	// notes is the length of a field that makes an object about 1.5 KB large in etcd.
	notes = 1000
)

var versions = [...]string{oldVersion, newVersion}

// setup is a kind of conversion.
type setup struct {
	name, group string
	// declarative is set if the versions differ, and a policy has rules.
	declarative bool
}

func (s setup) definitionName() string { return plural + "." + s.group }

// definition returns a CRD with the old version as storage version.
func (s setup) definition() *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: s.definitionName()},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: s.group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, Plural: plural},
		},
	}
	for _, version := range versions {
		fields := []string{"hostPort", "notes"}
		if s.declarative && version == newVersion {
			fields = []string{"host", "port", "notes"}
		}
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: version, Served: true, Storage: version == oldVersion, Schema: schemaOf(fields...),
		})
	}
	return crd
}

func schemaOf(fields ...string) *apiextensionsv1.CustomResourceValidation {
	spec := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
	for _, field := range fields {
		spec.Properties[field] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	}
	return &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
		Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec},
	}}
}

// policy returns a policy that activates the converter and migrates only on demand.
func (s setup) policy() *v1alpha1.ConversionPolicy {
	converter := v1alpha1.Converter{None: &v1alpha1.NoneConverter{}}
	if s.declarative {
		converter = v1alpha1.Converter{Declarative: &v1alpha1.DeclarativeConverter{
			Hub: newVersion,
			Spokes: []v1alpha1.Spoke{{Version: oldVersion, Rules: []v1alpha1.Rule{{Format: &v1alpha1.FormatRule{
				From: ".spec.hostPort", Template: "{host}:{port}",
				To: map[string]v1alpha1.Path{"host": ".spec.host", "port": ".spec.port"},
			}}}}},
		}}
	}
	return &v1alpha1.ConversionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: s.definitionName()},
		Spec: v1alpha1.ConversionPolicySpec{
			Converter: converter, Migration: v1alpha1.Migration{Mode: v1alpha1.MigrationNever},
		},
	}
}

func (s setup) object(i int) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": s.group + "/" + oldVersion, "kind": kind,
		"metadata": map[string]any{"name": fmt.Sprintf("widget-%06d", i)},
		"spec": map[string]any{
			"hostPort": fmt.Sprintf("host-%d.example.com:%d", i, 1024+i%60000),
			"notes":    strings.Repeat("0123456789", notes/10),
		},
	}}
}
