// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OversizedObject is an object that is read in a truncated form at a version: its preserved data is
// larger than its annotations can hold.
type OversizedObject struct {
	// object is the object as namespace/name, or as name if the kind is cluster-scoped, the
	// form of keys in client-go.
	// +required
	// +kubebuilder:validation:MaxLength=512
	Object string `json:"object"`
	// version is the version at which the object is truncated, and at which the API server
	// refuses writes of it.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Version string `json:"version"`
	// fieldsOf is the version that has the fields that do not fit.
	// +required
	// +kubebuilder:validation:MaxLength=63
	FieldsOf string `json:"fieldsOf"`
	// fields lists the first of those fields.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:items:MaxLength=256
	Fields []string `json:"fields,omitempty"`
	// bytes is the size of the annotation that would preserve them. All annotations of an
	// object together may have 262144 bytes.
	// +required
	Bytes int64 `json:"bytes"`
	// lastTime is when the operator last observed it, with a precision of one hour.
	// +required
	LastTime metav1.Time `json:"lastTime"`
}

// ConversionFailureCause tells why conversions fail.
type ConversionFailureCause string

const (
	// CauseAnnotationsTooLarge means that the preserved data of an object exceeds the room in its
	// annotations.
	CauseAnnotationsTooLarge ConversionFailureCause = "AnnotationsTooLarge"
	// CauseInvalidJSON means that an object is no valid JSON.
	CauseInvalidJSON ConversionFailureCause = "InvalidJSON"
	// CausePanic means that the converter failed because of a bug.
	CausePanic ConversionFailureCause = "Panic"
	// CauseTooSlow means that the API server abandoned the call after a long time.
	CauseTooSlow ConversionFailureCause = "TooSlow"
	// CauseUnknownVersion means that the converter has no rules for the version.
	CauseUnknownVersion ConversionFailureCause = "UnknownVersion"
	// CauseWrongKind means that an object is of another kind than the converter has rules for.
	CauseWrongKind ConversionFailureCause = "WrongKind"
	// CauseOverBudget means that the conversion takes more work than one object may.
	CauseOverBudget ConversionFailureCause = "OverBudget"
	// CauseTruncated means that the object is a truncated form, so that storing it would lose
	// data.
	CauseTruncated ConversionFailureCause = "Truncated"
	// CauseOther is any other cause.
	CauseOther ConversionFailureCause = "Other"
)

// ConversionFailure describes conversions that fail in production. It is removed after no
// such conversion has failed for a while, by default ten minutes.
type ConversionFailure struct {
	// from is the version of the objects; "other" is a version that the converter has no
	// rules for.
	// +required
	// +kubebuilder:validation:MaxLength=63
	From string `json:"from"`
	// to is the requested version, or "other".
	// +required
	// +kubebuilder:validation:MaxLength=63
	To string `json:"to"`
	// cause is the cause as one word: AnnotationsTooLarge, InvalidJSON, Panic, TooSlow,
	// UnknownVersion, WrongKind, OverBudget, Truncated, or Other. Later versions may add
	// causes.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Cause ConversionFailureCause `json:"cause"`
	// lastTime is when the last one failed, with a precision of a few minutes. How many failed is in
	// the metrics of converter pods.
	// +required
	LastTime metav1.Time `json:"lastTime"`
	// object is an example, as namespace/name, or as name if the kind is cluster-scoped; absent
	// if none of the objects had a name.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Object string `json:"object,omitempty"`
	// message is the error for that object.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}
