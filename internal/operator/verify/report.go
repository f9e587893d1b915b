// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
)

// ReportFormat is raised when a reader of an older Report would misread it. New
// fields do not raise it.
const ReportFormat = 1

// Outcome is the summary of a Report.
type Outcome string

// The outcomes.
const (
	// Passed means that nothing is lost, and that all objects can be converted.
	Passed Outcome = "Passed"
	// Failed means that there is a finding of severity Error.
	Failed Outcome = "Failed"
	// Invalid means that the rules do not fit the CustomResourceDefinition;
	// nothing was converted.
	Invalid Outcome = "Invalid"
)

// Report is the result for a policy. Its JSON form is stable.
type Report struct {
	// Format is ReportFormat.
	Format  int     `json:"format"`
	Outcome Outcome `json:"outcome"`
	// Policy is the name of the policy and of its CustomResourceDefinition.
	Policy string `json:"policy"`
	// Hub is the version that all others convert to and from.
	Hub string `json:"hub"`
	// Versions are those that can be converted, sorted.
	Versions []string `json:"versions"`
	// RulesetHash is the ruleset hash that converter pods report for these rules.
	RulesetHash string `json:"rulesetHash,omitempty"`

	// Errors are the reasons why the rules are not valid.
	Errors []RuleError `json:"errors,omitempty"`
	// Warnings of the compiler are about valid rules with possibly surprising results.
	Warnings []string `json:"warnings,omitempty"`
	// Leaves are all leaf fields of both versions, for each spoke.
	Leaves []Leaf `json:"leaves"`

	// ObjectsFrom describes the source of the objects.
	ObjectsFrom string `json:"objectsFrom,omitempty"`
	// Objects that were checked.
	Objects int `json:"objects"`
	// Skipped are the objects of other kinds, which were not checked.
	Skipped int `json:"skipped,omitempty"`
	// Canaries are canary objects: made up from the rules, with a value for each rule.
	// They are converted like objects, but not validated against a schema.
	Canaries int `json:"canaries"`
	// Edits are the changes that were tried: of each leaf field and list at each other version, in at
	// most ten objects, and the defaults of each version.
	Edits int `json:"edits,omitempty"`
	// FieldsUntried are the leaf fields that no object has.
	FieldsUntried int `json:"fieldsUntried,omitempty"`
	// Directions are all ordered pairs of versions, with the results for objects.
	Directions []Direction `json:"directions"`
	// Golden counts the conversions of a golden file that were repeated, absent without one.
	Golden *Compared `json:"golden,omitempty"`
	// PreservedFields are the fields that were preserved.
	PreservedFields []PreservedField `json:"preservedFields"`
	// Preserving are the objects that had preserved data at the start, and Preserved
	// is what happens to it when a client or a migration rewrites them.
	Preserving int         `json:"preserving,omitempty"`
	Preserved  []Preserved `json:"preserved,omitempty"`
	// Findings are sorted: errors first, then by the number of objects.
	Findings []Finding `json:"findings"`
	// MoreFindings are findings that did not fit into the list.
	MoreFindings int    `json:"moreFindings,omitempty"`
	Timing       Timing `json:"timing"`
}

// RuleError is why a policy is not valid.
type RuleError struct {
	// Path is the field of the policy.
	Path string `json:"path"`
	// Message says what is wrong, and what to do.
	Message string `json:"message"`
}

// Direction is a conversion from one version to another, and back. Every object is
// counted in exactly one of Exact, Preserved, Dropped, Lost and Failed.
type Direction struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Rules is the compiler's verdict for this direction, independent of objects.
	Rules v1alpha1.Fidelity `json:"rules"`
	// Objects that were converted.
	Objects int `json:"objects"`
	// Exact objects came back unchanged, and nothing was preserved.
	Exact int `json:"exact"`
	// Preserved objects came back unchanged, because something was preserved.
	Preserved int `json:"preserved"`
	// Dropped objects lack what a drop rule gives up, and nothing else.
	Dropped int `json:"dropped"`
	// Lost objects came back changed, or were pruned on the way.
	Lost int `json:"lost"`
	// Failed objects could not be converted, there or back.
	Failed int `json:"failed"`
	// Invalid objects do not fit the schema of To. They are also counted above.
	Invalid int `json:"invalid"`
	// PreservedBytes is the size of the annotations that preserved values of all objects,
	// names and values; MaxPreservedBytes that of the object with the most. An API
	// server allows 262144 bytes for all annotations of an object together.
	PreservedBytes    int64 `json:"preservedBytes"`
	MaxPreservedBytes int   `json:"maxPreservedBytes"`
}

// PreservedField is a field that was preserved.
type PreservedField struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Path has the format of a policy; elements of lists are [*].
	Path string `json:"path"`
	// Objects that had it. An object counts once for each element of a list.
	Objects int `json:"objects"`
	// MaxBytes is the size of its largest value.
	MaxBytes int `json:"maxBytes"`
}

// Preserved is a field of a version whose values some objects preserve in an annotation.
type Preserved struct {
	Version string `json:"version"`
	// Path has the format of a policy; elements of lists are [*].
	Path string `json:"path"`
	// Objects that preserve it. An object counts once for each element of a list.
	Objects int `json:"objects"`
	// BecomeData counts objects in which the field has a place now: the value becomes
	// data when a client rewrites the object.
	BecomeData int `json:"becomeData,omitempty"`
	// CarriedOn counts objects in which it stays in the annotation, even at its version.
	CarriedOn int `json:"carriedOn,omitempty"`
}

