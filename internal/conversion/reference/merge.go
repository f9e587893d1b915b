// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/conversion-operator/conversion-operator/internal/conversion/shape"
)

// merger merges entries into an object. Live data stays unchanged.
type merger struct {
	// schema is the schema of the object, nil if it is unknown.
	schema *shape.Schema
	// key and entry are merged.
	key   entryKey
	entry *entry
	// exact means that an index in the key is a current index.
	exact bool
	// replace means that the entry replaces live data.
	replace                         bool
	lenient, partial, refusesStatus bool
	// became maps the pointers of elements to the indexes that their digests were found at.
	became map[string]int
	// root is the object, direction made it, and added are the pointers of the values that were
	// merged into it.
	root      any
	direction *direction
	added     []string
	// taken are fields that entries must not fill.
	taken []taken
	// restore is all preserved data of the object's version.
	restore *preserved
	// left is the preserved data that remains in the annotation.
	left *preserved
}

// merge merges an entry with a pointer of the rules. Everything below has the pointers of y.
func (m *merger) merge(root map[string]any, key entryKey, e *entry, exact bool) {
	key, e = m.direction.yPlaces.reversed().entry(key, e)
	m.key, m.entry, m.exact = key, e, exact
	full := segments(key.pointer)
	switch {
	case full[0] == "metadata":
		m.metadata(root, full)
	case full[0] == "status" && m.refusesStatus, key.kind == aValue && len(full) == 1 && (full[0] == "apiVersion" || full[0] == "kind"):
		m.retain("", full, e.value)
	default:
		m.into(root, m.schema, "", full, e.value)
	}
}

// into merges a value at the rest of its pointer into a live value, whose own pointer is at.
func (m *merger) into(live any, s *shape.Schema, at string, rest []string, value any) {
	switch {
	case len(rest) == 0 && m.replace && isObject(live):
		clear(live.(map[string]any))
		maps.Copy(live.(map[string]any), clone(value).(map[string]any))
		return
	case len(rest) == 0 && m.replace && isList(live):
		copy(live.([]any), clone(value).([]any)) // they have as many elements
		return
	case len(rest) == 0:
		m.fill(live, s, at, value)
		return
	case s == nil:
		m.retain(at, rest, value)
		return
	}
	below := at + "/" + rest[0]
	switch live := live.(type) {
	case map[string]any:
		name := unescapes.Replace(rest[0])
		if next, found := live[name]; found && len(rest) == 1 && m.isFilled(next, below) {
			if member := s.Field(name); member != nil && (m.lenient || fits(member, value, !m.partial)) {
				live[name], m.added = clone(value), append(m.added, below)
			} else {
				m.retain(at, rest, value)
			}
		} else if found {
			m.into(next, s.Field(name), below, rest[1:], value)
		} else {
			m.add(live, s, at, rest, value)
		}
	case []any:
		element := m.element(live, s, at, rest, value)
		if element != none {
			m.into(element, s.Items(), below, rest[1:], value)
		} else {
			m.retain(at, rest, value)
		}
	default:
		m.retain(at, rest, value)
	}
}

// isFilled reports whether a value is a default that a rule filled in.
func (m *merger) isFilled(live any, pointer string) bool {
	filled := m.direction.defaultAt(m.direction.yPlaces.pointer(pointer), false)
	return filled != nil && m.key.kind == aValue && !slices.Contains(m.added, pointer) && Equal(live, filled.value)
}

// add adds a member, and the objects on its path, but no elements of lists. An absence needs no
// changes.
func (m *merger) add(live map[string]any, s *shape.Schema, at string, rest []string, value any) {
	known := s
	for i, segment := range rest {
		_, isIndex := indexOf(segment)
		if i > 0 && (strings.HasPrefix(segment, "[") || isIndex && known.Items() != nil) {
			known = nil
		} else {
			known = known.Field(unescapes.Replace(segment))
		}
		if known == nil {
			m.retain(at, rest, value)
			return
		}
	}
	made := value
	for i := len(rest) - 1; i > 0; i-- {
		made = map[string]any{unescapes.Replace(rest[i]): made}
	}
	name := unescapes.Replace(rest[0])
	switch {
	case m.key.kind == anAbsence, m.isPartOfLive(m.direction.yPlaces.pointer(at + "/" + strings.Join(rest, "/"))):
	case m.isTaken(live, rest[0], made):
		m.retain(at, rest, value)
	case m.key.kind == aValue && (m.lenient || fits(s.Field(name), made, !m.partial)):
		live[name] = clone(made)
		m.added = append(m.added, at+"/"+strings.Join(rest, "/"))
	default:
		m.retain(at, rest, value)
	}
}

