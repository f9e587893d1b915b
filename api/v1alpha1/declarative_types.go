// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// DeclarativeConverter is a star of two-way rules: every version converts to
// and from the hub. A version of the CustomResourceDefinition that is neither
// hub nor spoke converts by preservation alone: same path and type on both
// sides is copied, the rest is preserved.
//
// +kubebuilder:validation:XValidation:rule="self.spokes.all(s, s.version != self.hub)",message="a spoke's version must differ from the hub: rules convert between a spoke and the hub"
type DeclarativeConverter struct {
	// hub is the version that all others convert to and from.
	// +required
	Hub VersionName `json:"hub"`

	// require is the least that every conversion must keep. A policy whose rules
	// and schemas give less is not valid, and changes nothing. Exact: every field
	// has a place in the other version, and only single values that a rule cannot
	// express are preserved. Preserved: nothing is dropped. Lossy: anything.
	// +optional
	// +kubebuilder:default=Lossy
	// +kubebuilder:validation:Enum=Exact;Preserved;Lossy
	Require Fidelity `json:"require,omitempty"`

	// overflow says what becomes of an object whose annotations, with what is
	// preserved, would exceed the 256 KiB that the API server allows. Fail
	// refuses to convert it, and nothing is lost. Drop gives up the largest of the
	// kept values until the rest fits, and names them in the annotation.
	// +optional
	// +kubebuilder:default=Fail
	Overflow OverflowAction `json:"overflow,omitempty"`

	// preservedStatus says whether fields below status may be preserved. They are
	// preserved in an annotation, which every client that may write objects may write, the
	// right to write their status or not. Allow preserves them, and a warning names
	// them. Refuse makes a policy invalid that would preserve one, or single values
	// of one, and it changes nothing: every field below status then has a place in
	// the other version, or a rule drops it. It says nothing of other fields, as
	// require does, because it is about rights and not about fidelity.
	// +optional
	// +kubebuilder:default=Allow
	PreservedStatus PreservedStatusAction `json:"preservedStatus,omitempty"`

	// spokes are the other versions, each with its rules.
	// +required
	// +listType=map
	// +listMapKey=version
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Spokes []Spoke `json:"spokes"`
}

// OverflowAction says what becomes of an object that has more to preserve than
// its annotations may hold.
//
// +kubebuilder:validation:Enum=Fail;Drop
type OverflowAction string

const (
	// OverflowFail refuses to convert the object.
	OverflowFail OverflowAction = "Fail"
	// OverflowDrop gives the largest kept values up.
	OverflowDrop OverflowAction = "Drop"
)

// PreservedStatusAction says whether fields below status may be preserved.
//
// +kubebuilder:validation:Enum=Allow;Refuse
type PreservedStatusAction string

const (
	// PreservedStatusAllow preserves them, and warns of it.
	PreservedStatusAllow PreservedStatusAction = "Allow"
	// PreservedStatusRefuse makes a policy invalid that would preserve them.
	PreservedStatusRefuse PreservedStatusAction = "Refuse"
)

// Spoke is one version and the rules between it and the hub.
type Spoke struct {
	// version is the version that these rules convert to and from the hub.
	// +required
	Version VersionName `json:"version"`

	// rules are written from the spoke to the hub; the way back is derived.
	// A field that no rule names is copied where both versions have it, and
	// otherwise preserved in an annotation until the object comes back.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Rules []Rule `json:"rules,omitempty"`
}

// Fidelity says what one direction of a conversion does to an object.
//
// +kubebuilder:validation:Enum=Exact;Preserved;Lossy
type Fidelity string

const (
	// FidelityExact means that every field has a place in the other version.
	FidelityExact Fidelity = "Exact"
	// FidelityPreserved means that some fields have none and are preserved.
	FidelityPreserved Fidelity = "Preserved"
	// FidelityLossy means that some fields are dropped, as the policy says.
	FidelityLossy Fidelity = "Lossy"
)

// Verdict says what the conversion between a spoke and the hub keeps.
type Verdict struct {
	// version is the spoke.
	// +required
	Version string `json:"version"`
	// toHub is the fidelity from the spoke to the hub.
	// +required
	ToHub Fidelity `json:"toHub"`
	// fromHub is the fidelity from the hub to the spoke.
	// +required
	FromHub Fidelity `json:"fromHub"`
	// preserved are the first 20 paths that one side lacks, as `<version>:<path>`.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Preserved []string `json:"preserved,omitempty"`
	// dropped are the first 20 paths that a drop rule gives up, as `<version>:<path>`.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Dropped []string `json:"dropped,omitempty"`
}
