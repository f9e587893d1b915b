// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DriftAction tells what happens after another client changes spec.conversion.
// +kubebuilder:validation:Enum=Repair;Tolerate
type DriftAction string

const (
	// DriftRepair writes spec.conversion back, a limited number of times.
	DriftRepair DriftAction = "Repair"
	// DriftTolerate leaves the change in place, and the policy reports it.
	DriftTolerate DriftAction = "Tolerate"
)

// DriftAnswer is what the operator did about the change.
type DriftAnswer string

const (
	// DriftRepaired means that the operator writes the field back.
	DriftRepaired DriftAnswer = "Repaired"
	// DriftKept means that the field had the operator's value all the same, such as with keep-conversion.
	DriftKept DriftAnswer = "Kept"
	// DriftTolerated means that spec.drift is Tolerate: the operator wrote nothing.
	DriftTolerated DriftAnswer = "Tolerated"
	// DriftContested means that the operator has written the field back too often.
	DriftContested DriftAnswer = "Contested"
)

// DriftStatus is the latest change by another client to what this policy had written.
type DriftStatus struct {
	// lastManager is the field manager of that change, as in metadata.managedFields of the
	// CustomResourceDefinition; empty if it is unknown.
	// +optional
	LastManager string `json:"lastManager,omitempty"`
	// lastTime is when the operator noticed the change.
	// +required
	LastTime metav1.Time `json:"lastTime"`
	// crdGeneration is the generation of the CustomResourceDefinition at that time.
	// +required
	CRDGeneration int64 `json:"crdGeneration"`
	// answer is what the operator did about it: Repaired, Kept, Tolerated or Contested.
	// +required
	Answer DriftAnswer `json:"answer"`
	// repairs are the times of the latest repairs, the oldest first. After five repairs of
	// spec.conversion within ten minutes, or two of spec.versions within a day, the
	// operator makes no other until these times have passed, or until the spec of this
	// policy changes.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5
	Repairs []metav1.Time `json:"repairs,omitempty"`
}
