// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preserved

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
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
func (r Resource) FateAt(e conversion.Entry, version string, before, after any) Fate {
	path := Split(e.Pointer)
	live, ok := Find(after, path)
	switch {
	case Contains(r.Entries(after, version), e):
		return CarriedOn
	case isIndexed(e):
		return elementFate(e, path, before, after)
	case e.Kind == conversion.EntryExcluded:
		return excludedFate(e, path, after)
	case e.Kind != conversion.EntryValue:
		return Data // an absence or an order has no value that could be missing
	case ok && includes(live, valueOf(e)):
		return Data
	case ok:
		return Superseded
	}
	if anchor, ok := Find(after, path[:e.Anchor]); !ok || !isContainer(anchor) {
		return Deleted
	}
	return Lost
}

// elementFate returns the fate of an element without keys. A converter restores it as a
// whole, in place of the element that it was converted to, unless a client has changed
// that one. It is lost if that one exists, and only a part of the element came back.
func elementFate(e conversion.Entry, path []string, before, after any) Fate {
	value := valueOf(e)
	list, isThere := listOf(e, path, after)
	switch {
	case len(list) == 0:
		return Deleted
	case isThere:
		return Data
	case slices.ContainsFunc(list, func(element any) bool { return includes(value, element) }) && hasElement(before, e.Digest):
		return Lost
	}
	return Superseded
}

// excludedFate returns the fate of an element that was excluded. It is put back unless the object around its
// list is gone.
func excludedFate(e conversion.Entry, path []string, after any) Fate {
	if _, isThere := listOf(e, path, after); isThere {
		return Data
	}
	if around, ok := Find(after, path[:max(0, len(path)-2)]); !ok || !isContainer(around) {
		return Deleted
	}
	return Lost
}

// listOf returns the list of an element, and whether it has an equal one.
func listOf(e conversion.Entry, path []string, object any) (list []any, isThere bool) {
	found, _ := Find(object, path[:len(path)-1])
	list, _ = found.([]any)
	value := valueOf(e)
	return list, slices.ContainsFunc(list, func(element any) bool { return reflect.DeepEqual(element, value) })
}

// isIndexed reports whether an entry is the value of a list's element without keys.
func isIndexed(e conversion.Entry) bool {
	path := Split(e.Pointer)
	return e.Kind == conversion.EntryValue && isIndex(path[len(path)-1])
}

// hasElement reports whether any list in a value has an element with this digest.
func hasElement(value any, digest string) bool {
	switch value := value.(type) {
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(value)), func(member any) bool { return hasElement(member, digest) })
	case []any:
		return slices.ContainsFunc(value, func(element any) bool {
			return conversion.Digest(Encode(element)) == digest || hasElement(element, digest)
		})
	}
	return false
}

// PredictFate returns what happens to an entry when a client rewrites its object: object
// is the current one, at its conversion to the entry's version, and back its conversion
// from there.
func (r Resource) PredictFate(e conversion.Entry, version string, object, at, back any) Fate {
	fate := r.FateAt(e, version, object, at)
	again := func(other conversion.Entry) bool { return other.Pointer == e.Pointer || isBelow(other, e) }
	if fate == Data && slices.ContainsFunc(r.Entries(back, version), again) {
		return Preserved
	}
	return fate
}

func isBelow(e, other conversion.Entry) bool { return strings.HasPrefix(e.Pointer, other.Pointer+"/") }

// Contains reports whether entries contain an entry, or parts of it.
func Contains(entries []conversion.Entry, e conversion.Entry) bool {
	return slices.ContainsFunc(entries, func(other conversion.Entry) bool {
		if other.Pointer == e.Pointer && other.Kind == e.Kind {
			return reflect.DeepEqual(valueOf(other), valueOf(e))
		}
		return e.Kind == conversion.EntryValue && isBelow(other, e)
	})
}

// SameEntry reports whether two objects at a version agree about an entry: as data, or in
// the annotation.
func (r Resource) SameEntry(e conversion.Entry, version string, a, b any) bool {
	path := Split(e.Pointer)
	if isIndexed(e) || e.Kind == conversion.EntryExcluded {
		path = path[:len(path)-1]
	}
	left, inA := Find(a, path)
	right, inB := Find(b, path)
	if inA != inB || !reflect.DeepEqual(left, right) {
		return false
	}
	return inA || Contains(r.Entries(a, version), e) == Contains(r.Entries(b, version), e)
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
func Obstacle(ruleset *conversion.Ruleset, version string, e conversion.Entry, object any) string {
	const unknown = "the rules know no place for it"
	var schema *shape.Schema
	if ruleset != nil {
		schema, _ = shape.Read(ruleset.Schemas[version]) // a converter has read it before
	}
	if schema == nil {
		return unknown
	}
	path := Split(e.Pointer)
	for i, segment := range path {
		if isElementOf(schema, segment) {
			isExcluded := e.Kind == conversion.EntryExcluded && i == len(path)-1
			if _, ok := Find(object, path[:i+1]); !ok && !isExcluded {
				return "the list has no such element any more"
			}
			schema = schema.Items()
		} else {
			schema = schema.Field(segment)
		}
		if schema == nil {
			return version + " has no such field"
		}
	}
	if e.Kind == conversion.EntryValue || e.Kind == conversion.EntryExcluded {
		if err := schema.Fits(e.Value); err != nil {
			return "the schema of " + version + " does not allow it: " + err.Error()
		}
	}
	return unknown
}

func isElementOf(schema *shape.Schema, segment string) bool {
	return isSelector(segment) || schema.Items() != nil && !schema.IsObject() && isIndex(segment)
}
