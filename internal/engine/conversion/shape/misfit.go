// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"k8s.io/kube-openapi/pkg/validation/errors"
)

// MisfitError says why a value does not fit. Its size does not depend on that of the value.
type MisfitError struct {
	// Place is the path in the value, such as .ports[2].name; empty for the value itself.
	Place string
	// Reason continues the sentence that Place begins: "must be a string, not a list".
	Reason string
}

func (m *MisfitError) Error() string {
	if m.Place == "" {
		return "the value " + m.Reason
	}
	return m.Place + " " + m.Reason
}

// maxName and maxPlace limit the length of names and places in errors.
const maxName, maxPlace = 64, 256

func misfit(reason string) *MisfitError { return &MisfitError{Reason: reason} }

func (m *MisfitError) inElement(i int) *MisfitError { return m.prefix("[" + strconv.Itoa(i) + "]") }

func (m *MisfitError) inMember(name string) *MisfitError {
	text := truncated(name)
	if text == "" || strings.ContainsFunc(text, needsEscape) {
		return m.prefix("[" + strconv.Quote(text) + "]")
	}
	return m.prefix("." + text)
}

// truncated shortens a text of the value for an error.
func truncated(text string) string {
	if len(text) <= maxName {
		return text
	}
	text = text[:maxName]
	for !utf8.ValidString(text) {
		text = text[:len(text)-1]
	}
	return text + "…"
}

// needsEscape reports whether a name with the character needs quotes in a path.
func needsEscape(c rune) bool {
	return ('a' > c || c > 'z') && ('A' > c || c > 'Z') && ('0' > c || c > '9') && c != '_' && c != '-' && c != '…'
}

// prefix prepends a segment to the place. It omits the middle of a long place.
func (m *MisfitError) prefix(segment string) *MisfitError {
	if len(m.Place) <= maxPlace {
		m.Place = segment + m.Place
	} else if !strings.HasPrefix(m.Place, "…") {
		m.Place = "…" + m.Place
	}
	return m
}

// reasons replace the messages of the API server's validator of scalars, which contain the value.
var reasons = map[int32]string{
	errors.InvalidTypeCode:              "is not of the type or format",
	errors.TooLongFailCode:              "is too long",
	errors.TooShortFailCode:             "is too short",
	errors.EnumFailCode:                 "is none of the allowed values",
	errors.MultipleOfFailCode:           "is not a multiple of the factor",
	errors.MultipleOfMustBePositiveCode: "is not a multiple of the factor",
	errors.MaxFailCode:                  "is greater than the maximum",
	errors.MinFailCode:                  "is less than the minimum",
}

// misfitOf converts the first error of the API server's validator.
func misfitOf(err error) *MisfitError {
	if found, ok := err.(*errors.Validation); ok && reasons[found.Code()] != "" { //nolint:errorlint // the validator wraps nothing
		return misfit(reasons[found.Code()])
	}
	return misfit("is not within its limits")
}
