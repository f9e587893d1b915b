// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"encoding/json"
	"strings"
)

// common is what values have in common that both sides can hold. Each is that of the
// elements of a list, or the values of a map.
type common struct {
	Type    string  `json:"type"`
	NotNull bool    `json:"notNull"`
	Each    *common `json:"each"`
}

// fits reports whether a value is of the shape. Any value is of none.
func (s *common) fits(value any) bool {
	if s == nil {
		return true
	}
	switch value := value.(type) {
	case nil:
		return !s.NotNull
	case []any:
		for _, element := range value {
			if !s.Each.fits(element) {
				return false
			}
		}
	case map[string]any:
		for _, member := range value {
			if s.Each != nil && !s.Each.fits(member) {
				return false
			}
		}
	}
	return s.Type == "" || strings.Contains(typesOf(value), " "+s.Type+" ")
}

// typesOf are the types that a value can have, with a space around each.
func typesOf(value any) string {
	switch value := value.(type) {
	case bool:
		return " boolean "
	case string:
		return " string int-or-string "
	case json.Number:
		if strings.ContainsAny(value.String(), ".eE") {
			return " number "
		}
		return " number integer int-or-string "
	case []any:
		return " array "
	}
	return " object "
}
