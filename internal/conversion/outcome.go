// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"errors"
	"fmt"
	"strings"
)

// Outcome is the findings about the conversion of one object.
type Outcome struct {
	// Read is the number of bytes that the object took of the text.
	Read int
	// From is the version that the object was at, empty where that is unknown.
	From string
	// KeptBytes is the size of what was preserved, in bytes of the annotation's text.
	KeptBytes int
	// DroppedValues counts the values for which the annotation had no room.
	DroppedValues int
	// Omitted is what a truncated form lacks, nil where the object is whole.
	Omitted *Omitted
}

// Omitted is what does not fit into an object's annotations.
type Omitted struct {
	// Version is the one that most of it belongs to, and At the one without it.
	Version, At string
	// Count is how many values are left out.
	Count int
	// Bytes is what the annotations would take in which they would be, in bytes.
	Bytes int
	// Fields are the first of them, as in a policy.
	Fields []string
}

// excess says what takes how much.
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

// kibibytes writes a size for people.
func kibibytes(bytes int) string {
	const kibi = 1 << 10
	return fmt.Sprintf("%d KiB", (bytes+kibi-1)/kibi)
}

// TruncatedError refuses a truncated form: it must not be stored in place of the
// object. Its text is for the person who wrote it.
type TruncatedError struct {
	// Annotation is the one that says so.
	Annotation string
	// Omitted is what it says, nil where that cannot be read.
	*Omitted
}

func (e *TruncatedError) Error() string {
	if e.Omitted == nil {
		return fmt.Sprintf("the annotation %s says that the object was truncated when it was read, and nothing else that is readable: remove it, if you have written it, or read the object again", e.Annotation)
	}
	return fmt.Sprintf("the object was truncated when it was read at %s, because %s: write it at %s, without the annotation %s, or make %s smaller there",
		e.At, e.excess(), e.Version, e.Annotation, e.smaller())
}

// TooLargeError refuses an object that could be read at another version in a
// truncated form only. Its text is for the person who wrote it.
type TooLargeError struct {
	*Omitted
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the object cannot be converted to %s as a whole: %s: make %s smaller, or the object's other annotations", e.At, e.excess(), e.smaller())
}

// OverflowError refuses an object that has more to preserve than its
// annotations have room for. Its text is for the person who asked for the object.
type OverflowError struct {
	// Version is the one that the object leaves.
	Version string
	// Kept is the size of what would be preserved of it, and Others that of all
	// other annotations, in bytes.
	Kept, Others int
}

func (e *OverflowError) Error() string {
	return fmt.Sprintf("the fields that only version %s has take %d bytes, and all annotations together may take %d: truncate the object's annotations, of which the others take %d, or those fields, or set overflow to Drop in the ConversionPolicy",
		e.Version, e.Kept, MaxAnnotations, e.Others)
}

// Cause says in one word why an object cannot be converted. Status and metrics tell
// failures apart by it.
type Cause string

const (
	// CauseInvalidJSON means: the text is not valid JSON.
	CauseInvalidJSON Cause = "InvalidJSON"
	// CauseWrongKind means: it is not an object of the kind that the rules are for.
	CauseWrongKind Cause = "WrongKind"
	// CauseUnknownVersion means: the object has, or is to get, a version that the rules do not have.
	CauseUnknownVersion Cause = "UnknownVersion"
	// CauseAnnotationsTooLarge means: the object's annotations have no room for what is to be preserved.
	CauseAnnotationsTooLarge Cause = "AnnotationsTooLarge"
	// CauseTruncated means: the object was truncated when it was read, so that writing it would lose data.
	CauseTruncated Cause = "Truncated"
	// CauseOverBudget means: the conversion takes more work than one object may.
	CauseOverBudget Cause = "OverBudget"
	// CauseOther means: none of the above.
	CauseOther Cause = "Other"
)

// CauseOf returns the cause of an error that a Converter returned. It looks at the
// error's type only, never at its text.
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
