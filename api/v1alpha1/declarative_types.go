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

	// minimumFidelity is what every conversion must reach. If rules and schemas do not
	// reach it, the policy is invalid and changes nothing. Exact: the other version has
	// every field, and only single values that a rule cannot express are preserved.
	// Preserved: nothing is dropped. Lossy, the default: no minimum.
	// +optional
	// +kubebuilder:validation:Enum=Exact;Preserved;Lossy
	MinimumFidelity Fidelity `json:"minimumFidelity,omitempty"`

	// overflow tells what happens if the preserved data of an object exceeds the 256 KiB
	// that the API server allows for its annotations. With Fail, the default, API servers
	// refuse to store such an object, and clients read an existing one in a truncated form; if
	// the operator runs with --size-admission=false, conversions of it fail. With Drop, the
	// converter drops the largest preserved values until the rest fits, and lists them in the
	// annotation.
	// +optional
	Overflow OverflowAction `json:"overflow,omitempty"`

	// preservedStatus tells whether fields below status may be preserved in an annotation.
	// Every client that may write objects may write annotations, even if it may not write
	// their status. Allow, the default, preserves the fields, and the policy has a warning that
	// lists them. Refuse makes a policy invalid that would preserve such a field, or single
	// values of one: then the other version has every field below status, or a rule drops
	// it. Unlike minimumFidelity, this is about rights and not about fidelity, so it does not
	// affect other fields.
	// +optional
	PreservedStatus PreservedStatusAction `json:"preservedStatus,omitempty"`

	// ruleGroups are rules for a type that objects have at several paths, such as a reference.
	// A rule with use applies a group to one of these paths.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	RuleGroups []RuleGroup `json:"ruleGroups,omitempty"`

	// spokes are the other versions, each with its rules.
	// +required
	// +listType=map
	// +listMapKey=version
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Spokes []Spoke `json:"spokes"`
}

// OverflowAction tells what happens to an object whose preserved data exceeds the size of
// its annotations.
// +kubebuilder:validation:Enum=Fail;Drop
type OverflowAction string

const (
	// OverflowFail refuses to store the object.
	OverflowFail OverflowAction = "Fail"
	// OverflowDrop drops the largest preserved values.
	OverflowDrop OverflowAction = "Drop"
)

// PreservedStatusAction tells whether fields below status may be preserved.
// +kubebuilder:validation:Enum=Allow;Refuse
type PreservedStatusAction string

const (
	// PreservedStatusAllow preserves them, with a warning.
	PreservedStatusAllow PreservedStatusAction = "Allow"
	// PreservedStatusRefuse makes a policy invalid that would preserve them.
	PreservedStatusRefuse PreservedStatusAction = "Refuse"
)

// Spoke is a version, with the rules between it and the hub.
type Spoke struct {
	// version is the version that these rules convert to and from the hub.
	// +required
	Version VersionName `json:"version"`

	// rules are written from the spoke to the hub; the operator derives the other
	// direction. A field without a rule is copied if both versions have it, and otherwise
	// preserved in an annotation until the object is converted back. Together with the rules of
	// the groups that they use, there are at most 256.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Rules []Rule `json:"rules,omitempty"`
}

// MaxRules is the number of rules that a spoke may have, with those of the groups that they use.
const MaxRules = 256

// RuleGroup has a name, and rules that can be used at several paths.
type RuleGroup struct {
	// name is what rules use the group by.
	// +required
	Name RuleGroupName `json:"name"`

	// rules are like those of a spoke, with paths that begin at the object at which the group
	// is used: .host is .spec.server.host if that is .spec.server. They may use other groups. A
	// group may use itself, directly or through others, for a field in its object: the objects in
	// that field have the type of the object around them, eight levels deep.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	Rules []Rule `json:"rules"`
}

// RuleGroupName is the name of a group of rules.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$`
type RuleGroupName string

// Fidelity tells what one direction of a conversion does to an object.
type Fidelity string

const (
	// FidelityExact means that the other version has every field.
	FidelityExact Fidelity = "Exact"
	// FidelityPreserved means that the other version lacks some fields, which are
	// preserved.
	FidelityPreserved Fidelity = "Preserved"
	// FidelityLossy means that some fields are dropped, as the policy allows.
	FidelityLossy Fidelity = "Lossy"
)
