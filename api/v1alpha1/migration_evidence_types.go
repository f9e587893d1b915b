// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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

// MigrationEvidence is the proof that every object is stored at one version. It holds as
// long as that is the storage version, status.storedVersions lists no other, and the
// operator has observed every change of the CustomResourceDefinition.
type MigrationEvidence struct {
	// crdUID is the uid of the CustomResourceDefinition that the evidence is about.
	// +required
	CRDUID types.UID `json:"crdUID"`
	// crdGeneration is the latest generation of the CustomResourceDefinition for which the
	// evidence holds. The operator updates it at every change: if it misses one, the
	// storage version may have changed and changed back.
	// +required
	CRDGeneration int64 `json:"crdGeneration"`
	// storageVersion is the version at which every object is stored.
	// +required
	StorageVersion string `json:"storageVersion"`
	// source tells how the evidence was obtained: Migration, SingleVersion or
	// DefinitionUnchanged.
	// +required
	Source EvidenceSource `json:"source"`
	// run is the migration that produced the evidence.
	// +optional
	Run string `json:"run,omitempty"`
	// objects is the number of objects that the run processed.
	// +optional
	Objects int64 `json:"objects,omitempty"`
	// time is when the evidence was obtained.
	// +required
	Time metav1.Time `json:"time"`
}
