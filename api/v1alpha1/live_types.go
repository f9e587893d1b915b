// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	// Shortened, or Other. There may be more in later versions.
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
