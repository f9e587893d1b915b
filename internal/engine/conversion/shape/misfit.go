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

const notJSON = "is not valid JSON"

// maxName and maxPlace limit the length of names and places in errors.
const maxName, maxPlace = 64, 256

var kindNames = map[kind]string{
	anyKind: "a value", stringKind: "a string", integerKind: "an integer", numberKind: "a number", booleanKind: "a boolean",
	objectKind: "an object", arrayKind: "a list", intOrStringKind: "an integer or a string",
}

func misfit(reason string) *MisfitError { return &MisfitError{Reason: reason} }

func firstMisfit(all ...*MisfitError) *MisfitError {
	for _, m := range all {
		if m != nil {
			return m
		}
	}
	return nil
}

func (m *MisfitError) inElement(i int) *MisfitError { return m.prefix("[" + strconv.Itoa(i) + "]") }

func (m *MisfitError) inMember(name []byte) *MisfitError {
	text := truncated(string(name))
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

// reasons replace the messages of the API server's validator, which contain the value.
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

// misfitOf converts the first error of the API server's validator.
func misfitOf(err error) *MisfitError {
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
