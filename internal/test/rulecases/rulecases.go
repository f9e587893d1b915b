// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rulecases has the cases of each kind of rule, one file for each, which tests of several packages try: the API server's
// validation, the compiler, conversions, verdicts, explanations and the examples of the documentation. The spoke is v1, and the
// hub v2.
package rulecases

import (
	"bytes"
	"embed"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// Kind has the cases of a kind of rule.
type Kind struct {
	Name string `json:"-"`
	// Conversions are rules with objects. Those of the first ones also work for the elements of a list, where TestGrowth tries
	// them with the first object. Canary objects try all rules, and explain the first object and the first that is preserved.
	Conversions []Conversion
	// Refused are rules that do not compile.
	Refused struct {
		Versions
		Rules []Refusal
	}
	// Preserves says which version has values that rules may preserve: spoke, hub, spoke and hub, or none.
	Preserves []struct {
		Versions
		Name, Of string
		Rules    List
	}
	// Admission are rules for the API server. It accepts those of which it says nothing. At is not used.
	Admission []Refusal
	// Page has the fields in .spec of the examples about this kind in api/docs/writing-rules.md.
	Page Versions
}

// Versions have the properties of the schemas of both versions.
type Versions struct{ V1, V2 List }

// Conversion has rules and what they do.
type Conversion struct {
	Versions
	Name    string
	Rules   List
	Objects []Object
}

// Object has the fields of an object at both versions, in JSON. It is converted from v1, or the version From.
type Object struct {
	Name, From, V1, V2 string
	// Preserved is true if the other version preserves something.
	Preserved bool
	// Edit has the fields that it gets at the other version, nil if it stays the same there.
	Edit *string
	// Back has the fields that come back, nil if all do. With Stays, something remains preserved then.
	Back  *string
	Stays bool
}

// Refusal is a rule that is refused: the field of the rule, and a part of the message.
type Refusal struct {
	Name, At, Says string
	Rule           Rule
}

// Rule is a rule in JSON.
type Rule string

// UnmarshalJSON keeps the text.
func (r *Rule) UnmarshalJSON(text []byte) error {
	*r = Rule(text)
	return nil
}

// List has the elements of a list, or the members of an object, as JSON without its brackets.
type List string

// UnmarshalJSON keeps the text.
func (l *List) UnmarshalJSON(text []byte) error {
	*l = List(bytes.Trim(text[1:len(text)-1], " "))
	return nil
}

//go:embed *.yaml
var files embed.FS

// All returns the kinds of rules by their names.
func All(tb testing.TB) []Kind {
	tb.Helper()
	entries, err := files.ReadDir(".")
	expect.NoError(tb, err)
	var all []Kind
	for _, entry := range entries {
		text, err := files.ReadFile(entry.Name())
		expect.NoError(tb, err)
		kind := Kind{Name: strings.TrimSuffix(entry.Name(), ".yaml")}
		if err := yaml.UnmarshalStrict(text, &kind); err != nil {
			tb.Fatalf("%s: %v", entry.Name(), err)
		}
		all = append(all, kind)
	}
	return all
}