// isPartOfLive reports whether a rule computes the field, with a pointer of the rules, together with live fields: then the
// absence of the field is live too.
func (m *merger) isPartOfLive(pointer string) bool {
	return slices.ContainsFunc(m.direction.fieldsWith(pointer), func(at string) bool {
		live := m.direction.inY(m.root, at)
		return at != pointer && live != none && !slices.Contains(m.added, m.direction.yPlaces.reversed().pointer(at)) && !m.isRestored(live, at)
	})
}

// isRestored reports whether the value at a pointer is its preserved value.
func (m *merger) isRestored(live any, pointer string) bool {
	e := m.restore.find(pointer, aValue)
	return e != nil && e.state == done && Equal(live, e.value)
}

// fieldsWith returns the pointers of the fields that a rule computes together with a field.
func (d *direction) fieldsWith(pointer string) (places []string) {
	for _, t := range d.exchanges {
		if slices.ContainsFunc(t.to, func(f field) bool { return f.Path.pointer() == pointer }) {
			for _, f := range t.to {
				places = append(places, f.Path.pointer())
			}
			return places
		}
	}
	for _, e := range d.collections {
		_, rest, deeper := e.split(pointer)
		if !deeper {
			continue
		}
		for _, place := range e.direction.fieldsWith(rest) {
			places = append(places, strings.TrimSuffix(pointer, rest)+place)
		}
		if len(places) > 0 {
			return places
		}
	}
	return nil
}

// fill adds the missing members of a value to a live value.
func (m *merger) fill(live any, s *shape.Schema, at string, value any) {
	switch {
	case m.key.kind != aValue:
		return
	case s == nil:
		m.retain(at, nil, value)
		return
	}
	switch value := value.(type) {
	case map[string]any:
		if isObject(live) {
			for name := range value {
				m.into(live, s, at, []string{escapes.Replace(name)}, value[name])
			}
		}
	case []any:
		list, isList := live.([]any)
		for _, element := range value {
			if !isList || s.Keys() == nil {
				return
			}
			name := selector(element, s.Keys())
			if same := selectElement(list, name); same != none {
				m.fill(same, s.Items(), at+"/"+name, element)
			}
		}
	}
}

// metadata merges a label or an annotation. Other metadata never comes back.
func (m *merger) metadata(root map[string]any, full []string) {
	text, isText := m.entry.value.(string)
	if m.key.kind != aValue || !isText || len(full) != 3 || full[1] != "labels" && full[1] != "annotations" {
		m.retain("", full, m.entry.value)
		return
	}
	name := unescapes.Replace(full[2])
	isLabel := full[1] == "labels"
	switch {
	case len(validation.IsQualifiedName(strings.ToLower(name))) > 0, isLabel && len(validation.IsQualifiedName(name)) > 0,
		isLabel && len(validation.IsValidLabelValue(text)) > 0:
		m.retain("", full, text)
	case find(root, path{"metadata", full[1], name}) == none:
		put(root, path{"metadata", full[1], name}, text)
	}
}

// retain leaves a value in the annotation. Images describe a whole entry, so a part of an entry
// keeps only a digest, which describes the element around it.
func (m *merger) retain(at string, rest []string, value any) {
	for _, segment := range rest {
		at += "/" + segment
	}
	images := m.entry.images
	if _, isDigest := images.(string); !isDigest && at != m.key.pointer {
		images = nil
	}
	m.left.put(at, m.key.kind, value, images)
	m.left.entries[entryKey{at, m.key.kind}].anchor = m.entry.anchor
}
