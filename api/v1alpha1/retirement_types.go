// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RetirementAction tells how far the operator goes with a version.
// +kubebuilder:validation:Enum=Keep;Deprecate;Unserve;Remove
type RetirementAction string

const (
	// RetirementKeep keeps the version as its author wrote it: it reverts what this policy changed.
	RetirementKeep RetirementAction = "Keep"
	// RetirementDeprecate lets the API server warn clients that use the version.
	RetirementDeprecate RetirementAction = "Deprecate"
	// RetirementUnserve also stops serving the version, after no client has requested it
	// for long enough.
	RetirementUnserve RetirementAction = "Unserve"
	// RetirementRemove also removes it from the CustomResourceDefinition.
	RetirementRemove RetirementAction = "Remove"
)

// RetirementDependents tells whether other objects that name a version keep it.
// +kubebuilder:validation:Enum=Ignore;Check
type RetirementDependents string

const (
	// DependentsIgnore stops serving and removes the version whatever names it.
	DependentsIgnore RetirementDependents = "Ignore"
	// DependentsCheck does so only if a search has just found nothing that names it.
	DependentsCheck RetirementDependents = "Check"
)

// Retirement names a version to retire.
type Retirement struct {
	// version is the name of the version in the CustomResourceDefinition.
	// +required
	Version VersionName `json:"version"`

	// action tells how far the operator goes. Each action includes the ones before it:
	// Keep keeps the version as its author wrote it; Deprecate lets the API server warn clients; Unserve sets
	// served: false and then removes the version from the managedFields of objects; Remove
	// removes the version from the CustomResourceDefinition. If you set an earlier action
	// before the version is removed, the operator reverts the later steps.
	// +optional
	// +kubebuilder:default=Keep
	Action RetirementAction `json:"action,omitempty"`

	// after is the minimum duration of each step. The operator unserves a version after it
	// has been deprecated for this time without a request, and removes it after it has
	// been unserved for this time. With 0s the operator neither waits nor checks for
	// requests.
	// +optional
	// +kubebuilder:default="168h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]{1,7}(h|m|s|ms)){1,4}$`
	// +kubebuilder:validation:XValidation:rule="duration(self) <= duration('87600h')",message="after must be 87600h (10 years) or less"
	After *metav1.Duration `json:"after,omitempty"`

	// acceptedLosses lists fields of the version whose preserved values may be lost, as
	// paths such as .spec.note. A path includes all fields below it. With the action
	// Remove, the operator permanently deletes these values from the annotations of
	// objects right before it removes the version. It does not remove the version while
	// objects have preserved values of other fields.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=1024
	// +kubebuilder:validation:items:Pattern=`^\..+$`
	AcceptedLosses []string `json:"acceptedLosses,omitempty"`

	// dependents tells whether other objects that name the version keep it, such as
	// ownerReferences and rules of webhooks: Ignore or Check. With Check, the operator
	// searches for them right before it stops serving the version, and again right before
	// it removes it. It does neither while it finds any or cannot read something. This
	// needs the component config/components/dependents, which has the rights to search.
	// Defaults to Ignore.
	// +optional
	Dependents RetirementDependents `json:"dependents,omitempty"`
}

// Requested tells whether clients use a version.
type Requested string

const (
	// RequestedYes means that a client requested it; lastRequested tells when.
	RequestedYes Requested = "Yes"
	// RequestedNo means that no API server reports a request.
	RequestedNo Requested = "No"
	// RequestedUnknown means that the operator has not checked, or cannot read the metrics
	// of API servers.
	RequestedUnknown Requested = "Unknown"
)

// VersionStatus describes a version of the CustomResourceDefinition, and whether it can be
// unserved or removed.
type VersionStatus struct {
	// name is the name of the version.
	// +required
	Name string `json:"name"`
	// requested tells whether clients use it: Yes, No or Unknown. The operator checks only
	// versions in spec.retirement.
	// +required
	Requested Requested `json:"requested"`
	// safeToUnserve tells whether you can set served: false: all objects are stored at
	// another version, and no client requested this one lately. With dependents: Check, a
	// search has also just found nothing that names it.
	// +required
	SafeToUnserve bool `json:"safeToUnserve"`
	// safeToRemove tells whether you can remove it from the CustomResourceDefinition:
	// blockedBy is empty.
	// +required
	SafeToRemove bool `json:"safeToRemove"`
	// blockedBy lists what prevents its removal, in the order in which to resolve it.
	// +optional
	// +listType=map
	// +listMapKey=reason
	// +kubebuilder:validation:MaxItems=16
	BlockedBy []VersionBlock `json:"blockedBy,omitempty"`
}

