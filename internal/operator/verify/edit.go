// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
)

// edit is one change of an object by a client.
type edit struct {
	// pattern is the path of the edited field, with [*] for elements and for members of maps, and
	// what is the kind of change.
	pattern, what string
	// text describes the edit, with code between backticks.
	text string
	// make returns the changed object. The original one stays unchanged.
	make func() any
}

// The kinds of change.
const (
	editSet    = "set"
	editAdd    = "add"
	editInsert = "insert"
	editRemove = "remove"
)

// edits passes the edits of an object on: each leaf field is set to another value, and in each list an
// element is removed, and another one inserted in front. Members of maps are removed. Fields that are missing
// get the value that a filled object has (crds.FilledCanary). Metadata stays. If the edit was not possible,
// which try reports, there is another value.
func edits(object, filled any, of *schema.Structural, try func(edit) bool) {
	members, _ := object.(map[string]any)
	editor{try}.members(members, filled, of, "", "", envelope, func(value any) any { return value })
}

// envelope are the fields that are in every version.
var envelope = []string{"apiVersion", "kind", "metadata"}

type editor struct{ try func(edit) bool }

// members edits what is in an object, without some members. Put returns the whole object with another object in place
// of it.
func (e editor) members(members map[string]any, filled any, of *schema.Structural, path, pattern string, without []string, put func(any) any) {
	samples, _ := filled.(map[string]any)
	names := slices.AppendSeq(slices.Collect(maps.Keys(members)), maps.Keys(samples))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		_, has := members[name]
		_, isField := memberSchema(of, name)
		switch {
		case slices.Contains(without, name):
		case has:
			e.member(members, name, samples, of, path, pattern, put)
		case isField:
			step, sample := conversion.Path{name}.String(), samples[name]
			e.try(edit{pattern + step, editAdd, "set " + code(path+step) + " to " + code(string(preserved.Encode(sample))), func() any {
				more := maps.Clone(members)
				more[name] = sample
				return put(more)
			}})
		}
	}
}

func (e editor) member(members map[string]any, name string, samples map[string]any, of *schema.Structural, path, pattern string, put func(any) any) {
	child, isField := memberSchema(of, name)
	step := conversion.Path{name}.String()
	path, pattern = path+step, pattern+step
	if !isField {
		pattern = pattern[:len(pattern)-len(step)] + conversion.Each
		e.try(edit{pattern, editRemove, "removed " + code(path), func() any {
			left := maps.Clone(members)
			delete(left, name)
			return put(left)
		}})
	}
	sample := samples[name]
	if !isField {
		sample = samples[crds.CanaryKey]
	}
	e.value(members[name], sample, child, path, pattern, func(value any) any {
		changed := maps.Clone(members)
		changed[name] = value
		return put(changed)
	})
}

func (e editor) value(value, sample any, of *schema.Structural, path, pattern string, put func(any) any) {
	switch value := value.(type) {
	case map[string]any:
		e.members(value, sample, of, path, pattern, nil, put)
	case []any:
		e.list(value, sample, of, path, pattern, put)
	default:
		for _, other := range others(value, of) {
			if e.try(edit{pattern, editSet, "set " + code(path) + " to " + code(string(preserved.Encode(other))), func() any { return put(other) }}) {
				break
			}
		}
	}
}

func (e editor) list(list []any, sample any, of *schema.Structural, path, pattern string, put func(any) any) {
	if len(list) == 0 {
		return
	}
	var sampled any
	if samples, _ := sample.([]any); len(samples) > 0 {
		sampled = samples[0]
	}
	var items *schema.Structural
	var keys []string
	if of != nil {
		items, keys = of.Items, of.XListMapKeys
	}
	first := path + "[0]"
	e.try(edit{pattern, editRemove, "removed " + code(first), func() any { return put(list[1:]) }})
	for _, other := range otherElements(list[0], items, keys) {
		text := "inserted " + code(string(preserved.Encode(other))) + " before " + code(first)
		if e.try(edit{pattern, editInsert, text, func() any { return put(slices.Insert(slices.Clone(list), 0, other)) }}) {
			break
		}
	}
	for i, element := range list {
		at, below, put := path+"["+strconv.Itoa(i)+"]", pattern+conversion.Each, func(value any) any {
			changed := slices.Clone(list)
			changed[i] = value
			return put(changed)
		}
		members, isObject := element.(map[string]any)
		if !isObject {
			e.value(element, sampled, items, at, below, put)
			continue
		}
		e.members(members, sampled, items, at, below, keys, put) // with another key it is another element
	}
}

// memberSchema returns the schema of a member, nil if it has none, and whether it is a field, not a
// member of a map.
func memberSchema(of *schema.Structural, name string) (member *schema.Structural, isField bool) {
	if of == nil {
		return nil, false
	}
	if field, is := of.Properties[name]; is {
		return &field, true
	}
	if of.AdditionalProperties != nil {
		return of.AdditionalProperties.Structural, false
	}
	return nil, false
}

// otherElements returns elements like one of a list, with other keys, if the list has keys.
func otherElements(element any, of *schema.Structural, keys []string) (elements []any) {
	members, isObject := element.(map[string]any)
	if !isObject {
		return others(element, of)
	}
	if len(keys) == 0 {
		keys = slices.Sorted(maps.Keys(members))
	}
	for _, name := range keys {
		child, _ := memberSchema(of, name)
		for _, other := range others(members[name], child) {
			changed := maps.Clone(members)
			changed[name] = other
			elements = append(elements, changed)
		}
	}
	return elements
}

var digits = regexp.MustCompile(`[0-9]+`)

// others returns values that a client could set a field to instead, the most likely first.
func others(value any, of *schema.Structural) (values []any) {
	if of != nil && of.ValueValidation != nil && len(of.ValueValidation.Enum) > 0 {
		for _, allowed := range of.ValueValidation.Enum {
			if allowed.Object != value {
				values = append(values, allowed.Object)
			}
		}
		return values
	}
	switch value := value.(type) {
	case bool:
		return []any{!value}
	case json.Number:
		if n, err := value.Int64(); err == nil {
			return []any{json.Number(fmt.Sprint(n + 1)), json.Number(fmt.Sprint(n - 1))}
		}
		return []any{json.Number("1.5")}
	case string:
		bumped := digits.ReplaceAllStringFunc(value, func(text string) string {
			n, _ := strconv.ParseUint(text, 10, 32)
			return strconv.FormatUint(n+1, 10)
		})
		for _, text := range []string{bumped, value + "x", "x" + value} {
			if text != value {
				values = append(values, text)
			}
		}
	}
	return values
}
