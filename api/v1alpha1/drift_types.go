// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DriftAction says what becomes of a foreign write to spec.conversion.
//
// +kubebuilder:validation:Enum=Repair;Report
type DriftAction string

const (
	// DriftRepair writes spec.conversion back, within a budget.
	DriftRepair DriftAction = "Repair"
	// DriftReport leaves the change in place, and reports it.
	DriftReport DriftAction = "Report"
)

// DriftAnswer is what was done about a foreign write.
//
// +kubebuilder:validation:Enum=Repaired;Reported;Contested
type DriftAnswer string

const (
	// DriftRepaired means that it was written back, or is being.
	DriftRepaired DriftAnswer = "Repaired"
	// DriftReported means that spec.drift is Report: nothing was written.
	DriftReported DriftAnswer = "Reported"
	// DriftContested means that it was written back too often already.
	DriftContested DriftAnswer = "Contested"
)

// DriftStatus is the latest foreign write to what this policy had written.
type DriftStatus struct {
	// lastManager is the field manager that wrote, as metadata.managedFields of
	// the CustomResourceDefinition has it; empty if the field manager is unknown.
	// +optional
	LastManager string `json:"lastManager,omitempty"`
	// lastTime is when the write was noticed.
	// +required
	LastTime metav1.Time `json:"lastTime"`
	// crdGeneration is the generation that the CustomResourceDefinition had by then.
	// +required
	CRDGeneration int64 `json:"crdGeneration"`
	// answer is what was done about it.
	// +required
	Answer DriftAnswer `json:"answer"`
	// repairs are the times of the latest repairs, the oldest first. If there
	// are five of spec.conversion within ten minutes, or two of spec.versions within
	// a day, there is no other until they are past, or until the spec of this policy
	// changes.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5
	Repairs []metav1.Time `json:"repairs,omitempty"`
	// policyGeneration is the generation of this policy that the repairs are counted for.
	// +required
	PolicyGeneration int64 `json:"policyGeneration"`
}
