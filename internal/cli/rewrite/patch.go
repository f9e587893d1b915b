// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rewrite

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/cli/explain"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
)

// directive is a member of a strategic merge patch that says how to merge.
const directive = "$patch"

// convertPatch converts a strategic merge patch: a part of an object, in which a null deletes a
// field. Nothing is added to it that does not come from one of its fields.
func (r *Rewriter) convertPatch(name string, text []byte) (*converted, error) {
	before, err := preserved.Decode(text)
	if err != nil {
		return nil, err
	}
	apiVersion, _ := before.(map[string]any)["apiVersion"].(string)
	part := &part{sample: r.samples[apiVersion[strings.LastIndex(apiVersion, "/")+1:]]}
	c, err := r.convertPart(name, part.fill(before, nil))
	if err != nil {
		return nil, err
	}
	if part.err != nil {
		return nil, part.err
	}
	c.before = before
	for _, each := range part.marks {
		at := c.origins.becomes(each.at)
		if each.name != "" && at != nil {
			c.after = put(c.after, at.child(each.name), each.value)
			continue
		}
		if at == nil || !r.movesAsWhole(c, each.at) {
			field := explain.Join(each.at)
			return nil, fmt.Errorf("%s: the patch %s, which is not one field at %s", field, each.says(), r.to)
		}
		c.after = put(c.after, at, nil)
	}
	c.origins.before = before
	return c, nil
}

// convertPart converts a part of an object, without what conversions and defaults add to it.
func (r *Rewriter) convertPart(name string, before any) (*converted, error) {
	c, err := r.explained(name, before)
	if err != nil {
		return nil, err
	}
	if err := r.explainLost(c, c.explanation.From, before); err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, field := range fieldsOf(&c.explanation) {
		known[field.after.key()] = true
	}
	c.after = r.resource.Without(c.after)
	for _, field := range c.explanation.Steps[len(c.explanation.Steps)-1].Fields {
		if at := path(explain.Split(field.Path)); !known[at.key()] && field.How != explain.Absent && at[0] != "metadata" {
			c.after = without(c.after, at)
		}
	}
	return c, nil
}

// movesAsWhole reports whether everything in a value before a conversion is in one value after it.
func (r *Rewriter) movesAsWhole(c *converted, from path) bool {
	at := c.origins.becomes(from)
	if at == nil {
		return false
	}
	for _, field := range fieldsOf(&c.explanation) {
		if field.before.isIn(from) && !field.after.isIn(at) {
			return false
		}
	}
	return true
}

// part prepares a patch for its conversion.
type part struct {
	// sample is an object with a value in every field.
	sample any
	// marks are nulls and directives, which are put back after the conversion.
	marks []mark
	err   error
}

// mark is a null, or a directive with a name and a value.
type mark struct {
	at    path
	name  string
	value any
}

func (m *mark) says() string {
	if m.name != "" {
		return "has a " + m.name
	}
	return "deletes it"
}

// fill returns a value without directives, and with a sample of each field that it deletes.
func (p *part) fill(value any, at path) any {
	switch value := value.(type) {
	case map[string]any:
		filled := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			switch {
			case name == directive:
				p.marks = append(p.marks, mark{at, name, value[name]})
			case strings.HasPrefix(name, "$"):
				p.err = fmt.Errorf("%s: only %s is known of the directives of patches", explain.Join(at.child(name)), directive)
			default:
				filled[name] = p.fill(value[name], at.child(name))
			}
		}
		return filled
	case []any:
		var filled []any
		for i, element := range value {
			filled = append(filled, p.fill(element, at.child(index(i))))
		}
		return filled
	case nil:
		sample, exists := find(p.sample, at)
		if !exists {
			p.err = fmt.Errorf("%s: the schema has no such field", explain.Join(at))
			return nil
		}
		p.marks = append(p.marks, mark{at: at})
		return sample
	}
	return value
}

// find returns the value at a path of a sample, in the first element of each list, and for a name
// that the schema does not know in the only member of a map.
func find(sample any, at path) (value any, exists bool) {
	for _, segment := range at {
		switch around := sample.(type) {
		case []any:
			if len(around) == 0 {
				return nil, false
			}
			sample = around[0]
		case map[string]any:
			if sample, exists = around[segment]; !exists {
				if sample, exists = around[crds.CanaryKey]; !exists {
					return nil, false
				}
			}
		default:
			return nil, false
		}
	}
	return sample, true
}

