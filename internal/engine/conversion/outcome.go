// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"errors"
	"fmt"
	"strings"
)

// Outcome reports on the conversion of one object.
type Outcome struct {
	// Read is the number of bytes of the text that the object took.
	Read int
	// From is the version of the object, empty if unknown.
	From string
	// PreservedBytes is the size of the preserved data, in bytes of the annotation's text.
	PreservedBytes int
	// DroppedValues is the number of values for which the annotations had no room.
	DroppedValues int
	// Omitted is what a truncated form lacks, nil if the object is complete.
	Omitted *Omitted
}

// Omitted describes values that do not fit into an object's annotations.
type Omitted struct {
	// Version is the version that most of the values belong to; At is the version of the truncated
	// form.
	Version, At string
	// Count is the number of omitted values.
	Count int
	// Bytes is the size of the annotations if they held the values.
	Bytes int
	// Fields are the first of the values, as paths of a policy.
	Fields []string
}

// excess says what exceeds the limit, and by how much.
func (o *Omitted) excess() string {
	return fmt.Sprintf("the fields that only version %s has take %s, and all annotations together may take %s",
		o.Version, kibibytes(o.Bytes), kibibytes(MaxAnnotations))
}

// smaller says what to make smaller.
func (o *Omitted) smaller() string {
	switch {
	case len(o.Fields) == 0:
		return "these fields"
	case o.Count > len(o.Fields):
		return fmt.Sprintf("%s, or others of its %d largest fields", strings.Join(o.Fields, ", "), o.Count)
	}
	return strings.Join(o.Fields, ", ")
}

// kibibytes formats a size for messages.
func kibibytes(bytes int) string {
	const kibi = 1 << 10
	return fmt.Sprintf("%d KiB", (bytes+kibi-1)/kibi)
}

// TruncatedError refuses a truncated form: it must not be stored in place of the object. Its text
// is for the user who wrote it.
type TruncatedError struct {
	// Annotation is the annotation that marks the truncated form.
	Annotation string
	// Omitted is the content of the marker, nil if it cannot be read.
	*Omitted
}

func (e *TruncatedError) Error() string {
	if e.Omitted == nil {
		return fmt.Sprintf("the annotation %s says that the object was truncated when it was read, and nothing else that is readable: remove it, if you have written it, or read the object again", e.Annotation)
	}
	return fmt.Sprintf("the object was truncated when it was read at %s, because %s: write it at %s, without the annotation %s, or make %s smaller there",
		e.At, e.excess(), e.Version, e.Annotation, e.smaller())
}

// TooLargeError refuses an object that another version could only show in a truncated form. Its
// text is for the user who wrote it.
type TooLargeError struct {
	*Omitted
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the object cannot be converted to %s as a whole: %s: make %s smaller, or the object's other annotations", e.At, e.excess(), e.smaller())
}

// OverflowError refuses an object with more to preserve than its annotations have room for. Its
// text is for the user who requested the object.
type OverflowError struct {
	// Version is the source version.
	Version string
	// Preserved is the size of its preserved values, and Others that of all other annotations, in
	// bytes.
	Preserved, Others int
}

func (e *OverflowError) Error() string {
	return fmt.Sprintf("the fields that only version %s has take %d bytes, and all annotations together may take %d: truncate the object's annotations, of which the others take %d, or those fields, or set overflow to Drop in the ConversionPolicy",
		e.Version, e.Preserved, MaxAnnotations, e.Others)
}

// Cause is the reason why an object cannot be converted, for status and metrics.
type Cause string

const (
	// CauseInvalidJSON means that the text is not valid JSON.
	CauseInvalidJSON Cause = "InvalidJSON"
	// CauseWrongKind means that the object is not of the kind of the ruleset.
	CauseWrongKind Cause = "WrongKind"
	// CauseUnknownVersion means that the ruleset does not have the source or the target version.
	CauseUnknownVersion Cause = "UnknownVersion"
	// CauseAnnotationsTooLarge means that the annotations have no room for the values to preserve.
	CauseAnnotationsTooLarge Cause = "AnnotationsTooLarge"
	// CauseTruncated means that the object is a truncated form, so that storing it would lose
	// data.
	CauseTruncated Cause = "Truncated"
	// CauseOverBudget means that the conversion takes more work than one object may.
	CauseOverBudget Cause = "OverBudget"
	// CauseOther means any other reason.
	CauseOther Cause = "Other"
)

// CauseOf returns the cause of an error of a Converter. It depends on the error's type only, never
// on its text.
func CauseOf(err error) Cause {
	if failure, ok := errors.AsType[*failure](err); ok {
		return failure.cause
	}
	if _, ok := errors.AsType[*OverflowError](err); ok {
		return CauseAnnotationsTooLarge
	}
	if _, ok := errors.AsType[*TruncatedError](err); ok {
		return CauseTruncated
	}
	if _, ok := errors.AsType[*BudgetError](err); ok {
		return CauseOverBudget
	}
	return CauseOther
}

// failure is an error with its cause.
type failure struct {
	cause Cause
	text  string
}

func (f *failure) Error() string { return f.text }

func failf(cause Cause, format string, args ...any) error {
	return &failure{cause, fmt.Sprintf(format, args...)}
}
