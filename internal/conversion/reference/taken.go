// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import "reflect"

// taken is the place of a field that y cannot have, as x has live data that it would be.
// Common is the shape of values of which that is so, nil for all.
type taken struct {
	pointer string
	common  *common
}

// isTaken reports whether a member that is made would be, or have, a field that is taken.
func (m *merger) isTaken(live map[string]any, segment string, made any) bool {
	for _, t := range m.taken {
		holder, rest := m.root, segments(t.pointer)
		for len(rest) > 1 && follow(holder, rest[:1]) != none {
			holder, rest = follow(holder, rest[:1]), rest[1:]
		}
		if !isSame(holder, live) || rest[0] != segment {
			continue
		}
		if value := follow(made, rest[1:]); value != none && (t.common == nil || t.common.fits(value)) {
			return true
		}
	}
	return false
}

// isSame reports whether a value is the very object.
func isSame(value any, object map[string]any) bool {
	return isObject(value) && reflect.ValueOf(value).Pointer() == reflect.ValueOf(object).Pointer()
}
