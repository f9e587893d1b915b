// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"

	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
)

// Defaults fills in the defaults of the schemas of a CustomResourceDefinition.
type Defaults map[string]*schema.Structural

// NewDefaults reads the schemas.
func NewDefaults(crd *apiextensionsv1.CustomResourceDefinition) (Defaults, error) {
	defaults := Defaults{}
	for i := range crd.Spec.Versions {
		of := &crd.Spec.Versions[i]
		_, structural, err := schemaOf(of)
		if err != nil {
			return nil, err
		}
		defaults[of.Name] = structural
	}
	return defaults, nil
}

// Fill returns an object of a version as an API server stores it when a client creates it, but
// with fields that the schema does not know. It does not change the object.
func (d Defaults) Fill(version string, object any) (any, error) {
	filled, err := preserved.Decode(preserved.Encode(object))
	if err != nil {
		return nil, err
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(filled, d[version])
	defaulting.Default(filled, d[version])
	return preserved.Decode(preserved.Encode(filled)) // defaults are Go values
}
