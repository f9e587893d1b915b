// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rewrite

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/cli/explain"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserve"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
)

// converted is an object before and after its conversion.
type converted struct {
	before, after any
	explanation   explain.Object
	origins       *origins
	// kept are the entries of preserved data after the conversion.
	kept []conversion.Kept
	// lost are the values that the version cannot express; notes are about values that a rule
	// drops, or that the version writes in another way.
	lost, notes []fieldProblem
}

// fieldProblem is a problem with a field of the object before its conversion.
type fieldProblem struct {
	at      path
	message string
}

func (p *fieldProblem) field() string { return explain.Join(p.at) }

// convert converts an object to the version. An API server makes of the result what it makes of
// the original and a conversion: defaults of the schemas that would differ are written.
func (r *Rewriter) convert(name string, text []byte) (*converted, error) {
	before, err := preserved.Decode(text)
	if err != nil {
		return nil, err
	}
	c, err := r.explained(name, before)
	if err != nil {
		return nil, err
	}
	from := c.explanation.From
	filled, err := r.defaults.Fill(from, before)
	if err != nil {
		return nil, err
	}
	wanted, err := r.decoded(filled, r.to)
	if err != nil {
		return nil, err
	}
	if err := r.explainLost(c, from, filled); err != nil {
		return nil, err
	}
	if !r.keepPreserved || len(c.lost) == 0 {
		c.after = r.withoutPreserved(c)
	}
	c.after, err = r.likeDefaulted(c.after, wanted)
	return c, err
}

// explained converts an object, and explains how.
func (r *Rewriter) explained(name string, before any) (*converted, error) {
	text := preserved.Encode(before)
	explanation, err := r.explainer.Object(name, text, r.to, false)
	if err != nil {
		return nil, err
	}
	explained, err := r.converter.Explain(text, r.to)
	if err != nil {
		return nil, err
	}
	after, err := preserved.Decode(explained.Object)
	return &converted{before: before, after: after, explanation: explanation, origins: newOrigins(&explanation, before), kept: explained.Kept}, err
}

// decoded converts an object to a version and decodes it.
func (r *Rewriter) decoded(object any, to string) (any, error) {
	out, err := r.converter.Convert(nil, preserved.Encode(object), to)
	if err != nil {
		return nil, err
	}
	return preserved.Decode(out)
}

// withoutPreserved removes the annotation of an object that had none before: it only records
// which fields were absent.
func (r *Rewriter) withoutPreserved(c *converted) any {
	if reflect.DeepEqual(r.resource.Without(c.before), c.before) {
		return r.resource.Without(c.after)
	}
	return c.after
}

// explainLost lists the values that only the annotation could keep, and those that a rule drops. A
// value from which another one was made, and that comes back in other words, is not lost.
// The same is true of a null that API servers leave out: the object with defaults lacks it.
func (r *Rewriter) explainLost(c *converted, from string, filled any) error {
	why := map[string]string{}
	for _, step := range c.explanation.Steps {
		for _, each := range step.Preserved {
			why[each.Path] = each.Why
		}
		for _, each := range step.Dropped {
			if each.Version == from {
				c.notes = append(c.notes, fieldProblem{explain.Split(each.Path), "left out: " + each.Why})
			}
		}
	}
	returned, err := r.decoded(r.resource.Without(c.after), from)
	if err != nil {
		return err
	}
	l := &losses{to: r.to, from: from, returned: returned}
	for _, field := range c.explanation.Steps[0].Fields {
		for _, source := range field.Sources {
			l.used = append(l.used, explain.Split(source.Path))
		}
	}
	known := r.resource.Entries(c.before, from)
	for _, kept := range c.kept {
		entry := kept.Entry
		if kept.Version != from || !entry.HasValue() || slices.ContainsFunc(known, func(k preserve.Entry) bool { return k.Is(&entry) }) {
			continue
		}
		at := path(preserved.Segments(entry))
		if entry.Kind == preserve.Insert {
			l.lost = append(l.lost, fieldProblem{at, "version " + l.to + " cannot have the element, which a rule excludes"})
			continue
		}
		if value, exists := preserved.Find(filled, at); exists {
			l.compare(value, at, why[preserved.ExactPath(entry)])
		}
	}
	c.lost, c.notes = l.lost, append(c.notes, l.notes...)
	return nil
}

// losses compares preserved values with those that come back without the annotation.
type losses struct {
	to, from string
	returned any
	// used are the fields from which others were made.
	used        []path
	lost, notes []fieldProblem
}

// compare finds in a value what does not come back, and what comes back in other words. Values that
// come back with more, such as a default, are not lost.
func (l *losses) compare(value any, at path, why string) {
	returned, exists := preserved.Find(l.returned, at)
	switch value := value.(type) {
	case map[string]any:
		if _, ok := returned.(map[string]any); ok {
			for _, name := range slices.Sorted(maps.Keys(value)) {
				l.compare(value[name], at.child(name), why)
			}
			return
		}
	case []any:
		if list, ok := returned.([]any); ok && len(list) == len(value) {
			for i := range value {
				l.compare(value[i], at.child(index(i)), why)
			}
			return
		}
	default:
		if exists && reflect.DeepEqual(value, returned) {
			return
		}
		if exists && !isLarge(returned) && slices.ContainsFunc(l.used, at.isIn) {
			l.notes = append(l.notes, fieldProblem{at, fmt.Sprintf("is %s if it is read at %s again", preserved.Encode(returned), l.from)})
			return
		}
	}
	message := "version " + l.to + " cannot express it"
	if why != "" {
		message += ": " + why
	}
	l.lost = append(l.lost, fieldProblem{at, message})
}

// likeDefaulted changes an object so that it is, with the defaults of its version, what the
// conversion of an object with all defaults is.
func (r *Rewriter) likeDefaulted(object, wanted any) (any, error) {
	target, err := r.defaults.Fill(r.to, r.resource.Without(wanted))
	if err != nil {
		return nil, err
	}
	has, err := r.defaults.Fill(r.to, object)
	if err != nil {
		return nil, err
	}
	bare := r.resource.Without(has)
	if reflect.DeepEqual(bare, target) {
		return object, nil
	}
	object = overlay(object, bare, target)
	has, err = r.defaults.Fill(r.to, object)
	if err == nil && !reflect.DeepEqual(r.resource.Without(has), target) {
		return wanted, nil
	}
	return object, err
}

// overlay writes into an object what differs between it with defaults, and the target.
func overlay(object, has, target any) any {
	if reflect.DeepEqual(has, target) {
		return object
	}
	switch target := target.(type) {
	case map[string]any:
		members, ok := object.(map[string]any)
		filled, also := has.(map[string]any)
		if !ok && object != nil || !also {
			return target
		}
		members = maps.Clone(members)
		if members == nil {
			members = map[string]any{}
		}
		for name, value := range target {
			if !reflect.DeepEqual(filled[name], value) {
				members[name] = overlay(members[name], filled[name], value)
			}
		}
		for name := range filled {
			if _, wanted := target[name]; !wanted {
				delete(members, name)
			}
		}
		return members
	case []any:
		elements, ok := object.([]any)
		filled, also := has.([]any)
		if !ok || !also || len(elements) != len(target) || len(filled) != len(target) {
			return target
		}
		elements = slices.Clone(elements)
		for i := range target {
			elements[i] = overlay(elements[i], filled[i], target[i])
		}
		return elements
	}
	return target
}
