// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// InjectorAnnotations make an injector write caBundle: cert-manager's cainjector, the ca-injector of
// Gardener's cert-management, or OpenShift's service-ca.
var InjectorAnnotations = []string{
	"cert-manager.io/inject-ca-from",
	"cert-manager.io/inject-ca-from-secret",
	"cert-manager.io/inject-apiserver-ca",
	"cert.gardener.cloud/inject-ca-from",
	"cert.gardener.cloud/inject-ca-from-secret",
	"service.beta.openshift.io/inject-cabundle",
}

// StorageVersion returns the name of the version in which objects are written. The API server
// ensures that there is exactly one.
func StorageVersion(crd *apiextensionsv1.CustomResourceDefinition) string {
	for _, version := range crd.Spec.Versions {
		if version.Storage {
			return version.Name
		}
	}
	return ""
}

// ServedVersions returns the names of the served versions, in the CustomResourceDefinition's order.
func ServedVersions(crd *apiextensionsv1.CustomResourceDefinition) []string {
	var served []string
	for _, version := range crd.Spec.Versions {
		if version.Served {
			served = append(served, version.Name)
		}
	}
	return served
}

// VersionsInUse returns the names of the versions at which objects are read, written,
// or may be stored, in the CustomResourceDefinition's order.
func VersionsInUse(crd *apiextensionsv1.CustomResourceDefinition) []string {
	var names []string
	for _, version := range crd.Spec.Versions {
		if version.Served || version.Storage || slices.Contains(crd.Status.StoredVersions, version.Name) {
			names = append(names, version.Name)
		}
	}
	return names
}

// StoredOnlyIn reports whether status.storedVersions lists this version and no other.
func StoredOnlyIn(crd *apiextensionsv1.CustomResourceDefinition, version string) bool {
	return slices.Equal(crd.Status.StoredVersions, []string{version})
}

// Serves reports whether the version is served.
func Serves(crd *apiextensionsv1.CustomResourceDefinition, version string) bool {
	return slices.Contains(ServedVersions(crd), version)
}

// Resource returns the resource at one version.
func Resource(crd *apiextensionsv1.CustomResourceDefinition, version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: crd.Spec.Group, Version: version, Resource: crd.Spec.Names.Plural}
}

// Strategy returns the conversion strategy; the API server's default is None.
func Strategy(crd *apiextensionsv1.CustomResourceDefinition) apiextensionsv1.ConversionStrategyType {
	if crd.Spec.Conversion == nil {
		return apiextensionsv1.NoneConverter
	}
	return crd.Spec.Conversion.Strategy
}

// Condition reports whether a status condition is True.
func Condition(crd *apiextensionsv1.CustomResourceDefinition, kind apiextensionsv1.CustomResourceDefinitionConditionType) bool {
	return apihelpers.IsCRDConditionTrue(crd, kind)
}

// ServedSince is since when API servers serve the kind, nil if they do not.
func ServedSince(crd *apiextensionsv1.CustomResourceDefinition) *metav1.Time {
	if established := apihelpers.FindCRDCondition(crd, apiextensionsv1.Established); established != nil && established.Status == apiextensionsv1.ConditionTrue {
		return &established.LastTransitionTime
	}
	return nil
}

// Injector returns the annotation that makes an injector write caBundle, or "".
func Injector(crd *apiextensionsv1.CustomResourceDefinition) string {
	for _, annotation := range InjectorAnnotations {
		if value := crd.Annotations[annotation]; value != "" && value != "false" {
			return annotation
		}
	}
	return ""
}

// Elements returns the schema of the elements of a list or map, nil if it has none.
func Elements(of *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	switch {
	case of.Items != nil:
		return of.Items.Schema
	case of.AdditionalProperties != nil:
		return of.AdditionalProperties.Schema
	}
	return nil
}
