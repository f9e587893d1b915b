// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/blang/semver/v4"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// name sets the version of the ClusterServiceVersion, and what depends on it.
func (o options) name(csv *operatorsv1alpha1.ClusterServiceVersion) error {
	if o.version != "" {
		version, err := semver.Parse(o.version)
		if err != nil {
			return fmt.Errorf("--version %q is not a version like 1.2.3: %w", o.version, err)
		}
		csv.Spec.Version.Version = version
	}
	csv.Name = packageName + ".v" + csv.Spec.Version.String()
	if o.replaces != "" {
		csv.Spec.Replaces = packageName + ".v" + o.replaces
	}
	return nil
}

// describe adds what consoles show of the kinds: descriptors of fields, and examples.
func (s *source) describe(csv *operatorsv1alpha1.ClusterServiceVersion) error {
	definitions := map[string]apiextensionsv1.CustomResourceDefinition{}
	for _, object := range newPile(s.objects).takeAll("CustomResourceDefinition") {
		definitions[object.GetName()] = convert[apiextensionsv1.CustomResourceDefinition](object)
	}
	owned := csv.Spec.CustomResourceDefinitions.Owned
	if len(owned) != len(definitions) {
		return fmt.Errorf("config has %d CustomResourceDefinitions, and the base in config/manifests owns %d", len(definitions), len(owned))
	}
	for i := range owned {
		definition, ok := definitions[owned[i].Name]
		if !ok {
			return fmt.Errorf("the base in config/manifests owns %s, which is not in config/crd", owned[i].Name)
		}
		describeKind(&owned[i], definition)
	}
	examples, err := json.MarshalIndent(s.examples, "", "  ")
	if err != nil {
		return err
	}
	csv.Annotations["alm-examples"] = string(examples)
	csv.Spec.Icon = []operatorsv1alpha1.Icon{{Data: base64.StdEncoding.EncodeToString(s.icon), MediaType: "image/svg+xml"}}
	return nil
}

// describeKind describes the fields of the storage version.
func describeKind(kind *operatorsv1alpha1.CRDDescription, definition apiextensionsv1.CustomResourceDefinition) {
	for _, version := range definition.Spec.Versions {
		if !version.Storage {
			continue
		}
		kind.Version, kind.Kind = version.Name, definition.Spec.Names.Kind
		fields := version.Schema.OpenAPIV3Schema.Properties
		for _, field := range describeFields(fields["spec"], setting) {
			kind.SpecDescriptors = append(kind.SpecDescriptors, operatorsv1alpha1.SpecDescriptor{
				Path: field.path, DisplayName: field.title, Description: field.description, XDescriptors: field.widgets})
		}
		for _, field := range describeFields(fields["status"], state) {
			kind.StatusDescriptors = append(kind.StatusDescriptors, operatorsv1alpha1.StatusDescriptor{
				Path: field.path, DisplayName: field.title, Description: field.description, XDescriptors: field.widgets})
		}
	}
}

// encodeCSV encodes the ClusterServiceVersion without its status.
func encodeCSV(csv *operatorsv1alpha1.ClusterServiceVersion) ([]byte, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(csv)
	if err != nil {
		return nil, err
	}
	delete(object, "status")
	return encode(withoutNulls(object))
}

// withoutNulls removes null timestamps, which Go's types encode.
func withoutNulls(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, field := range value {
			if field == nil {
				delete(value, key)
				continue
			}
			withoutNulls(field)
		}
	case []any:
		for _, element := range value {
			withoutNulls(element)
		}
	}
	return value
}
