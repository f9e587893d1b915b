// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/crds"
)

// fieldTypes has the type of each field of a version, by its path in the format of a
// policy.
type fieldTypes map[string]string

func typesOf(crd *apiextensionsv1.CustomResourceDefinition) map[string]fieldTypes {
	all := map[string]fieldTypes{}
	for _, version := range crd.Spec.Versions {
		types := fieldTypes{}
		if version.Schema != nil && version.Schema.OpenAPIV3Schema != nil {
			types.add(version.Schema.OpenAPIV3Schema, nil)
		}
		all[version.Name] = types
	}
	return all
}

func (t fieldTypes) add(of *apiextensionsv1.JSONSchemaProps, at conversion.Path) {
	t[at.String()] = typeOf(of)
	for name := range of.Properties {
		property := of.Properties[name]
		t.add(&property, append(slices.Clip(at), name))
	}
	if elements := crds.Elements(of); elements != nil {
		t.add(elements, append(slices.Clip(at), "[*]"))
	}
}

func typeOf(of *apiextensionsv1.JSONSchemaProps) string {
	elements := crds.Elements(of)
	switch {
	case of.XIntOrString:
		return "integer or string"
	case elements != nil && of.Type == "array":
		return "list of " + typeOf(elements)
	case elements != nil:
		return "map of " + typeOf(elements)
	case of.Type == "":
		return "anything"
	}
	return of.Type
}
