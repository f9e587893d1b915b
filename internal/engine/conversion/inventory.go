// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
)

// Preserved is the content of the annotations of one version in an object.
type Preserved struct {
	// Version is the version whose data is preserved.
	Version string
	// Bytes is the size of the annotations' values.
	Bytes int
	// Fields are the paths of preserved data, as in a policy, sorted and without duplicates. [*]
	// stands for all elements of a list or map.
	Fields []string
	// Values are those of Fields with a preserved value, and not just a preserved absence or
	// order.
	Values []string
	// Unreadable is true if at least a part of a value is in no known format.
	Unreadable bool
}

// PreservedIn returns what the annotations of an object preserve, by version. It ignores versions
// that the ruleset does not have, and other resources.
func (c *Converter) PreservedIn(annotations map[string]string) []Preserved {
	var all []Preserved
	for _, v := range c.versions {
		found := Preserved{Version: v.name, Bytes: len(annotations[v.annotation.text])}
		s := stepPool.Get().(*step)
		read := s.allPreserved(annotations, v)
		found.Unreadable = read.unreadable != nil
		for _, e := range read.entries {
			path := v.pathOf(e.pointer)
			found.Fields = append(found.Fields, path)
			if e.kind.isData() {
				found.Values = append(found.Values, path)
			}
		}
		s.release()
		if found.Bytes > 0 {
			found.Fields, found.Values = eachOnce(found.Fields), eachOnce(found.Values)
			all = append(all, found)
		}
	}
	return all
}

// Unplaced is a field with a preserved value.
type Unplaced struct {
	// Field is its path, as in a policy.
	Field string
	// Misfit is the reason why the schema does not allow the value, nil if it does.
	Misfit error
}

// Unplaced returns, for each value that the annotations preserve of a version, whether the field
// allows it.
func (c *Converter) Unplaced(annotations map[string]string, version string) []Unplaced {
	v := c.version(version)
	if v == nil {
		return nil
	}
	s := stepPool.Get().(*step)
	defer s.release()
	var all []Unplaced
	read := s.allPreserved(annotations, v)
	for _, e := range read.entries {
		if !e.kind.isData() || !bytes.HasPrefix(e.pointer, []byte("/")) {
			continue
		}
		path, schema := v.locate(e.pointer)
		one := Unplaced{Field: path.String()}
		if schema != nil {
			one.Misfit = schema.Fits(e.value)
		}
		all = append(all, one)
	}
	return all
}

func eachOnce(paths []string) []string {
	slices.Sort(paths)
	return slices.Compact(paths)
}

// WithoutPreserved returns the changes that remove preserved data of the accepted fields of a
// version from annotations: new values by name, nil for an annotation to remove. It returns nil if
// there is nothing to remove. A path also accepts everything below it. Unreadable text stays. A
// value of a field that another spoke shares moves to that spoke's annotation.
func (c *Converter) WithoutPreserved(annotations map[string]string, version string, accepted []string) (map[string]*string, error) {
	v := c.version(version)
	if v == nil {
		return nil, nil
	}
	paths, err := parsePaths(accepted)
	if err != nil {
		return nil, err
	}
	s := stepPool.Get().(*step)
	defer s.release()
	read := s.allPreserved(annotations, v)
	var removed entries
	read.entries = slices.DeleteFunc(read.entries, func(e entry) bool {
		accepted := bytes.HasPrefix(e.pointer, []byte("/")) && v.placeOf(e.pointer).below(paths)
		if accepted {
			removed = append(removed, e)
		}
		return accepted
	})
	if len(removed) == 0 {
		return nil, nil
	}
	changes := map[string]*string{}
	s.noteChange(changes, annotations, v, read)
	c.moveToSiblings(s, changes, annotations, v, removed)
	return changes, nil
}

// allPreserved returns the content of the annotation of a version, with its own names.
func (s *step) allPreserved(annotations map[string]string, v *version) (read preserved) {
	if text, there := annotations[v.annotation.text]; there && !s.readAnnotation([]byte(text), &read) {
		read.unreadable = []byte(text)
	}
	read.entries = read.sorted()
	return read
}

// noteChange records the changes that make annotations hold this content.
func (s *step) noteChange(changes map[string]*string, annotations map[string]string, v *version, to preserved) {
	if len(to.entries) > 0 || to.unreadable != nil {
		changes[v.annotation.text] = new(string(s.pack(s.appendPreserved(to, nil))))
	} else if _, there := annotations[v.annotation.text]; there {
		changes[v.annotation.text] = nil
	}
}

// moveToSiblings moves removed entries to the annotation of a version that shares the field,
// unless such a version already holds a value: that one wins (preserved.go).
func (c *Converter) moveToSiblings(s *step, changes map[string]*string, annotations map[string]string, v *version, removed entries) {
	if v.fromHub == nil {
		return
	}
	removed = s.asRulesName(removed, v)
	for _, name := range v.fromHub.siblings {
		sibling := c.version(name)
		if sibling == nil {
			continue
		}
		existing := s.allPreserved(annotations, sibling)
		existing.entries = s.asRulesName(existing.entries, sibling)
		before := len(existing.entries)
		removed = slices.DeleteFunc(removed, func(e entry) bool {
			shared := e.kind == valueEntry && v.fromHub.shares(e.pointer, name)
			if shared && existing.entries[:before].find(e.pointer, valueEntry) == nil && !c.isHeldElsewhere(s, annotations, v, e, name) {
				existing.entries = append(existing.entries, e)
			}
			return shared
		})
		if len(existing.entries) > before {
			existing.entries = s.asVersionNames(existing.sorted(), sibling)
			s.noteChange(changes, annotations, sibling, existing)
		}
	}
}

