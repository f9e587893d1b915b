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

// merger brings entries into an object. Live data stays unchanged.
type merger struct {
	// schema is that of the object, nil where it is not known.
	schema *shape.Schema
	// at and entry are what is merged; exact tells that an index in its place is that
	// of now.
	at    pathContext
	entry *entry
	exact bool
	// whole tells that the entry takes the place of what is live.
	whole bool
	// lenient and partial are those of kept, refusesStatus that of the ruleset.
	lenient, partial, refusesStatus bool
	// became has the indexes of elements that are found by their digests.
	became map[string]int
	// root is the object, way the one that made it, added are the places of what was
	// merged into it.
	root  any
	way   *direction
	added []string
	// taken are fields that entries must not fill.
	taken []taken
	// restore is all that is preserved of the version of the object.
	restore *preserved
	// left is what is carried on.
	left *preserved
}

func (m *merger) merge(root map[string]any, at pathContext, e *entry, exact bool) {
	m.at, m.entry, m.exact = at, e, exact
	full := segments(at.pointer)
	switch {
	case full[0] == "metadata":
		m.metadata(root, full)
	case full[0] == "status" && m.refusesStatus, at.kind == aValue && len(full) == 1 && (full[0] == "apiVersion" || full[0] == "kind"):
		m.carry("", full, e.value)
	default:
		m.into(root, m.schema, "", full, e.value)
	}
}

// into merges a value at the rest of its pointer below a live value, whose own
// pointer is at.
func (m *merger) into(live any, s *shape.Schema, at string, rest []string, value any) {
	switch {
	case len(rest) == 0 && m.whole && isObject(live):
		clear(live.(map[string]any))
		maps.Copy(live.(map[string]any), clone(value).(map[string]any))
		return
	case len(rest) == 0 && m.whole && isList(live):
		copy(live.([]any), clone(value).([]any)) // they have as many elements
		return
	case len(rest) == 0:
		m.fill(live, s, at, value)
		return
	case s == nil:
		m.carry(at, rest, value)
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
				m.carry(at, rest, value)
			}
		} else if found {
			m.into(next, s.Field(name), below, rest[1:], value)
		} else {
			m.add(live, s, at, rest, value)
		}
	case []any:
		element := m.element(live, s, at, rest, value)
		switch {
		case element != none:
			m.into(element, s.Items(), below, rest[1:], value)
		case m.entry.fate != unmatched:
			m.carry(at, rest, value)
		}
	default:
		m.carry(at, rest, value)
	}
}

// isFilled reports whether a value is a default that a rule has filled in.
func (m *merger) isFilled(live any, pointer string) bool {
	filled := m.way.defaultAt(pointer, false)
	return filled != nil && m.at.kind == aValue && !slices.Contains(m.added, pointer) && Equal(live, filled.value)
}

// add makes a member, with the objects on the way to it, but no element of a list.
// That a field was absent is so without anything being made.
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
			m.carry(at, rest, value)
			return
		}
	}
	made := value
	for i := len(rest) - 1; i > 0; i-- {
		made = map[string]any{unescapes.Replace(rest[i]): made}
	}
	name := unescapes.Replace(rest[0])
	switch {
	case m.at.kind == anAbsence, m.isPartOfLive(at + "/" + strings.Join(rest, "/")):
	case m.isTaken(live, rest[0], made):
		m.carry(at, rest, value)
	case m.at.kind == aValue && (m.lenient || fits(s.Field(name), made, !m.partial)):
		live[name] = clone(made)
		m.added = append(m.added, at+"/"+strings.Join(rest, "/"))
	default:
		m.carry(at, rest, value)
	}
}

// isPartOfLive reports whether a rule computes a field together with others that are
// live: the field would be absent by that.
func (m *merger) isPartOfLive(pointer string) bool {
	return slices.ContainsFunc(m.way.fieldsWith(pointer), func(at string) bool {
		live := follow(m.root, segments(at))
		return at != pointer && live != none && !slices.Contains(m.added, at) && !m.isRestored(live, at)
	})
}

// isRestored reports whether a value at a pointer is the one that is preserved of it.
func (m *merger) isRestored(live any, pointer string) bool {
	e := m.restore.find(pointer, aValue)
	return e != nil && e.fate == done && Equal(live, e.value)
}

// fieldsWith are the places of the fields that a rule computes together with one.
func (w *direction) fieldsWith(pointer string) (places []string) {
	for _, t := range w.exchanges {
		if slices.ContainsFunc(t.to, func(f field) bool { return f.Path.pointer() == pointer }) {
			for _, f := range t.to {
				places = append(places, f.Path.pointer())
			}
			return places
		}
	}
	for _, e := range w.collections {
		below, found := strings.CutPrefix(pointer, e.path.pointer()+"/")
		element, rest, deeper := strings.Cut(below, "/")
		if !found || !deeper {
			continue
		}
		for _, place := range e.way.fieldsWith("/" + rest) {
			places = append(places, e.path.pointer()+"/"+element+place)
		}
		if len(places) > 0 {
			return places
		}
	}
	return nil
}

// fill gives a live value what it lacks.
func (m *merger) fill(live any, s *shape.Schema, at string, value any) {
	switch {
	case m.at.kind != aValue:
		return
	case s == nil:
		m.carry(at, nil, value)
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
			if same := selected(list, name); same != none {
				m.fill(same, s.Items(), at+"/"+name, element)
			}
		}
	}
}

// metadata merges a label or an annotation. No other metadata comes back.
func (m *merger) metadata(root map[string]any, full []string) {
	text, isText := m.entry.value.(string)
	if m.at.kind != aValue || !isText || len(full) != 3 || full[1] != "labels" && full[1] != "annotations" {
		m.carry("", full, m.entry.value)
		return
	}
	name := unescapes.Replace(full[2])
	isLabel := full[1] == "labels"
	switch {
	case len(validation.IsQualifiedName(strings.ToLower(name))) > 0, isLabel && len(validation.IsQualifiedName(name)) > 0,
		isLabel && len(validation.IsValidLabelValue(text)) > 0:
		m.carry("", full, text)
	case find(root, path{"metadata", full[1], name}) == none:
		put(root, path{"metadata", full[1], name}, text)
	}
}

// carry carries a value on. What it became is known of all of it, and of an element
// in each part, too.
func (m *merger) carry(at string, rest []string, value any) {
	for _, segment := range rest {
		at += "/" + segment
	}
	images := m.entry.images
	if _, isDigest := images.(string); !isDigest && at != m.at.pointer {
		images = nil
	}
	m.left.put(at, m.at.kind, value, images)
	m.left.entries[pathContext{at, m.at.kind}].anchor = m.entry.anchor
}
