// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/preserved"
)

// ReportFormat is raised when a reader of an older Report would misread it. New
// fields do not raise it.
const ReportFormat = 1

// Outcome sums a Report up.
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

// Report is what was found out about a policy. Its JSON form is stable.
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
	// PlanHash is the one that converter pods report when they serve these rules.
	PlanHash string `json:"planHash,omitempty"`

	// Errors are why the rules do not fit.
	Errors []RuleError `json:"errors,omitempty"`
	// Warnings of the compiler are about what works, and may surprise.
	Warnings []string `json:"warnings,omitempty"`
	// Leaves are all fields of both versions, for each spoke.
	Leaves []Leaf `json:"leaves"`

	// ObjectsFrom says where the objects were read.
	ObjectsFrom string `json:"objectsFrom,omitempty"`
	// Objects that were checked.
	Objects int `json:"objects"`
	// Skipped are the objects of other kinds, which were not looked at.
	Skipped int `json:"skipped,omitempty"`
	// Canaries are made up from the rules, with a value wherever a rule does
	// something. They are converted like objects, but held against no schema.
	Canaries int `json:"canaries"`
	// Directions are all ordered pairs of versions, and what became of objects there.
	Directions []Direction `json:"directions"`
	// Kept are the fields that were preserved.
	Kept []Kept `json:"kept"`
	// Preserving are the objects that had preserved data as they were given, and
	// Preserved is what becomes of it when they are rewritten, as a migration does.
	Preserving int         `json:"preserving,omitempty"`
	Preserved  []Preserved `json:"preserved,omitempty"`
	// Findings are the errors first, then by how many objects they are about.
	Findings []Finding `json:"findings"`
	// MoreFindings were made, of other kinds or at other fields, when the list was full.
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

// Direction is the way of objects from one version to another, and back. Every
// object is counted once in exactly one of Exact, Kept, Dropped, Lost and Failed.
type Direction struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Rules is what the compiler says of this direction, whatever the objects.
	Rules v1alpha1.Fidelity `json:"rules"`
	// Objects that went this way.
	Objects int `json:"objects"`
	// Exact came back as they were, and nothing was preserved.
	Exact int `json:"exact"`
	// Kept came back as they were, because something was preserved.
	Kept int `json:"kept"`
	// Dropped lack what a drop rule gives up, and nothing else.
	Dropped int `json:"dropped"`
	// Lost came back otherwise than they were, or were pruned on the way.
	Lost int `json:"lost"`
	// Failed could not be converted, there or back.
	Failed int `json:"failed"`
	// Invalid are those, among all the others, that the schema of To refuses.
	Invalid int `json:"invalid"`
	// KeptBytes is the size of the annotations in which all objects' values were
	// kept, names and values; MaxKeptBytes that of the object with the most. An
	// API server allows 262144 for all annotations of an object together.
	KeptBytes    int64 `json:"keptBytes"`
	MaxKeptBytes int   `json:"maxKeptBytes"`
}

// Kept is a field that was preserved.
type Kept struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Path is written as in a policy; elements of lists are [*].
	Path string `json:"path"`
	// Objects that had it. An object counts once for each element of a list.
	Objects int `json:"objects"`
	// MaxBytes is the size of its largest value.
	MaxBytes int `json:"maxBytes"`
}

// Preserved is a field of a version of which objects preserve values in an annotation.
type Preserved struct {
	Version string `json:"version"`
	// Path is written as in a policy; elements of lists are [*].
	Path string `json:"path"`
	// Objects that preserve it. An object counts once for each element of a list.
	Objects int `json:"objects"`
	// BecomeData are those in which the field has a place now: the value becomes
	// data when the object is rewritten.
	BecomeData int `json:"becomeData,omitempty"`
	// CarriedOn are those in which it stays in the annotation, even at its version.
	CarriedOn int `json:"carriedOn,omitempty"`
}

// Add counts what becomes of the field in one object.
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

// The kinds. The first four are errors, Carried is a warning, the others are notes.
const (
	// NotConverted is an object that cannot be converted.
	NotConverted Kind = "NotConverted"
	// Lost is a field that comes back otherwise than it was, or a preserved value
	// that vanishes.
	Lost Kind = "Lost"
	// Pruned is a field that the target's schema does not know: the API server
	// takes it away.
	Pruned Kind = "Pruned"
	// InvalidAtTarget is a field that the target's schema refuses. The object can
	// be read there, and not be written.
	InvalidAtTarget Kind = "Invalid"
	// Carried is a preserved value that stays in its annotation even at its version:
	// the rules know no place for it, or the schema does not allow it.
	Carried Kind = "CarriedOn"
	// Dropped is a field that a drop rule gives up.
	Dropped Kind = "Dropped"
	// Unknown is a field of an object as it was given that its own version's
	// schema does not know: the API server would not have stored it.
	Unknown Kind = "Unknown"
	// InvalidBefore is a field that the object's own version refuses. What other
	// versions say of the object is not looked at then.
	InvalidBefore Kind = "InvalidBefore"
	// Unreadable is an annotation for preserved data that is text in no known format.
	Unreadable Kind = "Unreadable"
	// Foreign is an annotation with preserved data of another resource, or of a
	// version that the rules do not have.
	Foreign Kind = "Foreign"
)

// Severity of a Finding.
type Severity string

// The severities.
const (
	// SeverityError makes the outcome Failed.
	SeverityError Severity = "Error"
	// SeverityWarning does not, and there is something to do.
	SeverityWarning Severity = "Warning"
	// SeverityNote does not either.
	SeverityNote Severity = "Note"
)

// ranks order severities, the worst first.
var ranks = map[Severity]int{SeverityError: 0, SeverityWarning: 1, SeverityNote: 2}

var severities = map[Kind]Severity{
	NotConverted: SeverityError, Lost: SeverityError, Pruned: SeverityError, InvalidAtTarget: SeverityError,
	Carried: SeverityWarning,
	Dropped: SeverityNote, Unknown: SeverityNote, InvalidBefore: SeverityNote, Unreadable: SeverityNote, Foreign: SeverityNote,
}

// Finding is what was found out about one or more objects, with the first of
// them as the example.
type Finding struct {
	Severity Severity `json:"severity"`
	Kind     Kind     `json:"kind"`
	// From and To are the versions; To is empty where the object as it was given is meant.
	From string `json:"from"`
	To   string `json:"to,omitempty"`
	// Path is written as in a policy; elements of lists are [*]. It is empty
	// where the whole object is meant.
	Path string `json:"path,omitempty"`
	// Objects that it is about. An object counts once for each element of a list.
	Objects int     `json:"objects"`
	Example Example `json:"example"`
}

// Example is an object that has what a Finding says.
type Example struct {
	// Object says where it is and what it is called.
	Object string `json:"object"`
	// Path has the index of a list's element.
	Path string `json:"path,omitempty"`
	// Preserved is the version of a preserved value that vanishes, empty for all else.
	Preserved string `json:"preserved,omitempty"`
	// Before and After are the values as JSON, cut to 200 bytes; absent where
	// there is no value. Before is the value as it left, After as it came back.
	Before *string `json:"before,omitempty"`
	After  *string `json:"after,omitempty"`
	// Fields is the number of fields that differ in this object.
	Fields int `json:"fields,omitempty"`
	// Message says what is wrong where no values are compared.
	Message string `json:"message,omitempty"`
}

// Timing of the conversions alone, without reading, comparing and validating.
type Timing struct {
	Conversions int `json:"conversions"`
	// MeanNanoseconds is the mean of one conversion of one object.
	MeanNanoseconds int64 `json:"meanNanoseconds"`
}
