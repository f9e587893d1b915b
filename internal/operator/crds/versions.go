// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiversion "k8s.io/apimachinery/pkg/version"
)

// Version returns the version of this name and its index in spec.versions, or nil and -1.
func Version(crd *apiextensionsv1.CustomResourceDefinition, name string) (*apiextensionsv1.CustomResourceDefinitionVersion, int) {
	for i := range crd.Spec.Versions {
		if crd.Spec.Versions[i].Name == name {
			return &crd.Spec.Versions[i], i
		}
	}
	return nil, -1
}

// ByPriority returns the versions in the order in which clients prefer them:
// v2, v1, v1beta1, v1alpha1, as k8s.io/apimachinery/pkg/version compares them.
func ByPriority(crd *apiextensionsv1.CustomResourceDefinition) []apiextensionsv1.CustomResourceDefinitionVersion {
	return slices.SortedFunc(slices.Values(crd.Spec.Versions), func(a, b apiextensionsv1.CustomResourceDefinitionVersion) int {
		return apiversion.CompareKubeAwareVersionStrings(b.Name, a.Name)
	})
}

// VersionsAreBy reports whether this field manager was the last to change spec.versions. The list
// is atomic: a manager that changes anything in it owns all of it.
func VersionsAreBy(crd *apiextensionsv1.CustomResourceDefinition, manager string) bool {
	return slices.ContainsFunc(crd.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == manager && ownedBy(entry).Has(versionsPath)
	})
}

// VersionsWriter returns the field manager other than the given one that last wrote spec.versions,
// or an empty string.
func VersionsWriter(crd *apiextensionsv1.CustomResourceDefinition, other string) string {
	return lastManager(crd.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager != other && ownedBy(entry).Has(versionsPath)
	})
}
