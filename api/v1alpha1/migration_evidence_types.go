// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EvidenceSource tells how the evidence was obtained.
type EvidenceSource string

const (
	// EvidenceMigration means that a run processed every object.
	EvidenceMigration EvidenceSource = "Migration"
	// EvidenceSingleVersion means that the CustomResourceDefinition had only this version.
	EvidenceSingleVersion EvidenceSource = "SingleVersion"
	// EvidenceUnchanged means that the spec of the CustomResourceDefinition had never changed
	// when the operator first observed it, so that it never had another storage version.
	EvidenceUnchanged EvidenceSource = "DefinitionUnchanged"
)

// MigrationEvidence is the proof that every object is stored at crd.storageVersion. It holds for the
// CustomResourceDefinition that crd describes, as long as that is the storage version,
// status.storedVersions lists no other, and the operator has observed every change: if it misses a
// generation, the storage version may have changed and changed back.
type MigrationEvidence struct {
	// source tells how the evidence was obtained: Migration, SingleVersion or
	// DefinitionUnchanged.
	// +required
	Source EvidenceSource `json:"source"`
	// time is when the evidence was obtained.
	// +required
	Time metav1.Time `json:"time"`
}
