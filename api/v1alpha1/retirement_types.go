// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// RetirementAction is how far the operator goes with a version.
//
// +kubebuilder:validation:Enum=Report;Deprecate;Unserve;Remove
type RetirementAction string

const (
	// RetirementReport changes nothing, and takes back what this policy had changed.
	RetirementReport RetirementAction = "Report"
	// RetirementDeprecate lets the API server warn clients that use the version.
	RetirementDeprecate RetirementAction = "Deprecate"
	// RetirementUnserve also stops serving it, once no client has requested it for long enough.
	RetirementUnserve RetirementAction = "Unserve"
	// RetirementRemove also removes it from the CustomResourceDefinition.
	RetirementRemove RetirementAction = "Remove"
)

// Retirement is a version that is to go.
type Retirement struct {
	// version of the CustomResourceDefinition.
	// +required
	Version VersionName `json:"version"`

	// action is how far the operator goes, one step after the other: Deprecate
	// lets the API server warn clients; Unserve also sets served: false, and then
	// removes the version's name from the managedFields of objects; Remove also
	// removes the version from the CustomResourceDefinition. Report changes
	// nothing. To set an earlier action takes back what this policy did beyond it,
	// until the version is removed.
	// +optional
	// +kubebuilder:default=Report
	Action RetirementAction `json:"action,omitempty"`

	// after is how long each step lasts before the next: a version is unserved
	// when it has been deprecated for this time and no client requested it
	// during that time, and it may be removed when it has been unserved for so
	// long. With 0s the operator does not wait, and does not look for requests.
	// +optional
	// +kubebuilder:default="168h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]{1,7}(h|m|s|ms)){1,4}$`
	// +kubebuilder:validation:XValidation:rule="duration(self) <= duration('87600h')",message="after must be 87600h (10 years) or less"
	After *metav1.Duration `json:"after,omitempty"`

	// acceptedLosses are the fields of the version whose values may be lost with it,
	// as paths such as .spec.note, where objects hold them in annotations because
	// the storage version has no place for them. A path stands for all that is below
	// it, too. With the action Remove, they are removed from the annotations, for
	// good, right before the version goes. As long as objects hold values of other
	// fields of the version, it is not removed.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=1024
	// +kubebuilder:validation:items:Pattern=`^\..+$`
	AcceptedLosses []string `json:"acceptedLosses,omitempty"`
}

// Requested says whether any client was seen to ask for a version.
//
// +kubebuilder:validation:Enum=Yes;No;Unknown
type Requested string

const (
	// RequestedYes means that a client requested it, latest at lastRequested.
	RequestedYes Requested = "Yes"
	// RequestedNo means that the API servers that were read report no request.
	RequestedNo Requested = "No"
	// RequestedUnknown means that the operator has not looked, or that metrics cannot be read.
	RequestedUnknown Requested = "Unknown"
)

// VersionStatus is one version of the CustomResourceDefinition, and what would
// become of objects and clients without it.
type VersionStatus struct {
	// name of the version.
	// +required
	Name string `json:"name"`
	// served tells that clients may use it.
	// +required
	Served bool `json:"served"`
	// storage tells that objects are written to etcd in it.
	// +required
	Storage bool `json:"storage"`
	// stored tells that status.storedVersions of the CustomResourceDefinition lists
	// it, so that objects may be stored in it.
	// +required
	Stored bool `json:"stored"`
	// deprecated tells that the API server warns clients that use it.
	// +required
	Deprecated bool `json:"deprecated"`
	// requested tells whether any client was seen to ask for it. It is looked at for
	// the versions of spec.retirement only.
	// +required
	Requested Requested `json:"requested"`
	// lastRequested is the hour in which the operator last noticed that a client had
	// asked for it. That is up to an hour, or the time that the operator was away,
	// after the request.
	// +optional
	LastRequested *metav1.Time `json:"lastRequested,omitempty"`
	// safeToUnserve tells that served may be set to false: objects are proven to be
	// stored in another version, and no client requested this one lately.
	// +required
	SafeToUnserve bool `json:"safeToUnserve"`
	// safeToRemove tells that it may be removed from the CustomResourceDefinition:
	// nothing of blockedBy is left.
	// +required
	SafeToRemove bool `json:"safeToRemove"`
	// blockedBy is what keeps it from being removed, in the order in which it has
	// to be seen to.
	// +optional
	// +listType=map
	// +listMapKey=reason
	// +kubebuilder:validation:MaxItems=16
	BlockedBy []VersionBlock `json:"blockedBy,omitempty"`
}

