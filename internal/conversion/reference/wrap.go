// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

// wrapping is the name of the field of objects that has the values of a list or map.
type wrapping string

func (w wrapping) wrap(value any) any {
	return each(value, func(element any) any {
		if element == nil {
			return none
		}
		return map[string]any{string(w): element}
	})
}

func (w wrapping) unwrap(value any) any {
	return each(value, func(element any) any {
		if inner := find(element, path{string(w)}); inner != nil {
			return inner
		}
		return none
	})
}

// each replaces every element of a list, or every value of a map. There is no result if one has no
// replacement, or the value is neither.
func each(value any, replacement func(any) any) any {
	switch value := value.(type) {
	case []any:
		list := []any{}
		for _, element := range value {
			other := replacement(element)
			if other == none {
				return none
			}
			list = append(list, other)
		}
		return list
	case map[string]any:
		object := map[string]any{}
		for name, element := range value {
			if object[name] = replacement(element); object[name] == none {
				return none
			}
		}
		return object
	}
	return none
}

// patch replaces objects of a list by preserved ones with the same value, each of them once, and
// objects of a map by the preserved ones with the same key, which get the current value.
func (w wrapping) patch(value, preserved any) any {
	field := path{string(w)}
	if object, isMap := value.(map[string]any); isMap {
		known, _ := preserved.(map[string]any)
		patched := map[string]any{}
		for name, element := range object {
			if patched[name] = element; isObject(known[name]) {
				old := clone(known[name]).(map[string]any)
				old[string(w)] = find(element, field)
				patched[name] = old
			}
		}
		return patched
	}
	known, _ := preserved.([]any)
	used := map[int]bool{}
	return each(value, func(element any) any {
		for i, old := range known {
			inner := find(old, field)
			if !used[i] && inner != none && inner != nil && Equal(inner, find(element, field)) {
				used[i] = true
				return clone(old)
			}
		}
		return element
	})
}
