// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	definitions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	installed "github.com/conversion-operator/conversion-operator/config/crd"
	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
)

// ReadPolicy reads a ConversionPolicy from JSON like an API server, with defaults
// filled in. The errors are those for which kubectl apply would refuse it, including
// unknown fields.
func ReadPolicy(ctx context.Context, text []byte) (*v1alpha1.ConversionPolicy, []RuleError, error) {
	schema, err := policyVersion()
	if err != nil {
		return nil, nil, err
	}
	created, unknown, err := schema.create(text)
	if err != nil {
		return nil, nil, err
	}
	var errs []RuleError
	for _, d := range unknown {
		message := "a ConversionPolicy has no such field: correct the name, or remove it"
		if d.Before == "null" {
			message = "it has no value: give it one, or remove it"
		}
		errs = append(errs, RuleError{d.Path[1:], message})
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

// PolicyDefinition returns the installed CustomResourceDefinition of ConversionPolicy, which is costly to read. Callers
// share it, and do not change it.
var PolicyDefinition = sync.OnceValues(func() (*apiextensionsv1.CustomResourceDefinition, error) {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	return definition, yaml.Unmarshal(installed.ConversionPolicies, definition)
})

// policyVersion is its version, for validation.
var policyVersion = sync.OnceValues(func() (*version, error) {
	definition, err := PolicyDefinition()
	if err != nil {
		return nil, err
	}
	return newVersion(&definition.Spec.Versions[0])
})

// ReadDefinition reads a CustomResourceDefinition, and checks that its required fields are set.
// Errors name the object.
func ReadDefinition(object manifest.Object) (*apiextensionsv1.CustomResourceDefinition, error) {
	if object.APIVersion != apiextensionsv1.SchemeGroupVersion.String() {
		return nil, fmt.Errorf("%s: apiVersion is %s, only %s is read: write it in that version", object, object.APIVersion, apiextensionsv1.SchemeGroupVersion)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(object.JSON, crd); err != nil {
		return nil, fmt.Errorf("%s: %w", object, err)
	}
	for _, required := range []struct{ path, value string }{
		{"spec.group", crd.Spec.Group}, {"spec.names.kind", crd.Spec.Names.Kind}, {"spec.names.plural", crd.Spec.Names.Plural},
	} {
		if required.value == "" {
			return nil, fmt.Errorf("%s: %s is empty: set it", object, required.path)
		}
	}
	return crd, nil
}

// ValidateDefinition returns the errors for which an API server would refuse to create a CustomResourceDefinition.
func ValidateDefinition(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) ([]RuleError, error) {
	created := crd.DeepCopy()
	apiextensionsv1.SetDefaults_CustomResourceDefinition(created)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&created.Spec)
	created.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
	for _, version := range created.Spec.Versions {
		if version.Storage {
			created.Status.StoredVersions = append(created.Status.StoredVersions, version.Name)
		}
	}
	internal := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(created, internal, nil); err != nil {
		return nil, err
	}
	var errs []RuleError
	for _, err := range definitions.ValidateCustomResourceDefinition(ctx, internal) {
		errs = append(errs, RuleError{err.Field, err.ErrorBody()})
	}
	return errs, nil
}
