// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// checkUnique refuses a set with a duplicate element, and a list map with duplicate keys.
func (s *Schema) checkUnique(list []any) *MisfitError {
	switch s.limits.ListType {
	case "set":
		return checkDistinct(list, "is in the set twice")
	case "map":
		return s.uniqueKeys(list)
	}
	return nil
}

func (s *Schema) uniqueKeys(list []any) *MisfitError {
	keys := make([]any, len(list))
	for i, element := range list {
		object, isObject := element.(map[string]any)
		if element != nil && !isObject {
			return misfit("must be an object").inElement(i)
		}
		keys[i] = s.keysOf(object)
	}
	return checkDistinct(keys, "has the keys of another element")
}

// absentKey stands for the key of an element that lacks it.
type absentKey struct{}

// keysOf returns the keys that an element has.
func (s *Schema) keysOf(element map[string]any) any {
	if len(s.limits.ListKeys) == 1 {
		if key, found := element[s.limits.ListKeys[0]]; found {
			return key
		}
		return absentKey{}
	}
	keys := make(map[string]any, len(s.limits.ListKeys))
	for _, name := range s.limits.ListKeys {
		if key, found := element[name]; found {
			keys[name] = key
		}
	}
	return keys
}

// checkDistinct refuses the first value that equals a previous one.
func checkDistinct(values []any, reason string) *MisfitError {
	if len(values) < 2 {
		return nil
	}
	seen := make(map[any]struct{}, len(values))
	for i, value := range values {
		key, err := comparisonKey(value)
		if err != nil {
			return misfit(notJSON).inElement(i)
		}
		if _, found := seen[key]; found {
			return misfit(reason).inElement(i)
		}
		seen[key] = struct{}{}
	}
	return nil
}

// compound is the text of an object or list. Its type keeps it apart from strings.
type compound string

// comparisonKey returns a comparable value that is the same for equal values.
func comparisonKey(value any) (any, error) {
	switch value.(type) {
	case map[string]any, []any:
		text, err := utiljson.Marshal(value)
		return compound(text), err
	}
	return value, nil
}
