// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preserved

import (
	"reflect"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserve"
)

// Fate is what happened to an entry in a conversion.
type Fate string

// The fates.
const (
	// Data means that the entry was restored: its value is data now.
	Data Fate = "Data"
	// Superseded means that there is other data at its path.
	Superseded Fate = "Superseded"
	// Deleted means that the object or element that contained it is gone.
	Deleted Fate = "Deleted"
	// CarriedOn means that it is still in the annotation.
	CarriedOn Fate = "CarriedOn"
	// Preserved means that it is data at its version, and is preserved again at others.
	Preserved Fate = "Preserved"
	// Lost is everything else.
	Lost Fate = "Lost"
)

// FateAt returns the fate of an entry of a version in an object that was converted to
// that version. It compares only the objects before and after the conversion.
func (r Resource) FateAt(e preserve.Entry, version string, before, after any) Fate {
	live := findAll(after, e.At)
	isThere := func(value any) bool { return includes(value, valueOf(e)) }
	switch {
	case Contains(r.Entries(after, version), e):
		return CarriedOn
	case !e.HasValue():
		return Data // an absence or an order has no value that could be missing
	case e.Kind == preserve.Insert:
		live = slices.DeleteFunc(elementsOf(live), func(element any) bool { return !isThere(element) })
		if len(live) > 0 {
			return Data
		}
	case slices.ContainsFunc(live, isThere):
		return Data
	case isElsewhere(before, e.At):
		return Deleted
	case len(live) > 0 && !hasUnnamed(e.At):
		return Superseded
	}
	if !slices.ContainsFunc(findAll(after, e.At[:len(e.At)-1]), isContainer) {
		return Deleted
	}
	return Lost
}

// PredictFate returns what happens to an entry when a client rewrites its object: object
// is the current one, at its conversion to the entry's version, and back its conversion
// from there.
func (r Resource) PredictFate(e preserve.Entry, version string, object, at, back any) Fate {
	fate := r.FateAt(e, version, object, at)
	again := func(other preserve.Entry) bool { return other.At.Is(e.At) || isBelow(other, e) }
	if fate == Data && slices.ContainsFunc(r.Entries(back, version), again) {
		return Preserved
	}
	return fate
}

func isBelow(e, other preserve.Entry) bool {
	return len(e.At) > len(other.At) && e.At[:len(other.At)].Is(other.At)
}

// Contains reports whether entries contain an entry, or parts of it.
func Contains(entries []preserve.Entry, e preserve.Entry) bool {
	return slices.ContainsFunc(entries, func(other preserve.Entry) bool {
		if other.Is(&e) {
			return reflect.DeepEqual(valueOf(other), valueOf(e))
		}
		return e.Kind == preserve.Value && isBelow(other, e)
	})
}

// SameEntry reports whether two objects at a version agree about an entry: as data, or in
// the annotation.
func (r Resource) SameEntry(e preserve.Entry, version string, a, b any) bool {
	left, right := findAll(a, e.At), findAll(b, e.At)
	if !reflect.DeepEqual(left, right) {
		return false
	}
	return len(left) > 0 || Contains(r.Entries(a, version), e) == Contains(r.Entries(b, version), e)
}

// includes reports whether a value has all members of another one.
func includes(value, part any) bool {
	if part, isObject := part.(map[string]any); isObject {
		object, ok := value.(map[string]any)
		for name, member := range part {
			if other, ok := object[name]; !ok || !includes(other, member) {
				return false
			}
		}
		return ok
	}
	return reflect.DeepEqual(value, part)
}

func isContainer(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// Obstacle says why an entry stays in the annotation, although the object is at the
// entry's version. The text follows a field name: "v1 has no such field".
func Obstacle(ruleset *conversion.Ruleset, version string, e preserve.Entry, object any) string {
	const unknown = "the rules know no place for it"
	var schema *shape.Schema
	if ruleset != nil {
		schema, _ = shape.Read(ruleset.Schemas[version]) // a converter has read it before
	}
	if schema == nil {
		return unknown
	}
	for i, segment := range e.At {
		if segment.Element {
			if len(findAll(object, e.At[:i+1])) == 0 {
				return "the list has no such element any more"
			}
			schema = schema.Items()
		} else {
			schema = schema.Field(segment.Name)
		}
		if schema == nil {
			return version + " has no such field"
		}
	}
	if e.Kind == preserve.Insert {
		schema = schema.Items()
	}
	if e.HasValue() && schema != nil {
		if err := schema.Fits(e.Value); err != nil {
			return "the schema of " + version + " does not allow it: " + err.Error()
		}
	}
	return unknown
}

// findAll returns the values to which an address may lead: an element without keys may be any one of its list, as what it
// became in the other version identifies it.
func findAll(value any, at preserve.Address) []any {
	values := []any{value}
	for _, segment := range at {
		var inside []any
		for _, value := range values {
			switch value := value.(type) {
			case map[string]any:
				if member, found := value[segment.Name]; found && !segment.Element {
					inside = append(inside, member)
				}
			case []any:
				if segment.Element {
					inside = append(inside, elementsNamed(value, segment.Name)...)
				}
			}
		}
		values = inside
	}
	return values
}

func elementsNamed(list []any, name string) []any {
	switch name[:1] {
	case "#":
		return list
	case "=":
		return slices.DeleteFunc(slices.Clone(list), func(element any) bool {
			return !strings.HasPrefix(name[1:]+",", string(Encode(element))+",")
		})
	}
	if i := indexOf(list, "["+name+"]"); i >= 0 {
		return list[i : i+1]
	}
	return nil
}

func elementsOf(lists []any) (elements []any) {
	for _, list := range lists {
		list, _ := list.([]any)
		elements = append(elements, list...)
	}
	return elements
}

func isUnnamed(s preserve.Segment) bool { return s.Element && strings.HasPrefix(s.Name, "#") }

// hasUnnamed reports whether an address leads into an element without keys.
func hasUnnamed(at preserve.Address) bool { return slices.ContainsFunc(at, isUnnamed) }

// isElsewhere reports whether an address leads into an element without keys that an object of the other version does not
// have any more: it was edited, or removed.
func isElsewhere(object any, at preserve.Address) bool {
	return slices.ContainsFunc(at, func(s preserve.Segment) bool { return isUnnamed(s) && !hasElement(object, s.Name[1:]) })
}

// hasElement reports whether any list in a value has an element with this digest.
func hasElement(value any, digest string) bool {
	digest, _, _ = strings.Cut(digest, ",")
	switch value := value.(type) {
	case map[string]any:
		for _, member := range value {
			if hasElement(member, digest) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(value, func(element any) bool {
			return conversion.Digest(Encode(element)) == digest || hasElement(element, digest)
		})
	}
	return false
}