// VersionBlockReason says why a version cannot go.
//
// +kubebuilder:validation:Enum=StorageVersion;Stored;NotProven;PreservedData;PreservedDataUnknown;OnlyServed;Hub;Requested;Served;Soaking;ManagedFields
type VersionBlockReason string

const (
	// BlockedStorageVersion means that objects are written in it.
	BlockedStorageVersion VersionBlockReason = "StorageVersion"
	// BlockedStored means that objects may be stored in it.
	BlockedStored VersionBlockReason = "Stored"
	// BlockedNotProven means that there is no migration evidence of where objects are stored.
	BlockedNotProven VersionBlockReason = "NotProven"
	// BlockedPreservedData means that objects hold values of it, which cannot be read without it.
	BlockedPreservedData VersionBlockReason = "PreservedData"
	// BlockedPreservedDataUnknown means that it is not known whether objects hold values of it.
	BlockedPreservedDataUnknown VersionBlockReason = "PreservedDataUnknown"
	// BlockedOnlyServed means that clients could use no other version.
	BlockedOnlyServed VersionBlockReason = "OnlyServed"
	// BlockedHub means that several other versions convert through it.
	BlockedHub VersionBlockReason = "Hub"
	// BlockedRequested means that a client requested it a short time ago.
	BlockedRequested VersionBlockReason = "Requested"
	// BlockedServed means that clients may use it.
	BlockedServed VersionBlockReason = "Served"
	// BlockedSoaking means that it has not been unserved for long enough.
	BlockedSoaking VersionBlockReason = "Soaking"
	// BlockedManagedFields means that objects may name it in metadata.managedFields.
	BlockedManagedFields VersionBlockReason = "ManagedFields"
)

// VersionBlock is one thing that keeps a version from going.
type VersionBlock struct {
	// reason is what it is.
	// +required
	Reason VersionBlockReason `json:"reason"`
	// message is what to do about it.
	// +required
	Message string `json:"message"`
}

// RetirementStatus is how far the retirement of a version is. A step that
// another client reverts starts again.
type RetirementStatus struct {
	// version that is retired.
	// +required
	Version string `json:"version"`
	// crdUID is the CustomResourceDefinition that it is a version of.
	// +required
	CRDUID types.UID `json:"crdUID"`
	// deprecatedTime is when it was seen to be deprecated.
	// +optional
	DeprecatedTime *metav1.Time `json:"deprecatedTime,omitempty"`
	// unservedTime is when it was seen to be served no more.
	// +optional
	UnservedTime *metav1.Time `json:"unservedTime,omitempty"`
	// unservedHere tells that this policy did that, and would take it back.
	// +optional
	UnservedHere bool `json:"unservedHere,omitempty"`
	// cleanedTime is when every object was seen not to name it in managedFields.
	// +optional
	CleanedTime *metav1.Time `json:"cleanedTime,omitempty"`
	// discarded is the number of objects from whose annotations accepted losses were
	// removed, without those that a manager changed which ended before it was done.
	// +optional
	Discarded int64 `json:"discarded,omitempty"`
	// removedTime is when the CustomResourceDefinition was seen without it.
	// +optional
	RemovedTime *metav1.Time `json:"removedTime,omitempty"`
	// lastRequested is the hour in which the operator last noticed that a client had asked for it.
	// +optional
	LastRequested *metav1.Time `json:"lastRequested,omitempty"`
	// requests are what API servers have counted, of each as much as was last seen.
	// +optional
	// +listType=map
	// +listMapKey=server
	// +kubebuilder:validation:MaxItems=8
	Requests []RequestCount `json:"requests,omitempty"`
}

// RequestCount is what one API server has counted since it started.
type RequestCount struct {
	// server is when that API server started, in seconds since 1970: another start
	// counts from nothing.
	// +required
	Server string `json:"server"`
	// requests for the version.
	// +required
	Requests int64 `json:"requests"`
}

// PromotionStatus is the storage version that was reached by spec.storageVersion.
type PromotionStatus struct {
	// version that objects were seen to be written in.
	// +required
	Version string `json:"version"`
	// crdUID is the CustomResourceDefinition that it is a version of.
	// +required
	CRDUID types.UID `json:"crdUID"`
	// time at which it was first seen.
	// +required
	Time metav1.Time `json:"time"`
}

// VersionsEdit is a change of spec.versions that is about to be made.
type VersionsEdit struct {
	// hash identifies the fields that it changes, and their values.
	// +required
	Hash string `json:"hash"`
	// crdGeneration is the generation of the CustomResourceDefinition that it is to
	// change.
	// +required
	CRDGeneration int64 `json:"crdGeneration"`
}
