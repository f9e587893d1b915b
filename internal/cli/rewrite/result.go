// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rewrite

import (
	"slices"
)

// State of an object after a rewrite.
type State string

// The states.
const (
	// Rewritten objects are at the new version.
	Rewritten State = "Rewritten"
	// Current objects were at the new version before.
	Current State = "Current"
	// Left objects keep their old version, for the reason that their problems give.
	Left State = "Left"
)

// Result is what became of a text.
type Result struct {
	// Text is the new text. It is the original if no object was rewritten.
	Text []byte
	// Objects of the kind, in their order.
	Objects []Object
	// Problems of the text as a whole, which then has no objects.
	Problems []Problem
}

// Changed reports whether the text differs from the original.
func (r *Result) Changed() bool {
	return slices.ContainsFunc(r.Objects, func(o Object) bool { return o.State == Rewritten })
}

// Complete reports whether nothing stays at another version.
func (r *Result) Complete() bool {
	return len(r.Problems) == 0 && !slices.ContainsFunc(r.Objects, func(o Object) bool { return o.State == Left })
}

// Object is what became of an object.
type Object struct {
	// Line is that of the object's first field, from 1.
	Line  int    `json:"line"`
	Name  string `json:"name,omitempty"`
	From  string `json:"from"`
	State State  `json:"state"`
	// Problems are the reasons why the object was left.
	Problems []Problem `json:"problems,omitempty"`
	// Notes are about values that a rule drops, or that the new version writes in another way.
	Notes []Problem `json:"notes,omitempty"`
}

// Problem is something that users must change by hand.
type Problem struct {
	Line    int    `json:"line"`
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
}

func (o *Object) leave(line int, field, message string) {
	o.Problems = append(o.Problems, Problem{line, field, message})
}