// VersionBlockReason tells why a version cannot be removed.
type VersionBlockReason string

const (
	// BlockedStorageVersion means that it is the storage version.
	BlockedStorageVersion VersionBlockReason = "StorageVersion"
	// BlockedStored means that objects may be stored at it.
	BlockedStored VersionBlockReason = "Stored"
	// BlockedNotProven means that there is no migration evidence.
	BlockedNotProven VersionBlockReason = "NotProven"
	// BlockedPreservedData means that objects have preserved values that only this version
	// can express.
	BlockedPreservedData VersionBlockReason = "PreservedData"
	// BlockedPreservedDataUnknown means that no migration has counted the objects with
	// preserved values of it.
	BlockedPreservedDataUnknown VersionBlockReason = "PreservedDataUnknown"
	// BlockedOnlyServed means that no other version is served.
	BlockedOnlyServed VersionBlockReason = "OnlyServed"
	// BlockedFeatures means that clients that name no version would lose a subresource or a
	// selectable field without it, or that API servers would refuse the CustomResourceDefinition.
	BlockedFeatures VersionBlockReason = "Features"
	// BlockedHub means that it is the hub of several other versions.
	BlockedHub VersionBlockReason = "Hub"
	// BlockedRequested means that a client requested it lately.
	BlockedRequested VersionBlockReason = "Requested"
	// BlockedServed means that it is still served.
	BlockedServed VersionBlockReason = "Served"
	// BlockedSoaking means that it has not been unserved for long enough.
	BlockedSoaking VersionBlockReason = "Soaking"
	// BlockedManagedFields means that metadata.managedFields of objects may name it.
	BlockedManagedFields VersionBlockReason = "ManagedFields"
	// BlockedDependents means that other objects name it.
	BlockedDependents VersionBlockReason = "Dependents"
	// BlockedDependentsNotSearched means that objects that name it were not searched for yet.
	BlockedDependentsNotSearched VersionBlockReason = "DependentsNotSearched"
	// BlockedDependentsUnknown means that a search could not tell whether other objects name it.
	BlockedDependentsUnknown VersionBlockReason = "DependentsUnknown"
)

// VersionBlock is something that prevents the removal of a version.
type VersionBlock struct {
	// reason tells what prevents it, such as Stored, PreservedData or Requested.
	// +required
	Reason VersionBlockReason `json:"reason"`
	// message tells what to do.
	// +required
	Message string `json:"message"`
}

// RetirementStatus tells how far the retirement of a version is. If another client reverts
// a step, that step starts again.
type RetirementStatus struct {
	// version is the name of the version.
	// +required
	Version string `json:"version"`
	// deprecatedTime is when the operator first observed that the version is deprecated.
	// +optional
	DeprecatedTime *metav1.Time `json:"deprecatedTime,omitempty"`
	// unservedTime is when the operator first observed that the version is not served.
	// +optional
	UnservedTime *metav1.Time `json:"unservedTime,omitempty"`
	// unservedHere tells whether this policy unserved the version, and so may revert it.
	// +optional
	UnservedHere bool `json:"unservedHere,omitempty"`
	// cleanedTime is when the operator verified that managedFields of no object name the
	// version.
	// +optional
	CleanedTime *metav1.Time `json:"cleanedTime,omitempty"`
	// removedTime is when the operator first observed that the CustomResourceDefinition
	// lacks the version.
	// +optional
	RemovedTime *metav1.Time `json:"removedTime,omitempty"`
	// lastRequested is the hour in which the operator last noticed a request.
	// +optional
	LastRequested *metav1.Time `json:"lastRequested,omitempty"`
	// requests has the highest number of requests that each API server has reported, by the time at
	// which it started: after a restart it counts from zero.
	// +optional
	// +kubebuilder:validation:MaxProperties=8
	Requests map[string]int64 `json:"requests,omitempty"`
}
