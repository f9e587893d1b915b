// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rewrite

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/cli/explain"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
)

// path leads to a value of an object: names, and indexes such as [0].
type path []string

func (p path) key() string { return strings.Join(p, "\x00") }

// child returns the path of a member or an element. It shares no memory with p.
func (p path) child(segment string) path { return append(slices.Clip(p), segment) }

func (p path) parent() path { return p[:len(p)-1] }
func (p path) last() string { return p[len(p)-1] }

// isIn reports whether a path leads to a value, or to one in it.
func (p path) isIn(value path) bool {
	return len(p) >= len(value) && slices.Equal(p[:len(value)], value)
}

// origins tell which value of an object became which value of the converted object, so that its
// text can stay. Each value becomes one value at most.
type origins struct {
	before any
	// of has the path before the conversion by that after it, and to the reverse.
	of map[string]path
	to map[string]path
	// beside has, by the path after the conversion, a value from which another one was made, too,
	// or several values were. New text is written at its place.
	beside map[string]path
	// plain has, by the path before, the fields that are copied or moved with all that is in them.
	plain map[string]path
}

// pair is a value after the conversion, a value before, and how many of the fields in it say so.
type pair struct {
	after, before path
	fields        int
}

// newOrigins matches the values around fields whose origin the explanation knows.
func newOrigins(object *explain.Object, before any) *origins {
	pairs := map[string]*pair{}
	found := &origins{before, map[string]path{"": {}}, map[string]path{"": {}}, map[string]path{}, map[string]path{}}
	for _, field := range fieldsOf(object) {
		after, source := field.after, field.before
		if field.plain {
			found.plain[source.key()] = after
		}
		for around := after; len(around) > 0; around = around.parent() {
			if found.beside[around.key()] == nil {
				found.beside[around.key()] = source
			}
		}
		if field.several {
			continue
		}
		if _, exists := preserved.Find(before, source); !exists {
			continue
		}
		if field.reshaped {
			after, source = collections(after, source)
		}
		for len(after) > 0 && len(source) > 0 {
			key := after.key() + "\x01" + source.key()
			if pairs[key] == nil {
				pairs[key] = &pair{after: after, before: source}
			}
			pairs[key].fields++
			after, source = after.parent(), source.parent()
		}
	}
	for _, p := range bestFirst(pairs) {
		if found.of[p.after.key()] == nil && found.to[p.before.key()] == nil {
			found.add(p.after, p.before)
		}
	}
	return found
}

// collections returns the paths of the list and of the map that two fields are in.
func collections(after, source path) (_, _ path) {
	isElement := func(p path) bool { return len(p) > 0 && strings.HasPrefix(p[len(p)-1], "[") }
	if !isElement(after) && isElement(after.parent()) && !isElement(source) && !isElement(source.parent()) {
		after = after.parent() // a field of an element is a value of the map
	} else if !isElement(source) && isElement(source.parent()) && !isElement(after) && !isElement(after.parent()) {
		source = source.parent()
	}
	for len(after) > 0 && len(source) > 0 {
		found := isElement(after) != isElement(source)
		if after, source = after.parent(), source.parent(); found {
			break
		}
	}
	return after, source
}

func (o *origins) add(after, before path) {
	o.of[after.key()], o.to[before.key()] = before, after
}

// bestFirst sorts pairs: first values that keep their path, then those with the most fields.
func bestFirst(pairs map[string]*pair) []*pair {
	moved := func(p *pair) int {
		if slices.Equal(p.after, p.before) {
			return 0
		}
		return 1
	}
	return slices.SortedFunc(maps.Values(pairs), func(a, b *pair) int {
		return cmp.Or(cmp.Compare(moved(a), moved(b)), cmp.Compare(b.fields, a.fields),
			slices.Compare(a.after, b.after), slices.Compare(a.before, b.before))
	})
}

// movedField is a field that was copied or made from another one, or from several.
type movedField struct {
	after, before path
	several       bool
	// reshaped is explain.Source.Reshaped.
	reshaped bool
	// plain fields are copied or moved, whatever their value is.
	plain bool
}

// fieldsOf returns the fields of a converted object with their first source, through all steps.
func fieldsOf(object *explain.Object) []movedField {
	var earlier map[string]movedField
	var fields []movedField
	for i, step := range object.Steps {
		fields = nil
		next := map[string]movedField{}
		for _, field := range step.Fields {
			moved, known := sourceOf(&field)
			if known && i > 0 {
				var first movedField
				first, known = earlier[moved.before.key()]
				moved.before, moved.several, moved.plain = first.before, moved.several || first.several, moved.plain && first.plain
				moved.reshaped = moved.reshaped || first.reshaped
			}
			if known {
				next[moved.after.key()] = moved
				fields = append(fields, moved)
			}
		}
		earlier = next
	}
	return fields
}

// sourceOf returns a field with the first of its sources that has a value.
func sourceOf(field *explain.Field) (moved movedField, known bool) {
	for _, source := range field.Sources {
		if source.Value != nil {
			plain := field.How == explain.Copied || field.How == explain.Computed && (field.RuleText == "move" || strings.HasPrefix(field.RuleText, "each"))
			return movedField{explain.Split(field.Path), explain.Split(source.Path), len(field.Sources) > 1, source.Reshaped, plain}, true
		}
	}
	return movedField{}, false
}

// from returns the path of the value that became the one at a path, nil if there is none. A value
// without a known origin is that of the same path, if that one became nothing else.
func (o *origins) from(after path) path {
	if before := o.of[after.key()]; before != nil {
		return before
	}
	if _, exists := preserved.Find(o.before, after); exists && o.to[after.key()] == nil {
		o.add(after, after)
		return after
	}
	return nil
}

// becomes returns the path of what a value became, nil if that is not one value.
func (o *origins) becomes(before path) path {
	if after := o.to[before.key()]; after != nil {
		return after
	}
	for n := len(before) - 1; n > 0; n-- {
		if after := o.plain[before[:n].key()]; after != nil {
			return slices.Concat(after, before[n:])
		}
	}
	return nil
}
