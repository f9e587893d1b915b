// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// unique refuses a set with an element twice, and a list map with a key twice.
func (s *Schema) unique(list []any) *MisfitError {
	switch s.node.ListType {
	case "set":
		return distinct(list, "is in the set twice")
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
	return distinct(keys, "has the keys of another element")
}

// absent is the one key of an element that has none.
type absent struct{}

// keysOf are the keys of an element, those that it has.
func (s *Schema) keysOf(element map[string]any) any {
	if len(s.node.ListKeys) == 1 {
		if key, found := element[s.node.ListKeys[0]]; found {
			return key
		}
		return absent{}
	}
	keys := make(map[string]any, len(s.node.ListKeys))
	for _, name := range s.node.ListKeys {
		if key, found := element[name]; found {
			keys[name] = key
		}
	}
	return keys
}

// distinct finds the first of some values that is there before.
func distinct(values []any, reason string) *MisfitError {
	if len(values) < 2 {
		return nil
	}
	seen := make(map[any]struct{}, len(values))
	for i, value := range values {
		key, err := comparison(value)
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

// compound is the text of an object or a list, which is no string's.
type compound string

// comparison is a value that is the same where the values are.
func comparison(value any) (any, error) {
	switch value.(type) {
	case map[string]any, []any:
		text, err := utiljson.Marshal(value)
		return compound(text), err
	}
	return value, nil
}
