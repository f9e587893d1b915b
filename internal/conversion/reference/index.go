// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
)

// index converts a list of objects to a map by one of their fields.
type index struct {
	key     string
	integer bool
	// value is the field of an element that is the value in the map. Without it, the value is the
	// element without the key.
	value string
}

// keyOf returns the key of an element in the map.
func (i *index) keyOf(element any) (name string, found bool) {
	switch key := find(element, path{i.key}).(type) {
	case string:
		return key, !i.integer
	case json.Number:
		return key.String(), i.integer && isInteger(key.String())
	}
	return "", false
}

// keyField returns the value of the key field.
func (i *index) keyField(name string) any {
	if i.integer {
		return json.Number(name)
	}
	return name
}

func (i *index) toMap(value any) any {
	list, isList := value.([]any)
	object := map[string]any{}
	for _, element := range list {
		name, found := i.keyOf(element)
		if _, twice := object[name]; !found || twice {
			return none
		}
		element := clone(element).(map[string]any)
		delete(element, i.key)
		object[name] = element
		if i.value == "" {
			continue
		}
		if object[name] = element[i.value]; object[name] == nil {
			return none
		}
	}
	if !isList {
		return none
	}
	return object
}

// toList sorts the elements by their keys.
func (i *index) toList(value any) any {
	object, isMap := value.(map[string]any)
	list := []any{}
	for _, name := range slices.SortedFunc(maps.Keys(object), i.compare) {
		element, isObject := clone(object[name]).(map[string]any)
		if i.value != "" {
			element, isObject = map[string]any{i.value: clone(object[name])}, object[name] != nil
		}
		if !isObject || find(element, path{i.key}) != none || i.integer && !isInteger(name) {
			return none
		}
		element[i.key] = i.keyField(name)
		list = append(list, element)
	}
	if !isMap {
		return none
	}
	return list
}

// compare orders integer keys by value, and text keys by their bytes.
func (i *index) compare(a, b string) int {
	if i.integer && isInteger(a) && isInteger(b) {
		left, _ := json.Number(a).Int64()
		right, _ := json.Number(b).Int64()
		return cmp.Compare(left, right)
	}
	return cmp.Compare(a, b)
}

// order returns what is preserved of an unsorted list: its keys. It returns none if the map lacks
// fields of the elements.
func (i *index) order(value any) any {
	order := []any{}
	for _, element := range value.([]any) {
		if i.value != "" && len(element.(map[string]any)) > 2 {
			return none
		}
		order = append(order, find(element, path{i.key}))
	}
	return order
}

// arrange moves the elements whose keys are in the order to the front, in that order.
func (i *index) arrange(value, order any) any {
	list, isList := value.([]any)
	keys, _ := order.([]any)
	if !isList {
		return value
	}
	place := func(element any) int {
		at := slices.IndexFunc(keys, func(key any) bool { return Equal(key, find(element, path{i.key})) })
		if at < 0 {
			return len(keys)
		}
		return at
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b any) int { return cmp.Compare(place(a), place(b)) })
	return list
}

// patch replaces the elements whose keys are in the preserved list by the elements there, with the
// values that they have now. Other elements come last.
func (i *index) patch(value, preserved any) any {
	patched := []any{}
	list, _ := preserved.([]any)
	rest := slices.Clone(value.([]any))
	for _, old := range list {
		at := slices.IndexFunc(rest, func(element any) bool { return Equal(find(element, path{i.key}), find(old, path{i.key})) })
		if at < 0 {
			continue
		}
		element := clone(old).(map[string]any)
		element[i.value] = find(rest[at], path{i.value})
		patched = append(patched, element)
		rest = slices.Delete(rest, at, at+1)
	}
	return append(patched, rest...)
}
