// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"bytes"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Paths in metadata.managedFields.
var (
	conversionPath     = fieldpath.MakePathOrDie("spec", "conversion")
	versionsPath       = fieldpath.MakePathOrDie("spec", "versions")
	storedVersionsPath = fieldpath.MakePathOrDie("status", "storedVersions")
	// expectedPaths are the optional fields of a converter behind a Service.
	expectedPaths = []fieldpath.Path{
		fieldpath.MakePathOrDie("spec", "conversion", "webhook", "clientConfig", "caBundle"),
		fieldpath.MakePathOrDie("spec", "conversion", "webhook", "clientConfig", "service", "path"),
	}
)

// ConversionIsBy reports whether this field manager applied every field of spec.conversion, which is that
// of a CustomResourceDefinition or of an XRD, and no other manager changed or removed one since. The API server updates metadata.managedFields in the
// same write as the fields. An update under the manager's name is not its own write, because the
// operator only applies.
//
// A removed field has no owner. For a converter behind a Service, the fields that may be removed,
// path and caBundle, must therefore be owned too.
func ConversionIsBy(of metav1.Object, conversion *apiextensionsv1.CustomResourceConversion, manager string) bool {
	owned := &fieldpath.Set{}
	for _, entry := range of.GetManagedFields() {
		if entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply {
			owned = owned.Union(ownedBy(entry))
		}
	}
	expected := append(presentFields(conversion), fieldpath.MakePathOrDie("spec", "conversion", "strategy"))
	if conversion != nil && conversion.Webhook != nil && conversion.Webhook.ClientConfig != nil && conversion.Webhook.ClientConfig.Service != nil {
		expected = append(expected, expectedPaths...)
	}
	return !slices.ContainsFunc(expected, func(path fieldpath.Path) bool { return !owned.Has(path) })
}

// ConversionWriter returns the field manager that last wrote a field of spec.conversion, except by
// an apply of other. It is empty if there is none, or if the last manager only removed a field.
func ConversionWriter(of metav1.Object, conversion *apiextensionsv1.CustomResourceConversion, other string) string {
	present := presentFields(conversion)
	return lastManager(of.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		// A manager that lost all fields may still own the objects around them.
		applied := entry.Manager == other && entry.Operation == metav1.ManagedFieldsOperationApply
		return !applied && slices.ContainsFunc(present, ownedBy(entry).Has)
	})
}

// FieldManager describes a field manager in metadata.managedFields, as messages name it.
func FieldManager(name string, operation metav1.ManagedFieldsOperationType, subresource string) string {
	if subresource != "" {
		return fmt.Sprintf("%s (%s of %s)", name, operation, subresource)
	}
	return fmt.Sprintf("%s (%s)", name, operation)
}

// lastManager returns the field manager of the latest entry for which counts is true, or an empty
// string.
func lastManager(entries []metav1.ManagedFieldsEntry, counts func(metav1.ManagedFieldsEntry) bool) string {
	writer, latest := "", metav1.Time{}
	for _, entry := range entries {
		if !counts(entry) {
			continue
		}
		written := metav1.Time{}
		if entry.Time != nil {
			written = *entry.Time
		}
		if !written.Time.Before(latest.Time) {
			writer, latest = entry.Manager, written
		}
	}
	return writer
}

// ownedBy returns the fields that an entry owns by writes of the object itself.
func ownedBy(entry metav1.ManagedFieldsEntry) *fieldpath.Set {
	if entry.Subresource != "" {
		return &fieldpath.Set{}
	}
	return fieldsOf(entry)
}

// fieldsOf returns the fields that an entry owns.
func fieldsOf(entry metav1.ManagedFieldsEntry) *fieldpath.Set {
	owned := &fieldpath.Set{}
	if entry.FieldsV1 == nil || owned.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())) != nil {
		return &fieldpath.Set{}
	}
	return owned
}

// presentFields returns the paths of all leaf fields of a conversion.
func presentFields(conversion *apiextensionsv1.CustomResourceConversion) []fieldpath.Path {
	if conversion == nil {
		return nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(conversion)
	if err != nil {
		return nil // impossible: the conversion comes from JSON
	}
	return leafFields(content, conversionPath)
}

// leafFields returns the paths of all values without fields of their own.
func leafFields(content map[string]any, parent fieldpath.Path) []fieldpath.Path {
	var paths []fieldpath.Path
	for name, value := range content {
		path := append(slices.Clip(parent), fieldpath.FieldNameElement(name))
		if below, isMap := value.(map[string]any); isMap && len(below) > 0 {
			paths = append(paths, leafFields(below, path)...)
		} else {
			paths = append(paths, path)
		}
	}
	return paths
}

// StoredVersionsWriter returns the field manager that last wrote status.storedVersions, or an
// empty string if metadata.managedFields does not name one.
func StoredVersionsWriter(crd *apiextensionsv1.CustomResourceDefinition) string {
	return lastManager(crd.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool { return fieldsOf(entry).Has(storedVersionsPath) })
}
