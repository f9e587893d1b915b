// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"slices"
	"strings"
)

// Identity reports whether every conversion leaves every object as it is, its
// version aside: the versions have the same fields, and no rule touches one.
// Strategy None gives the same then. What rules of before have kept aside in an
// annotation is not looked at: strategy None leaves it there.
func (p *Plan) Identity() bool {
	return !slices.ContainsFunc(p.Spokes, func(spoke Spoke) bool { return !spoke.Root.identity() })
}

func (s Scope) identity() bool {
	touched := len(s.Moves) + len(s.Exchanges) + len(s.Defaults) + len(s.DropSpoke) + len(s.DropHub) +
		len(s.OnlySpoke) + len(s.OnlyHub) + len(s.Shared)
	return touched == 0 && !slices.ContainsFunc(s.Collections, func(c Collection) bool { return !c.Scope.identity() })
}

// Accepted reports whether a field, or one above it, is among those that a policy
// without a converter gives up: spec.converter.none.acceptedLosses.
func Accepted(losses []string, path string) bool {
	return slices.ContainsFunc(losses, func(loss string) bool {
		rest, found := strings.CutPrefix(path, loss)
		return found && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}
