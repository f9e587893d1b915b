// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"k8s.io/kube-openapi/pkg/validation/errors"
)

// MisfitError says why a value does not fit. It is short whatever the value is.
type MisfitError struct {
	// Place is where in the value, as .ports[2].name; empty for the value itself.
	Place string
	// Reason goes on where the place ends: "must be a string, not a list".
	Reason string
}

// Error names the place and the reason.
func (m *MisfitError) Error() string {
	if m.Place == "" {
		return "the value " + m.Reason
	}
	return m.Place + " " + m.Reason
}

const notJSON = "is not valid JSON"

// maxName and maxPlace bound what an error holds of the value.
const maxName, maxPlace = 64, 256

var kindNames = map[kind]string{
	anyKind: "a value", stringKind: "a string", integerKind: "an integer", numberKind: "a number", booleanKind: "a boolean",
	objectKind: "an object", arrayKind: "a list", intOrStringKind: "an integer or a string",
}

func misfit(reason string) *MisfitError { return &MisfitError{Reason: reason} }

func first(all ...*MisfitError) *MisfitError {
	for _, m := range all {
		if m != nil {
			return m
		}
	}
	return nil
}

func (m *MisfitError) inElement(i int) *MisfitError { return m.in("[" + strconv.Itoa(i) + "]") }

func (m *MisfitError) inMember(name []byte) *MisfitError {
	text := truncated(string(name))
	if text == "" || strings.ContainsFunc(text, needsEscape) {
		return m.in("[" + strconv.Quote(text) + "]")
	}
	return m.in("." + text)
}

// truncated is a text of the value that is short enough for an error.
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

// needsEscape characters need quotes in a path.
func needsEscape(c rune) bool {
	return ('a' > c || c > 'z') && ('A' > c || c > 'Z') && ('0' > c || c > '9') && c != '_' && c != '-' && c != '…'
}

// in puts a place in front. If it gets long, the middle goes.
func (m *MisfitError) in(segment string) *MisfitError {
	if len(m.Place) <= maxPlace {
		m.Place = segment + m.Place
	} else if !strings.HasPrefix(m.Place, "…") {
		m.Place = "…" + m.Place
	}
	return m
}

// reasons say in few words what the API server's validator says with the value.
var reasons = map[int32]string{
	errors.InvalidTypeCode:              "is not of the type or format",
	errors.RequiredFailCode:             "is required",
	errors.TooLongFailCode:              "is too long",
	errors.TooShortFailCode:             "is too short",
	errors.PatternFailCode:              "does not match the pattern",
	errors.EnumFailCode:                 "is none of the allowed values",
	errors.MultipleOfFailCode:           "is not a multiple of the factor",
	errors.MultipleOfMustBePositiveCode: "is not a multiple of the factor",
	errors.MaxFailCode:                  "is greater than the maximum",
	errors.MinFailCode:                  "is less than the minimum",
	errors.UniqueFailCode:               "has an element twice",
	errors.MaxItemsFailCode:             "has too many elements",
	errors.MinItemsFailCode:             "has too few elements",
	errors.TooManyPropertiesCode:        "has too many members",
	errors.TooFewPropertiesCode:         "has too few members",
}

// refused is the misfit that the API server's validator found first.
func refused(err error) *MisfitError {
	found, ok := err.(*errors.Validation) //nolint:errorlint // the validator wraps nothing
	if !ok {
		return misfit("is not within its limits")
	}
	reason, known := reasons[found.Code()]
	if !known {
		reason = "is not within its limits"
	}
	m := misfit(reason)
	if found.Code() == errors.RequiredFailCode {
		m = m.inMember([]byte(strings.TrimPrefix(found.Name, ".")))
	}
	return m
}
