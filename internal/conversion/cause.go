// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"errors"
	"fmt"
)

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
	// CauseShortened means: the object was shortened when it was read, so that writing it would lose data.
	CauseShortened Cause = "Shortened"
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
	if _, ok := errors.AsType[*ShortenedError](err); ok {
		return CauseShortened
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