// isHeldElsewhere reports whether a third version holds a value of a field that it shares with the
// first one. The entry is as rules name it.
func (c *Converter) isHeldElsewhere(s *step, annotations map[string]string, v *version, e entry, but string) bool {
	return slices.ContainsFunc(v.fromHub.siblings, func(name string) bool {
		other := c.version(name)
		if other == nil || name == but || !v.fromHub.shares(e.pointer, name) {
			return false
		}
		held := s.allPreserved(annotations, other)
		return s.asRulesName(held.entries, other).find(e.pointer, valueEntry) != nil
	})
}

func parsePaths(texts []string) ([]Path, error) {
	var paths []Path
	for _, text := range texts {
		path, err := ParsePath(text)
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// below reports whether a path is one of others, or below one of them.
func (p Path) below(others []Path) bool {
	return slices.ContainsFunc(others, func(other Path) bool { return len(other) <= len(p) && p.Meets(other) })
}

// Accepts reports whether one of the accepted paths is the field or above it, so that its loss is
// accepted.
func Accepts(accepted []string, field string) bool {
	paths, err := parsePaths(accepted)
	path, other := ParsePath(field)
	return err == nil && other == nil && path.below(paths)
}

// pathOf returns the pointer of an entry as the text of a path.
func (v *version) pathOf(pointer []byte) string {
	if !bytes.HasPrefix(pointer, []byte("/")) {
		return string(pointer)
	}
	return v.placeOf(pointer).String()
}

// placeOf returns the path of an entry's pointer, with [*] for every element.
func (v *version) placeOf(pointer []byte) Path {
	path, _ := v.locate(pointer)
	return path
}

// locate returns placeOf and the schema of the place, nil if unknown.
func (v *version) locate(pointer []byte) (Path, *shape.Schema) {
	return locateIn(v.shape, splitPointer(pointer))
}

// locateIn returns the path and the schema of the place to which the segments of a pointer lead.
func locateIn(at *shape.Schema, segments []string) (path Path, found *shape.Schema) {
	for _, segment := range segments {
		name := unescapePointer(segment)
		switch {
		case strings.HasPrefix(segment, "["), at != nil && (at.IsMap() || at.IsList()), at == nil && isIndex([]byte(segment)):
			path, at = append(path, Each), elementShape(at, nil)
		default:
			path, at = append(path, name), shapeAt(at, Path{name})
		}
	}
	return path, at
}

// EntryKind is the kind of an Entry.
type EntryKind string

// Kinds of entries.
const (
	// EntryValue is the value of a field, or of an element without keys.
	EntryValue EntryKind = "Value"
	// EntryAbsence records that a field was absent that the way back would fill.
	EntryAbsence EntryKind = "Absence"
	// EntryOrder is the order of a list that is a map in the other version.
	EntryOrder EntryKind = "Order"
	// EntryExcluded is an element that a rule keeps out of the other version, at its index.
	EntryExcluded EntryKind = "Excluded"
)

// Entry is what an annotation preserves at one place of a version.
type Entry struct {
	// Pointer is a JSON Pointer in which elements of a list with keys are named by these, as in
	// the annotation.
	Pointer string
	Kind    EntryKind
	// Value is JSON, nil for an absence.
	Value []byte
	// Anchor is the number of segments of the pointer that lead to the object without which the
	// entry is not restored.
	Anchor int
	// Digest identifies the result of an element without keys in the other version. It is empty
	// for other entries.
	Digest string
}

// Entries returns what the annotations of an object preserve of a version of a resource
// (plural.group), sorted by pointer and kind. readable is false if at least a part of the annotation
// is in another format.
func Entries(annotations map[string]string, resource, version string) (all []Entry, readable bool) {
	s := stepPool.Get().(*step)
	defer s.release()
	var read preserved
	readable = true
	if text, there := annotations[AnnotationName(resource, version)]; there {
		readable = s.readAnnotation([]byte(text), &read) && read.unreadable == nil
	}
	kinds := map[entryKind]EntryKind{valueEntry: EntryValue, absenceEntry: EntryAbsence, orderEntry: EntryOrder, excludedEntry: EntryExcluded}
	for _, e := range read.sorted() {
		if !bytes.HasPrefix(e.pointer, []byte("/")) {
			readable = false // an entry has a pointer
			continue
		}
		one := Entry{Pointer: string(e.pointer), Kind: kinds[e.kind], Anchor: bytes.Count(e.pointer, []byte("/")) - 1}
		if e.kind != absenceEntry {
			one.Value = bytes.Clone(e.value)
		}
		if anchor, err := strconv.Atoi(string(e.anchor)); err == nil && anchor >= 0 && anchor < one.Anchor {
			one.Anchor = anchor
		}
		if isString(e.images) {
			one.Digest = decodeString(e.images)
		}
		all = append(all, one)
	}
	return all, readable
}

// Dropped returns the pointers of values that were dropped by overflow: Drop, as far as the
// annotation names them.
func Dropped(annotations map[string]string, resource, version string) (pointers []string) {
	s := stepPool.Get().(*step)
	defer s.release()
	value := s.formatted([]byte(annotations[AnnotationName(resource, version)]))
	if packed := value.get(&nameDeflate); packed != nil {
		value = s.formatted(s.inflate(packed))
	}
	list := value.get(&nameDropped)
	if list == nil || json.Unmarshal(list.text, &pointers) != nil {
		return nil
	}
	return pointers
}

// Digest returns the digest of the result of an element without keys, which is given as JSON.
func Digest(element []byte) string {
	s := stepPool.Get().(*step)
	defer s.release()
	value, err := s.parse(element, openAll)
	if err != nil {
		return ""
	}
	return decodeString(s.digest(value, nil))
}
