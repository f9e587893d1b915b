// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PreservedDataSource says what counted preserved data.
//
// +kubebuilder:validation:Enum=Migration;Sample;Retirement
type PreservedDataSource string

const (
	// PreservedDataByMigration means that a migration run counted it in the objects that it wrote.
	PreservedDataByMigration PreservedDataSource = "Migration"
	// PreservedDataBySample means that it was counted in the first objects of a list, at most 5000.
	PreservedDataBySample PreservedDataSource = "Sample"
	// PreservedDataByRetirement means that it was counted before the removal of a version, which goes through all objects.
	PreservedDataByRetirement PreservedDataSource = "Retirement"
)

// PreservedDataStatus counts the objects that hold, in annotations, values of
// versions that can express more than the version in which they are stored.
type PreservedDataStatus struct {
	// objects is the number of objects that hold preserved data.
	// +required
	Objects int64 `json:"objects"`
	// bytes is the size of all those annotations together, without their names.
	// +required
	Bytes int64 `json:"bytes"`
	// largestObject is the object that holds most, as namespace/name.
	// +optional
	LargestObject string `json:"largestObject,omitempty"`
	// largestBytes is how much that object holds. The API server limits all
	// annotations of an object together to 262144 bytes.
	// +optional
	LargestBytes int64 `json:"largestBytes,omitempty"`
	// seen is the number of objects that were looked at.
	// +required
	Seen int64 `json:"seen"`
	// complete tells that those were all objects of the kind.
	// +required
	Complete bool `json:"complete"`
	// outdated tells that rules or schemas have changed since.
	// +optional
	Outdated bool `json:"outdated,omitempty"`
	// source is what counted it.
	// +required
	Source PreservedDataSource `json:"source"`
	// run is the migration run that counted it, if one did.
	// +optional
	Run string `json:"run,omitempty"`
	// ruleset is the hash of the rules by which it was counted.
	// +optional
	Ruleset string `json:"ruleset,omitempty"`
	// time at which the count began. What was written since may not be in it.
	// +required
	Time metav1.Time `json:"time"`
	// versions are those whose values are preserved.
	// +optional
	// +listType=map
	// +listMapKey=version
	// +kubebuilder:validation:MaxItems=32
	Versions []PreservedVersion `json:"versions,omitempty"`
}

// PreservedVersion counts the objects that hold values of one version.
type PreservedVersion struct {
	// version whose values are preserved.
	// +required
	Version string `json:"version"`
	// objects is the number of objects that hold some.
	// +required
	Objects int64 `json:"objects"`
	// bytes is the size of their annotations for this version.
	// +required
	Bytes int64 `json:"bytes"`
	// unreadable is the number of objects whose annotation, or a part of it, is no
	// text that the operator can read. The operator does not change it.
	// +optional
	Unreadable int64 `json:"unreadable,omitempty"`
	// fields are the first twenty fields that most objects hold.
	// +optional
	// +listType=map
	// +listMapKey=path
	// +kubebuilder:validation:MaxItems=20
	Fields []PreservedField `json:"fields,omitempty"`
	// moreFields tells that there are others.
	// +optional
	MoreFields bool `json:"moreFields,omitempty"`
	// withPlace is the number of fields that have a place in the storage version now.
	// A migration makes data of their values.
	// +optional
	WithPlace int32 `json:"withPlace,omitempty"`
}

// PreservedField counts the objects that hold a value of one field.
type PreservedField struct {
	// path of the field; [*] stands for all elements of a list or map.
	// +required
	Path string `json:"path"`
	// objects is the number of objects that hold a value of it.
	// +required
	Objects int64 `json:"objects"`
	// hasPlace tells that the field has a place in the storage version now.
	// +optional
	HasPlace bool `json:"hasPlace,omitempty"`
}