// put returns a copy of an object with a value at a path.
func put(object any, at path, value any) any {
	if len(at) == 0 {
		return value
	}
	switch object := object.(type) {
	case []any:
		list := slices.Clone(object)
		for i := range list {
			if index(i) == at[0] {
				list[i] = put(list[i], at[1:], value)
			}
		}
		return list
	case map[string]any:
		members := maps.Clone(object)
		members[at[0]] = put(members[at[0]], at[1:], value)
		return members
	}
	return map[string]any{at[0]: put(nil, at[1:], value)}
}

// without returns a copy of an object without the value at a path, and without objects around it
// that have nothing else.
func without(object any, at path) any {
	members, ok := object.(map[string]any)
	if !ok || len(at) == 0 {
		return object
	}
	members = maps.Clone(members)
	if len(at) == 1 {
		delete(members, at[0])
		return members
	}
	inner, exists := members[at[0]]
	if !exists {
		return object
	}
	members[at[0]] = without(inner, at[1:])
	if left, isMapping := members[at[0]].(map[string]any); isMapping && len(left) == 0 {
		delete(members, at[0])
	}
	return members
}

// jsonPatch translates the operations of a JSON patch, RFC 6902, for objects of a version.
type jsonPatch struct {
	*Rewriter
	from string
}

// translated is an operation after the translation.
type translated struct {
	pointer string
	// c and from have the value of the operation in an object, if it has one.
	c        *converted
	at, from path
}

// translate returns where a pointer leads at the other version, and the value there.
func (j *jsonPatch) translate(pointer string, value any, hasValue, adds bool) (*translated, error) {
	segments := preserved.Split(pointer)
	if pointer == "" || segments[0] != "spec" && segments[0] != "status" {
		return &translated{pointer: pointer}, nil // metadata is the same at all versions
	}
	var from path
	var elements []string
	sample := j.samples[j.from]
	for _, segment := range segments {
		around, _ := find(sample, from)
		if _, isList := around.([]any); isList {
			elements, segment = append(elements, segment), index(0)
		}
		from = from.child(segment)
	}
	if !hasValue {
		var exists bool
		if value, exists = find(sample, from); !exists {
			return nil, fmt.Errorf("version %s has no field %s", j.from, explain.Join(from))
		}
	}
	object := withValue(from, value)
	object["apiVersion"], object["kind"], object["metadata"] = j.group+"/"+j.from, j.kind, map[string]any{"name": "patched"}
	c, err := j.convertPart("", object)
	if err != nil {
		return nil, err
	}
	if len(c.lost) > 0 {
		return nil, fmt.Errorf("%s: %s", c.lost[0].field(), c.lost[0].message)
	}
	if !j.movesAsWhole(c, from) {
		return nil, fmt.Errorf("%s is not one field at %s", explain.Join(from), j.to)
	}
	at := c.origins.becomes(from)
	if parent := c.origins.becomes(from.parent()); adds && !slices.Equal(parent, at.parent()) {
		return nil, fmt.Errorf("%s becomes %s, in an object that may be missing", explain.Join(from), explain.Join(at))
	}
	moved := slices.Clone(at)
	for i, segment := range moved {
		if segment != index(0) {
			continue
		}
		if len(elements) == 0 {
			return nil, errOtherList
		}
		moved[i], elements = elements[0], elements[1:]
	}
	if len(elements) > 0 {
		return nil, errOtherList
	}
	return &translated{conversion.Path(moved).Pointer(), c, at, from}, nil
}

var errOtherList = errors.New("a list becomes another one in a way that a patch cannot say")

// withValue returns an object that has only a value at a path. Lists have one element.
func withValue(at path, value any) map[string]any {
	for _, segment := range slices.Backward(at[1:]) {
		if segment == index(0) {
			value = []any{value}
		} else {
			value = map[string]any{segment: value}
		}
	}
	return map[string]any{at[0]: value}
}