// Add counts the result for the field in one object.
func (p *Preserved) Add(fate preserved.Fate) {
	p.Objects++
	switch fate {
	case preserved.Data:
		p.BecomeData++
	case preserved.CarriedOn:
		p.CarriedOn++
	}
}

// Kind of a Finding.
type Kind string

// The kinds. The first five are errors, the next four warnings, and the others notes.
const (
	// NotConverted is an object that cannot be converted.
	NotConverted Kind = "NotConverted"
	// Lost is a field that comes back changed, or a preserved value that vanishes.
	Lost Kind = "Lost"
	// Pruned is a field that the target's schema does not know: the API server
	// removes it.
	Pruned Kind = "Pruned"
	// InvalidAtTarget is a field that the target's schema refuses. Clients can read
	// the object there, but not write it.
	InvalidAtTarget Kind = "Invalid"
	// NotAsRecorded is a field that a conversion gives another value than a golden file has.
	NotAsRecorded Kind = "NotAsRecorded"
	// Carried is a preserved value that stays in its annotation even at its version:
	// the rules know no place for it, or the schema does not allow it.
	Carried Kind = "CarriedOn"
	// EditDiscards is a field that is gone or changed after an edit of another one at the other
	// version, although it is not computed from that.
	EditDiscards Kind = "EditDiscards"
	// DefaultDiscards is a field that is gone or changed once the API server has filled in the defaults
	// of the other version.
	DefaultDiscards Kind = "DefaultDiscards"
	// EditUndone is a field that a client does not read as it has written it at the other version, because
	// of what is preserved.
	EditUndone Kind = "EditUndone"
	// NoValue is a field of a rule that has a value in no converted object, although objects have
	// the fields that it is computed from.
	NoValue Kind = "NoValue"
	// NoEffect is a rule whose fields no object has.
	NoEffect Kind = "NoEffect"
	// Dropped is a field that a drop rule gives up.
	Dropped Kind = "Dropped"
	// Unknown is a field of the original object that its own version's schema does
	// not know: the API server would not have stored it.
	Unknown Kind = "Unknown"
	// InvalidBefore is a field that the object's own version refuses. The object is
	// then not validated at other versions.
	InvalidBefore Kind = "InvalidBefore"
	// Unreadable is an annotation for preserved data in an unknown format.
	Unreadable Kind = "Unreadable"
	// Foreign is an annotation with preserved data of another resource, or of a
	// version that the rules do not have.
	Foreign Kind = "Foreign"
)

// IsDiscard reports whether an edit, or a default, at another version discarded the field, or was itself.
func (k Kind) IsDiscard() bool { return k == EditDiscards || k == DefaultDiscards || k == EditUndone }

// Severity of a Finding.
type Severity string

// The severities.
const (
	// SeverityError makes the outcome Failed.
	SeverityError Severity = "Error"
	// SeverityWarning does not, but the user should act.
	SeverityWarning Severity = "Warning"
	// SeverityNote does not either.
	SeverityNote Severity = "Note"
)

// ranks order severities, the worst first.
var ranks = map[Severity]int{SeverityError: 0, SeverityWarning: 1, SeverityNote: 2}

var severities = map[Kind]Severity{
	NotConverted: SeverityError, Lost: SeverityError, Pruned: SeverityError, InvalidAtTarget: SeverityError, NotAsRecorded: SeverityError,
	Carried: SeverityWarning, EditDiscards: SeverityWarning, DefaultDiscards: SeverityWarning, EditUndone: SeverityWarning,
	NoValue: SeverityNote, NoEffect: SeverityNote,
	Dropped: SeverityNote, Unknown: SeverityNote, InvalidBefore: SeverityNote, Unreadable: SeverityNote, Foreign: SeverityNote,
}

// Finding is a problem or note about one or more objects, with the first of them as
// the example.
type Finding struct {
	Severity Severity `json:"severity"`
	Kind     Kind     `json:"kind"`
	// From and To are the versions; To is empty if the finding is about the original object.
	From string `json:"from"`
	To   string `json:"to,omitempty"`
	// Path has the format of a policy; elements of lists are [*]. It is empty if the
	// finding is about the whole object.
	Path string `json:"path,omitempty"`
	// Objects that have it. An object counts once for each element of a list.
	Objects int     `json:"objects"`
	Example Example `json:"example"`
}

// Example is an object with a Finding.
type Example struct {
	// Object is its source and name.
	Object string `json:"object"`
	// Path has the index of a list's element.
	Path string `json:"path,omitempty"`
	// Preserved is the version of a preserved value that vanishes, otherwise empty.
	Preserved string `json:"preserved,omitempty"`
	// Before and After are the values as JSON, cut to 200 bytes; absent if there is
	// no value. Before is the original value, After the returned one.
	Before *string `json:"before,omitempty"`
	After  *string `json:"after,omitempty"`
	// Fields is the number of fields that differ in this object.
	Fields int `json:"fields,omitempty"`
	// Edit is what was changed at the other version before, empty if nothing was.
	Edit string `json:"edit,omitempty"`
	// Message describes the problem if no values are compared.
	Message string `json:"message,omitempty"`
}

// Timing of the conversions only, without reading, comparing and validating.
type Timing struct {
	Conversions int `json:"conversions"`
	// MeanNanoseconds is the mean of one conversion of one object.
	MeanNanoseconds int64 `json:"meanNanoseconds"`
}
