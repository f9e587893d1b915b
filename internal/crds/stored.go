// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"encoding/json"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StoredVersionsWriter returns the field manager that wrote status.storedVersions
// last; "" where metadata.managedFields does not tell.
func StoredVersionsWriter(crd *apiextensionsv1.CustomResourceDefinition) string {
	writer, latest := "", metav1.Time{}
	for _, entry := range crd.ManagedFields {
		if !ownsStoredVersions(entry) {
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

func ownsStoredVersions(entry metav1.ManagedFieldsEntry) bool {
	var owned struct {
		Status map[string]json.RawMessage `json:"f:status"`
	}
	if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned) != nil {
		return false
	}
	_, owns := owned.Status["f:storedVersions"]
	return owns
}
