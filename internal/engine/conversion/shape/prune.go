// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import "math"

// Prune removes from a decoded value what the API server would prune: members that the schema does
// not declare, and nulls of members that cannot be null. It replaces such a null by the default if the
// schema has one, as the API server does. It returns false if a value is not of the type
// of its schema. Other limits do not matter.
func (s *Schema) Prune(value any) (isOfType bool) {
	switch value := value.(type) {
	case map[string]any:
		return s.isType(objectKind) && s.pruneMembers(value)
	case []any:
		return s.isType(arrayKind) && s.pruneElements(value)
	case string:
		return s.isType(stringKind) || s.kind == intOrStringKind
	case bool:
		return s.isType(booleanKind)
	case int64:
		return s.isType(integerKind) || s.kind == numberKind || s.kind == intOrStringKind
	case float64:
		return s.isType(numberKind) || (s.kind == integerKind || s.kind == intOrStringKind) && value == math.Trunc(value) && math.Abs(value) <= maxInteger
	}
	return value == nil
}

// maxInteger is the largest integer that every reader of JSON keeps.
const maxInteger = 1 << 53

func (s *Schema) isType(of kind) bool { return s.kind == of || s.kind == anyKind }

func (s *Schema) pruneMembers(object map[string]any) bool {
	for name, member := range object {
		inner := s.Field(name)
		switch {
		case inner == nil, member == nil && !inner.nullable && inner.limits.Default == nil:
			delete(object, name)
		case member == nil && !inner.nullable:
			object[name] = inner.defaultOf()
		case !inner.Prune(member):
			return false
		}
	}
	return true
}

// pruneElements keeps nulls without a default: the API server removes no elements.
func (s *Schema) pruneElements(list []any) bool {
	items := s.Items()
	for i, element := range list {
		if element == nil && !items.nullable && items.limits.Default != nil {
			list[i] = items.defaultOf()
		} else if !items.Prune(element) {
			return false
		}
	}
	return true
}

// defaultOf returns the default, which values share.
func (s *Schema) defaultOf() any { return *s.limits.defaultValue.of(s, (*Schema).newDefault) }

// FillDefaults fills the defaults of the schema into a decoded value of its type, as the API server does
// when it reads a stored object. The value must not be changed afterwards.
func (s *Schema) FillDefaults(value any) { s.fillDefaults(value) }

// AddPruned adds to a value the members of another value that Prune removes, in all objects that both
// have. It reports whether there were any. Elements of lists are not compared.
func (s *Schema) AddPruned(value, other any) (added bool) {
	object, isObject := value.(map[string]any)
	others, areObjects := other.(map[string]any)
	if !isObject || !areObjects {
		return false
	}
	for name, member := range others {
		if inner := s.Field(name); inner != nil {
			added = inner.AddPruned(object[name], member) || added
			continue
		}
		object[name], added = member, true
	}
	return added
}
