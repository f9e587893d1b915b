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
	return lastManager(crd, ownsStoredVersions)
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
