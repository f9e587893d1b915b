// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape/internal/form"
)

// limits restrict a value beyond its type, or give it a default.
type limits struct {
	form.Limits // without its nodes, which are schemas here

	allOf, anyOf, oneOf []*Schema
	not                 *Schema

	// What follows is derived, when it is first needed.
	pattern      derived[pattern]
	enumTexts    derived[map[string]struct{}]
	defaultValue derived[any]
	// extraCheck is a further check of the API server, nil if there is none.
	extraCheck func(value any) (reason string)
}

// noLimits are those of schemas without limits: most have none.
var noLimits = new(limits)

// dropNodes frees the nodes of which schemas were made.
func (l *limits) dropNodes() { l.AllOf, l.AnyOf, l.OneOf, l.Not = nil, nil, nil, nil }

// restrict reports whether there are limits besides a default.
func (l *limits) restrict() bool {
	return l.Enum != nil || l.Pattern != "" || l.Format != "" || l.MultipleOf != nil || l.Unique ||
		l.Required != nil || l.ListType != "" ||
		l.Minimum != nil || l.Maximum != nil || l.MinLength != nil || l.MaxLength != nil ||
		l.MinItems != nil || l.MaxItems != nil || l.MinMembers != nil || l.MaxMembers != nil ||
		l.hasJunctors()
}

func (l *limits) hasJunctors() bool {
	return l.allOf != nil || l.anyOf != nil || l.oneOf != nil || l.not != nil
}

// ofFragment returns the limits of a fragment of the value: without what a value must have. AnyOf,
// oneOf and not are removed as well, because they may require something.
func (l *limits) ofFragment() *limits {
	if l.Required == nil && l.MinItems == nil && l.MinMembers == nil && !l.hasJunctors() && l.extraCheck == nil {
		return l
	}
	fragment := &limits{Limits: l.Limits}
	fragment.Required, fragment.MinItems, fragment.MinMembers = nil, nil, nil
	for _, each := range l.allOf {
		fragment.allOf = append(fragment.allOf, each.Part())
	}
	return fragment
}
