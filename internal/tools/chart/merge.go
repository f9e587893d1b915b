// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// A node is a value in a template: a plain one, a *mapping, a *list, a *choice, or text.
type node any

// condition says with which components a part of a template is rendered: with one of those in
// anyOf, if there are some, and with none of those in noneOf; and if other pipelines are true.
type condition struct {
	anyOf, noneOf, other []string
}

// mapping is an object whose fields may have conditions.
type mapping struct{ fields []field }

type field struct {
	key   string
	when  condition
	value node
}

// list is a list whose items may have conditions.
type list struct{ items []item }

type item struct {
	when  condition
	value node
}

// choice is one of two values, by a component.
type choice struct {
	component     string
	with, without any
}

// text is a part of a template that is written by hand, without indentation. In place of a value, it
// is on the line of the key. In place of a field or an item, it is whole lines.
type text string

// absent stands for a missing object or field.
type absent struct{}

// merge returns the template of a value, of which pairs has all variants. One of them has it.
func merge(path string, pairs []pair[any]) (node, error) {
	values, changing := presentIn(pairs), changedBy(pairs)
	switch {
	case len(changing) == 0:
		for _, value := range values {
			if !reflect.DeepEqual(value, values[0]) {
				return nil, fmt.Errorf("%s: components change this field together, which is not supported", path)
			}
		}
		return values[0], nil
	case all[map[string]any](values):
		return mergeMappings(path, pairs)
	case all[[]any](values):
		return mergeLists(path, pairs)
	}
	if len(changing) > 1 {
		return nil, fmt.Errorf("%s: the components %s change this field, of which only one can", path, strings.Join(changing, ", "))
	}
	for _, each := range pairs {
		if each.component == changing[0] && !reflect.DeepEqual(each.with, each.without) {
			return &choice{each.component, each.with, each.without}, nil
		}
	}
	return nil, nil // not reached: the component changes the field in one of the pairs
}

func presentIn(pairs []pair[any]) []any {
	var values []any
	for _, each := range pairs {
		for _, value := range []any{each.without, each.with} {
			if value != (any)(absent{}) {
				values = append(values, value)
			}
		}
	}
	return values
}

// changedBy returns the components that change a value that is there without them.
func changedBy(pairs []pair[any]) []string {
	found := map[string]bool{}
	for _, each := range pairs {
		if !reflect.DeepEqual(each.without, each.with) {
			found[each.component] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func all[T any](values []any) bool {
	return !slices.ContainsFunc(values, func(value any) bool {
		_, is := value.(T)
		return !is
	})
}

func mergeMappings(path string, pairs []pair[any]) (node, error) {
	keys := map[string]bool{}
	for _, value := range presentIn(pairs) {
		for key := range value.(map[string]any) { //nolint:forcetypeassert // checked by merge
			keys[key] = true
		}
	}
	result := &mapping{}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		when, value, err := mergePart(path+"."+key, pairs, func(value any) any {
			if fields, is := value.(map[string]any); is {
				if found, has := fields[key]; has {
					return found
				}
			}
			return absent{}
		})
		if err != nil {
			return nil, err
		}
		result.fields = append(result.fields, field{key, when, value})
	}
	return result, nil
}

func mergeLists(path string, pairs []pair[any]) (node, error) {
	var order []string
	for _, items := range longestFirst(presentIn(pairs)) {
		last := -1
		for _, each := range items {
			key := keyOf(each)
			if at := slices.Index(order, key); at >= 0 {
				last = at
				continue
			}
			last++
			order = slices.Insert(order, last, key)
		}
	}
	result := &list{}
	for _, key := range order {
		when, value, err := mergePart(path+"["+key+"]", pairs, func(value any) any {
			items, _ := value.([]any)
			for _, each := range items {
				if keyOf(each) == key {
					return each
				}
			}
			return absent{}
		})
		if err != nil {
			return nil, err
		}
		result.items = append(result.items, item{when, value})
	}
	return result, nil
}

// longestFirst sorts lists: the longest ones have items of several components, in their order.
func longestFirst(values []any) [][]any {
	lists := make([][]any, 0, len(values))
	for _, value := range values {
		lists = append(lists, value.([]any)) //nolint:forcetypeassert // checked by merge
	}
	slices.SortStableFunc(lists, func(a, b []any) int { return len(b) - len(a) })
	return lists
}

// keyOf tells items of a list apart: by their name, or else by their content.
func keyOf(value any) string {
	if fields, is := value.(map[string]any); is {
		if name, is := fields["name"].(string); is {
			return name
		}
	}
	key, err := json.Marshal(value)
	if err != nil {
		panic(err) // it comes from YAML
	}
	return string(key)
}

// mergePart merges a field or an item, and returns when it is rendered.
func mergePart(path string, pairs []pair[any], part func(any) any) (condition, node, error) {
	parts := make([]pair[any], 0, len(pairs))
	added, removed := map[string]bool{}, map[string]bool{}
	for _, each := range pairs {
		one := pair[any]{each.component, part(each.without), part(each.with)}
		_, missing := one.without.(absent)
		_, gone := one.with.(absent)
		switch {
		case missing && !gone:
			added[one.component] = true
		case gone && !missing:
			removed[one.component] = true
		}
		parts = append(parts, one)
	}
	when := condition{anyOf: slices.Sorted(maps.Keys(added)), noneOf: slices.Sorted(maps.Keys(removed))}
	for i, one := range parts {
		// The condition says this already, except that parts of it may depend on one of several.
		if removed[one.component] {
			one.with = one.without
		}
		if added[one.component] && len(added) == 1 {
			one.without = one.with
		}
		parts[i] = one
	}
	value, err := merge(path, parts)
	return when, value, err
}
