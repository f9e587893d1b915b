// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// MigrationMode says what starts a migration.
//
// +kubebuilder:validation:Enum=Automatic;OnTrigger;Never
type MigrationMode string

const (
	// MigrationAutomatic migrates whenever objects may be stored in another version than the storage version.
	MigrationAutomatic MigrationMode = "Automatic"
	// MigrationOnTrigger migrates when spec.migration.trigger changes.
	MigrationOnTrigger MigrationMode = "OnTrigger"
	// MigrationNever leaves stored objects alone.
	MigrationNever MigrationMode = "Never"
)

// Migration says when stored objects are rewritten in the storage version.
type Migration struct {
	// mode says what starts a migration: Automatic whenever objects may be
	// stored in another version than the storage version, OnTrigger when
	// trigger changes, or Never.
	// +optional
	// +kubebuilder:default=Automatic
	Mode MigrationMode `json:"mode,omitempty"`

	// trigger is any text; a change starts a run, also in mode Automatic, where
	// it retries a run in which objects failed.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Trigger string `json:"trigger,omitempty"`
}

// MigrationState is the state of a migration run.
//
// +kubebuilder:validation:Enum=Running;Succeeded;Failed;Superseded
type MigrationState string

const (
	// MigrationRunning means that the run goes on.
	MigrationRunning MigrationState = "Running"
	// MigrationSucceeded means that every object is stored in the storage version.
	MigrationSucceeded MigrationState = "Succeeded"
	// MigrationFailed means that some objects could not be rewritten, or the run could not go on.
	MigrationFailed MigrationState = "Failed"
	// MigrationSuperseded means that the CustomResourceDefinition changed under the run, which proves nothing any more.
	MigrationSuperseded MigrationState = "Superseded"
)

// MigrationStatus is the latest migration run.
type MigrationStatus struct {
	// run identifies the run: a hash of what it is pinned to.
	// +required
	Run string `json:"run"`
	// state of the run.
	// +required
	State MigrationState `json:"state"`
	// trigger is the spec.migration.trigger that the run answers.
	// +optional
	Trigger string `json:"trigger,omitempty"`
	// storageVersion that the run writes.
	// +required
	StorageVersion string `json:"storageVersion"`
	// crdUID is the CustomResourceDefinition that the run is pinned to.
	// +required
	CRDUID types.UID `json:"crdUID"`
	// crdGeneration is the generation of the CustomResourceDefinition that the run is pinned to.
	// +required
	CRDGeneration int64 `json:"crdGeneration"`
	// total is the number of objects found.
	// +required
	Total int64 `json:"total"`
	// rewritten objects had other bytes in etcd before.
	// +required
	Rewritten int64 `json:"rewritten"`
	// current objects were already stored in the storage version.
	// +required
	Current int64 `json:"current"`
	// gone objects were deleted meanwhile.
	// +required
	Gone int64 `json:"gone"`
	// failed objects could not be rewritten.
	// +required
	Failed int64 `json:"failed"`
	// progress is the objects done and found as text: "1200/5000".
	// +optional
	Progress string `json:"progress,omitempty"`
	// failures are the first ten objects that failed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Failures []MigrationFailure `json:"failures,omitempty"`
	// message says why the run could not go on.
	// +optional
	Message string `json:"message,omitempty"`
	// startTime of the run.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// completionTime of the run.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
}

// MigrationFailure is one object that could not be rewritten.
type MigrationFailure struct {
	// object is its name, or namespace/name.
	// +required
	Object string `json:"object"`
	// message is the API server's answer.
	// +required
	Message string `json:"message"`
}

// EvidenceSource says how the evidence was obtained.
//
// +kubebuilder:validation:Enum=Migration;SingleVersion
type EvidenceSource string

const (
	// EvidenceMigration means that a run rewrote or found current every object.
	EvidenceMigration EvidenceSource = "Migration"
	// EvidenceSingleVersion means that the CustomResourceDefinition had this one version only.
	EvidenceSingleVersion EvidenceSource = "SingleVersion"
)

// StorageEvidence is the proof that every stored object is in one version. It
// holds as long as the CustomResourceDefinition keeps that storage version and
// lists no other stored version, and the operator has seen each of its changes.
type StorageEvidence struct {
	// crdUID is the CustomResourceDefinition that it speaks of.
	// +required
	CRDUID types.UID `json:"crdUID"`
	// crdGeneration is the generation up to which it holds. It follows the
	// CustomResourceDefinition step by step: whoever misses a step cannot know
	// that the storage version did not move there and back.
	// +required
	CRDGeneration int64 `json:"crdGeneration"`
	// storageVersion is the version of every stored object.
	// +required
	StorageVersion string `json:"storageVersion"`
	// source is how it was obtained.
	// +required
	Source EvidenceSource `json:"source"`
	// run is the migration that proved it.
	// +optional
	Run string `json:"run,omitempty"`
	// objects is the number of objects seen by that run.
	// +optional
	Objects int64 `json:"objects,omitempty"`
	// time at which it was obtained.
	// +required
	Time metav1.Time `json:"time"`
}
