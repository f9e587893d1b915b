// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"bytes"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Paths as metadata.managedFields has them.
var (
	conversionPath = fieldpath.MakePathOrDie("spec", "conversion")
	versionsPath   = fieldpath.MakePathOrDie("spec", "versions")
	// expectedPaths are those of a converter behind a Service that may be removed.
	expectedPaths = []fieldpath.Path{
		fieldpath.MakePathOrDie("spec", "conversion", "webhook", "clientConfig", "caBundle"),
		fieldpath.MakePathOrDie("spec", "conversion", "webhook", "clientConfig", "service", "path"),
	}
)

// ConversionIsBy reports whether this field manager applied every field of
// spec.conversion, and no other manager changed or removed one since. The API server keeps
// the account in metadata.managedFields, in the same write as the fields. An
// update under the manager's name is not its own: it only applies.
//
// A removed field has no owner. A converter behind a Service is
// therefore also asked for the two fields that may be removed: path and caBundle.
func ConversionIsBy(crd *apiextensionsv1.CustomResourceDefinition, manager string) bool {
	owned := &fieldpath.Set{}
	for _, entry := range crd.ManagedFields {
		if entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply {
			owned = owned.Union(ownedBy(entry))
		}
	}
	expected := append(presentFields(crd.Spec.Conversion), fieldpath.MakePathOrDie("spec", "conversion", "strategy"))
	conversion := crd.Spec.Conversion
	if conversion != nil && conversion.Webhook != nil && conversion.Webhook.ClientConfig != nil && conversion.Webhook.ClientConfig.Service != nil {
		expected = append(expected, expectedPaths...)
	}
	return !slices.ContainsFunc(expected, func(path fieldpath.Path) bool { return !owned.Has(path) })
}

// ConversionWriter returns the field manager that wrote a field of
// spec.conversion last, what the given one applied aside; "" where none did, or
// where all it did was to remove one.
func ConversionWriter(crd *apiextensionsv1.CustomResourceDefinition, other string) string {
	present := presentFields(crd.Spec.Conversion)
	return lastManager(crd, func(entry metav1.ManagedFieldsEntry) bool {
		// Whose fields were all taken over may still own the blocks around them.
		applied := entry.Manager == other && entry.Operation == metav1.ManagedFieldsOperationApply
		return !applied && slices.ContainsFunc(present, ownedBy(entry).Has)
	})
}

// lastManager is the field manager of the latest entry that counts; "" where none does.
func lastManager(crd *apiextensionsv1.CustomResourceDefinition, counts func(metav1.ManagedFieldsEntry) bool) string {
	writer, latest := "", metav1.Time{}
	for _, entry := range crd.ManagedFields {
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

// ownedBy are the fields that an entry owns.
func ownedBy(entry metav1.ManagedFieldsEntry) *fieldpath.Set {
	owned := &fieldpath.Set{}
	if entry.Subresource != "" || entry.FieldsV1 == nil || owned.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())) != nil {
		return &fieldpath.Set{}
	}
	return owned
}

// presentFields are the fields that a conversion has.
func presentFields(conversion *apiextensionsv1.CustomResourceConversion) []fieldpath.Path {
	if conversion == nil {
		return nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(conversion)
	if err != nil {
		return nil // cannot be: it came out of JSON
	}
	return leafFields(content, conversionPath)
}

// leafFields are the paths to all that has no fields of its own.
func leafFields(content map[string]any, at fieldpath.Path) []fieldpath.Path {
	var paths []fieldpath.Path
	for name, value := range content {
		path := append(slices.Clip(at), fieldpath.FieldNameElement(name))
		if below, isMap := value.(map[string]any); isMap && len(below) > 0 {
			paths = append(paths, leafFields(below, path)...)
		} else {
			paths = append(paths, path)
		}
	}
	return paths
}
