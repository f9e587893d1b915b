// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"encoding/json"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// clientConfig is where the fields of a webhook's client configuration are.
const clientConfig = "webhook/clientConfig/"

// ConversionIsBy reports whether this field manager applied every field of
// spec.conversion, and no other manager changed or removed one since. The API server keeps
// the account in metadata.managedFields, in the same write as the fields. An
// update under the manager's name is not its own: it only applies.
//
// A removed field has no owner. A converter behind a Service is
// therefore also asked for the two fields that may be removed: path and caBundle.
func ConversionIsBy(crd *apiextensionsv1.CustomResourceDefinition, manager string) bool {
	var owned []string
	for _, entry := range crd.ManagedFields {
		if entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply {
			owned = append(owned, conversionFields(entry)...)
		}
	}
	for _, field := range append(presentFields(crd.Spec.Conversion), "strategy") {
		if !slices.Contains(owned, field) {
			return false
		}
	}
	conversion := crd.Spec.Conversion
	if conversion == nil || conversion.Webhook == nil || conversion.Webhook.ClientConfig == nil || conversion.Webhook.ClientConfig.Service == nil {
		return true
	}
	return slices.Contains(owned, clientConfig+"caBundle") && slices.Contains(owned, clientConfig+"service/path")
}

// ConversionWriter returns the field manager that wrote a field of
// spec.conversion last, what the given one applied aside; "" where none did, or
// where all it did was to remove one.
func ConversionWriter(crd *apiextensionsv1.CustomResourceDefinition, other string) string {
	present := presentFields(crd.Spec.Conversion)
	isPresent := func(field string) bool { return slices.Contains(present, field) }
	return lastManager(crd, func(entry metav1.ManagedFieldsEntry) bool {
		// Whose fields were all taken over may still own the blocks around them.
		applied := entry.Manager == other && entry.Operation == metav1.ManagedFieldsOperationApply
		return !applied && slices.ContainsFunc(conversionFields(entry), isPresent)
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

// presentFields are the fields that a conversion has, as paths below spec.conversion.
func presentFields(conversion *apiextensionsv1.CustomResourceConversion) []string {
	if conversion == nil {
		return nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(conversion)
	if err != nil {
		return nil // cannot be: it came out of JSON
	}
	return leaves(content, "", func(key string) string { return key })
}

// conversionFields are the fields of spec.conversion that an entry owns. The
// form is that of sigs.k8s.io/structured-merge-diff: "f:" before a field's
// name, "." for the object itself.
func conversionFields(entry metav1.ManagedFieldsEntry) []string {
	if entry.Subresource != "" || entry.FieldsV1 == nil {
		return nil
	}
	var owned struct {
		Spec struct {
			Conversion map[string]any `json:"f:conversion"`
		} `json:"f:spec"`
	}
	if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned) != nil {
		return nil
	}
	return leaves(owned.Spec.Conversion, "", func(key string) string {
		name, isField := strings.CutPrefix(key, "f:")
		if !isField {
			return ""
		}
		return name
	})
}

// leaves are the paths to all that has no fields of its own, joined by "/". A
// key without a name leads to none.
func leaves(content map[string]any, prefix string, name func(key string) string) []string {
	var paths []string
	for key, value := range content {
		field := name(key)
		if field == "" {
			continue
		}
		if below, isMap := value.(map[string]any); isMap && len(below) > 0 {
			paths = append(paths, leaves(below, prefix+field+"/", name)...)
		} else {
			paths = append(paths, prefix+field)
		}
	}
	return paths
}
