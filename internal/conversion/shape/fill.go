// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

// newDefault is the schema's default with all defaults in it. Values share it, so
// it does not grow with them, and must not change it.
func (s *Schema) newDefault() any {
	value, err := decoded(s.node.Default)
	if err != nil {
		return nil // it was read from JSON, so this does not happen
	}
	s.fill(value)
	return value
}

// fill puts defaults where a value has nothing, as the API server does before it
// validates. Nulls that a default replaces did not get this far.
func (s *Schema) fill(value any) {
	if !s.defaulted {
		return
	}
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			if property, found := s.properties[name]; found {
				property.fill(member)
			} else if s.additional != nil {
				s.additional.fill(member)
			}
		}
		for name, property := range s.properties {
			if _, found := value[name]; !found && property.node.Default != nil {
				value[name] = property.initial()
			}
		}
	case []any:
		if s.items != nil {
			for _, element := range value {
				s.items.fill(element)
			}
		}
	}
}
