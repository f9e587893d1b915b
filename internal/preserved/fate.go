// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preserved

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/conversion/shape"
)

// Fate is what became of an entry.
type Fate string

// The fates.
const (
	// Data is an entry in whose place there is data: it was restored.
	Data Fate = "Data"
	// Superseded is an entry in whose place there is other data.
	Superseded Fate = "Superseded"
	// Deleted is an entry around whose place there is no object any more.
	Deleted Fate = "Deleted"
	// CarriedOn is an entry that is in the annotation still.
	CarriedOn Fate = "CarriedOn"
	// Kept is an entry that is data at its version, and will be preserved again.
	Kept Fate = "Preserved"
	// Lost is an entry that is none of this.
	Lost Fate = "Lost"
)

// Arrived says what became of an entry of a version in an object that was converted
// to that version. It is told from the objects alone, before and after.
func (r Resource) Arrived(e conversion.Entry, version string, before, after any) Fate {
	place := split(e.Pointer)
	live, there := find(after, place)
	switch {
	case Holds(r.Entries(after, version), e):
		return CarriedOn
	case isIndexed(e):
		return arrivedElement(e, place, before, after)
	case e.Kind != conversion.EntryValue:
		return Data // that nothing is there, or an order, cannot be missing
	case there && Has(live, decode(e.Value)):
		return Data
	case there:
		return Superseded
	}
	if around, there := find(after, place[:e.Anchor]); !there || !isContainer(around) {
		return Deleted
	}
	return Lost
}

// arrivedElement is Arrived for an element without keys. It comes back as a whole, in
// the place of the element that it became, unless that was edited. It is lost if there
// is one that it became, and what is there instead lacks a part of it.
func arrivedElement(e conversion.Entry, place []string, before, after any) Fate {
	value := decode(e.Value)
	found, _ := find(after, place[:len(place)-1])
	list, _ := found.([]any)
	switch {
	case len(list) == 0:
		return Deleted
	case slices.ContainsFunc(list, func(element any) bool { return Has(element, value) && Has(value, element) }):
		return Data
	case slices.ContainsFunc(list, func(element any) bool { return Has(value, element) }) && (e.Digest == "" || became(before, e.Digest)):
		return Lost
	}
	return Superseded
}

func isIndexed(e conversion.Entry) bool {
	place := split(e.Pointer)
	return e.Kind == conversion.EntryValue && strings.Trim(place[len(place)-1], "0123456789") == ""
}

// became reports whether a list anywhere in a value has an element of a digest.
func became(value any, digest string) bool {
	switch value := value.(type) {
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(value)), func(member any) bool { return became(member, digest) })
	case []any:
		return slices.ContainsFunc(value, func(element any) bool {
			return conversion.Digest(encode(element)) == digest || became(element, digest)
		})
	}
	return false
}

// Foretold says what becomes of an entry when an object is rewritten: from the object,
// as it is at the entry's version, and as it is when it has come back from there.
func (r Resource) Foretold(e conversion.Entry, version string, object, at, back any) Fate {
	fate := r.Arrived(e, version, object, at)
	if fate == Data && mentions(r.Entries(back, version), e.Pointer) {
		return Kept
	}
	return fate
}

// mentions reports whether entries are of a place, or of places in it.
func mentions(entries []conversion.Entry, pointer string) bool {
	return slices.ContainsFunc(entries, func(e conversion.Entry) bool {
		return e.Pointer == pointer || strings.HasPrefix(e.Pointer, pointer+"/")
	})
}

// Holds reports whether an entry is among those of an annotation, or parts of it are.
func Holds(entries []conversion.Entry, e conversion.Entry) bool {
	return slices.ContainsFunc(entries, func(other conversion.Entry) bool {
		if other.Pointer == e.Pointer && other.Kind == e.Kind {
			return reflect.DeepEqual(decode(other.Value), decode(e.Value))
		}
		return e.Kind == conversion.EntryValue && strings.HasPrefix(other.Pointer, e.Pointer+"/")
	})
}

// Alike reports whether two objects of a version have the same of an entry: as data,
// or in the annotation.
func (r Resource) Alike(e conversion.Entry, version string, a, b any) bool {
	place := split(e.Pointer)
	if isIndexed(e) {
		place = place[:len(place)-1]
	}
	left, isLeft := find(a, place)
	right, isRight := find(b, place)
	if isLeft != isRight || !reflect.DeepEqual(left, right) {
		return false
	}
	return isLeft || Holds(r.Entries(a, version), e) == Holds(r.Entries(b, version), e)
}

// Has reports whether a value has all that another one has.
func Has(value, part any) bool {
	if part, isObject := part.(map[string]any); isObject {
		object, ok := value.(map[string]any)
		for name, member := range part {
			if other, there := object[name]; !there || !Has(other, member) {
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

// Obstacle says why an entry of a version stays in the annotation though the object
// is at that version. It goes on where a field was named: "v1 has no such field".
func Obstacle(ruleset *conversion.Ruleset, version string, e conversion.Entry, object any) string {
	var schema *shape.Schema
	if ruleset != nil {
		schema, _ = shape.Read(ruleset.Schemas[version]) // a converter has read it before
	}
	if schema == nil {
		return "the rules know no place for it"
	}
	place := split(e.Pointer)
	for i, segment := range place {
		if isElementOf(schema, segment) {
			if _, there := find(object, place[:i+1]); !there {
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
	if e.Kind == conversion.EntryValue {
		if err := schema.Fits(e.Value); err != nil {
			return "the schema of " + version + " does not allow it: " + err.Error()
		}
	}
	return "the rules know no place for it"
}

func isElementOf(schema *shape.Schema, segment string) bool {
	return isSelector(segment) || schema.Items() != nil && !schema.IsObject() && strings.Trim(segment, "0123456789") == ""
}
