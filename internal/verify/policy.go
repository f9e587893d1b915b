// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"encoding/json"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/config/crd"
)

// ReadPolicy reads a ConversionPolicy from JSON like an API server, with defaults
// filled in. The errors are those for which kubectl apply would refuse it, including
// unknown fields.
func ReadPolicy(ctx context.Context, text []byte) (*v1alpha1.ConversionPolicy, []RuleError, error) {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(crd.ConversionPolicies, definition); err != nil {
		return nil, nil, err
	}
	schema, err := newVersion(&definition.Spec.Versions[0])
	if err != nil {
		return nil, nil, err
	}
	created, unknown, err := schema.create(text)
	if err != nil {
		return nil, nil, err
	}
	var errs []RuleError
	for _, d := range unknown {
		errs = append(errs, RuleError{d.Path[1:], "a ConversionPolicy has no such field: correct the name, or remove it"})
	}
	for _, err := range schema.validate(ctx, created) {
		errs = append(errs, RuleError{err.Field, err.ErrorBody()})
	}
	if len(errs) > 0 {
		return nil, errs, nil
	}
	policy := &v1alpha1.ConversionPolicy{}
	return policy, nil, json.Unmarshal(created.text, policy)
}
