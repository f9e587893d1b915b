// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OversizedStatus is what is known of objects that have no whole form at a version:
// they hold more for another one than their annotations have room for.
type OversizedStatus struct {
	// objects is how many are known of, at least.
	// +required
	Objects int64 `json:"objects"`
	// checkedTime is when the operator has last looked for such objects by itself, and read
	// those again that it knew of; absent before the first time. It does so when samples
	// are taken again, every 15 minutes while there are such objects.
	// +optional
	CheckedTime *metav1.Time `json:"checkedTime,omitempty"`
	// examples are the first of them, by name.
	// +optional
	// +listType=map
	// +listMapKey=object
	// +listMapKey=version
	// +kubebuilder:validation:MaxItems=20
	Examples []OversizedObject `json:"examples,omitempty"`
}

// OversizedObject is an object that is read in a truncated form at a version.
type OversizedObject struct {
	// object is its name, or namespace/name.
	// +required
	// +kubebuilder:validation:MaxLength=512
	Object string `json:"object"`
	// version is the one at which it is truncated, and at which writes of it are refused.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Version string `json:"version"`
	// fieldsOf is the version that has the fields for which there is no room.
	// +required
	// +kubebuilder:validation:MaxLength=63
	FieldsOf string `json:"fieldsOf"`
	// fields are the first of those fields, as in a rule.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:items:MaxLength=256
	Fields []string `json:"fields,omitempty"`
	// bytes is what the annotation would take that preserves them. All annotations of an
	// object together may take 262144.
	// +required
	Bytes int64 `json:"bytes"`
	// lastTime is when it was seen last, to within an hour.
	// +required
	LastTime metav1.Time `json:"lastTime"`
}

// ConversionFailure is a kind of conversion that fails in production. It is removed
// once no such conversion has failed for a while, ten minutes by default.
type ConversionFailure struct {
	// from is the version that the objects were at; "other" is one that the converter
	// has no rules for.
	// +required
	// +kubebuilder:validation:MaxLength=63
	From string `json:"from"`
	// to is the version that they were to be converted to, or "other".
	// +required
	// +kubebuilder:validation:MaxLength=63
	To string `json:"to"`
	// cause is why, in one word: AnnotationsTooLarge, InvalidJSON, Panic, TooSlow,
	// UnknownVersion, WrongKind, OverBudget,
	// Truncated, or Other. There may be more in later versions.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Cause string `json:"cause"`
	// count is how many conversions have failed like that in the present converter
	// pods since those were started. It is updated every few minutes at most, as
	// lastTime is.
	// +required
	Count int64 `json:"count"`
	// lastTime is when one failed last, to within a few minutes.
	// +required
	LastTime metav1.Time `json:"lastTime"`
	// object is an example, as its name, or namespace/name; absent where none of the
	// objects had a name.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Object string `json:"object,omitempty"`
	// message is what was said of that object.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}
