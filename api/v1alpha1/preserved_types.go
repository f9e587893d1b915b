// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PreservedDataStatus counts the objects that have preserved values in annotations: values
// that only versions other than the storage version can express.
type PreservedDataStatus struct {
	// complete tells whether all objects of the kind were read, as by a migration and before the
	// removal of a version. Otherwise these were the first of a list, at most 5000.
	// +required
	Complete bool `json:"complete"`
	// ruleset is the hash of the ruleset at the time of the count. If revision is another one, rules
	// or schemas have changed since.
	// +optional
	Ruleset string `json:"ruleset,omitempty"`
	// time is when the count began. Later writes may be missing from it.
	// +required
	Time metav1.Time `json:"time"`
	// versions lists the versions whose values are preserved.
	// +optional
	// +listType=map
	// +listMapKey=version
	// +kubebuilder:validation:MaxItems=32
	Versions []PreservedVersion `json:"versions,omitempty"`
}

// Outdated reports that rules or schemas have changed since the count, by the current revision.
func (s *PreservedDataStatus) Outdated(revision string) bool { return s.Ruleset != revision }

// PreservedVersion counts the objects with preserved values of one version.
type PreservedVersion struct {
	// version is the version whose values are preserved.
	// +required
	Version string `json:"version"`
	// objects is the number of objects with such values.
	// +required
	Objects int64 `json:"objects"`
	// unreadable is the number of objects whose annotation the operator cannot read, in
	// whole or in part. The operator does not change it.
	// +optional
	Unreadable int64 `json:"unreadable,omitempty"`
	// fields lists the twenty most frequent fields.
	// +optional
	// +listType=map
	// +listMapKey=path
	// +kubebuilder:validation:MaxItems=20
	Fields []PreservedField `json:"fields,omitempty"`
	// moreFields tells whether there are others.
	// +optional
	MoreFields bool `json:"moreFields,omitempty"`
}

// PreservedField counts the objects with a preserved value of one field.
type PreservedField struct {
	// path is the path of the field; [*] stands for all elements of a list or map.
	// +required
	Path string `json:"path"`
	// objects is the number of objects with a preserved value of it.
	// +required
	Objects int64 `json:"objects"`
}
