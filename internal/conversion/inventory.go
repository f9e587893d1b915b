// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/conversion/shape"
)

// Preserved is what one annotation of an object holds.
type Preserved struct {
	// Version is the one whose data it is.
	Version string
	// Bytes is the size of the annotation's value.
	Bytes int
	// Fields are the paths of what is preserved, as in a policy, sorted, each once:
	// [*] stands for all elements of lists and maps.
	Fields []string
	// Values are those of Fields of which a value is preserved, and not only that it
	// was absent, or the order of a list.
	Values []string
	// Unreadable tells that the value, or a part of it, is text in no known format.
	Unreadable bool
}

// PreservedIn reads what the annotations of an object hold, by version. It reads
// nothing of versions that the ruleset does not have, nor of other resources.
func (c *Converter) PreservedIn(annotations map[string]string) []Preserved {
	var all []Preserved
	for _, v := range c.versions {
		found := Preserved{Version: v.name, Bytes: len(annotations[v.legacy.text]) + len(annotations[v.annotation.text])}
		h := stepPool.Get().(*step)
		read, legacy := h.all(annotations, v)
		_, hasLegacy := annotations[v.legacy.text]
		found.Unreadable = read.unreadable != nil || hasLegacy != legacy
		for _, e := range read.entries {
			path := v.pathOf(e.pointer)
			found.Fields = append(found.Fields, path)
			if e.kind == aValue {
				found.Values = append(found.Values, path)
			}
		}
		h.release()
		if found.Bytes > 0 {
			found.Fields, found.Values = eachOnce(found.Fields), eachOnce(found.Values)
			all = append(all, found)
		}
	}
	return all
}

// Unplaced is a field of which a value is preserved.
type Unplaced struct {
	// Field is its path, as in a policy.
	Field string
	// Misfit is why the schema of its version does not allow the value, nil where it does.
	Misfit error
}

// Unplaced says of each value that the annotations of an object hold of a version
// whether its field could have it.
func (c *Converter) Unplaced(annotations map[string]string, version string) []Unplaced {
	v := c.version(version)
	if v == nil {
		return nil
	}
	h := stepPool.Get().(*step)
	defer h.release()
	var all []Unplaced
	read, _ := h.all(annotations, v)
	for _, e := range read.entries {
		if e.kind != aValue || !bytes.HasPrefix(e.pointer, []byte("/")) {
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

// WithoutPreserved says how to change annotations so that they hold nothing of a
// version in the accepted fields any more: the annotations to set, and with nil those
// to remove; nothing where they hold nothing of that kind. A path accepts all that is
// below it, too. Text that cannot be read stays. A value of a field that another spoke
// has, too, is preserved for that one: it is no less its value.
func (c *Converter) WithoutPreserved(annotations map[string]string, version string, accepted []string) (map[string]*string, error) {
	v := c.version(version)
	if v == nil {
		return nil, nil
	}
	paths, err := parsePaths(accepted)
	if err != nil {
		return nil, err
	}
	h := stepPool.Get().(*step)
	defer h.release()
	read, legacy := h.all(annotations, v)
	var gone entries
	read.entries = slices.DeleteFunc(read.entries, func(e entry) bool {
		accepted := bytes.HasPrefix(e.pointer, []byte("/")) && v.placeOf(e.pointer).below(paths)
		if accepted {
			gone = append(gone, e)
		}
		return accepted
	})
	if len(gone) == 0 {
		return nil, nil
	}
	changes := map[string]*string{}
	h.change(changes, annotations, v, read, legacy)
	c.bequeath(h, changes, annotations, v, gone)
	return changes, nil
}

// all is what annotations hold of a version, in the order in which it is written, with
// the text that cannot be read. Legacy tells that some of it is in format 1.
func (h *step) all(annotations map[string]string, v *version) (read preserved, legacy bool) {
	text, there := annotations[v.legacy.text]
	legacy = there && h.readLegacy([]byte(text), &read)
	if text, there := annotations[v.annotation.text]; there && !h.read([]byte(text), &read) {
		read.unreadable = []byte(text)
	}
	read.entries = read.sorted()
	return read, legacy
}

// change notes how annotations are to change to hold this of a version.
func (h *step) change(changes map[string]*string, annotations map[string]string, v *version, to preserved, legacy bool) {
	if legacy {
		changes[v.legacy.text] = nil
	}
	if len(to.entries) > 0 || to.unreadable != nil {
		changes[v.annotation.text] = new(string(h.pack(h.appendPreserved(to, nil))))
	} else if _, there := annotations[v.annotation.text]; there {
		changes[v.annotation.text] = nil
	}
}

// bequeath leaves entries of a version that goes to a version that has the field, too,
// unless one of those holds a value of it: that one counts more (siblings.go).
func (c *Converter) bequeath(h *step, changes map[string]*string, annotations map[string]string, v *version, gone entries) {
	if v.fromHub == nil {
		return
	}
	for _, name := range v.fromHub.siblings {
		heir := c.version(name)
		if heir == nil {
			continue
		}
		held, legacy := h.all(annotations, heir)
		before := len(held.entries)
		gone = slices.DeleteFunc(gone, func(e entry) bool {
			shared := e.kind == aValue && v.fromHub.shares(e.pointer, name)
			if shared && held.entries[:before].find(e.pointer, aValue) == nil && !c.elsewhere(h, annotations, v, e, name) {
				held.entries = append(held.entries, e)
			}
			return shared
		})
		if len(held.entries) > before {
			held.entries = held.sorted()
			h.change(changes, annotations, heir, held, legacy)
		}
	}
}

// elsewhere reports whether another version than these two holds a value of a field
// that it shares with the first.
func (c *Converter) elsewhere(h *step, annotations map[string]string, v *version, e entry, but string) bool {
	return slices.ContainsFunc(v.fromHub.siblings, func(name string) bool {
		other := c.version(name)
		if other == nil || name == but || !v.fromHub.shares(e.pointer, name) {
			return false
		}
		held, _ := h.all(annotations, other)
		return held.find(e.pointer, aValue) != nil
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

// below reports whether a path is one of others, or leads into one.
func (p Path) below(others []Path) bool {
	return slices.ContainsFunc(others, func(other Path) bool { return len(other) <= len(p) && p.Meets(other) })
}

// Accepts reports whether paths accept the loss of a field that is preserved: one of
// them is the field, or something above it.
func Accepts(accepted []string, field string) bool {
	paths, err := parsePaths(accepted)
	path, other := ParsePath(field)
	return err == nil && other == nil && path.below(paths)
}

// pathOf writes the pointer of an entry as a path.
func (v *version) pathOf(pointer []byte) string {
	if !bytes.HasPrefix(pointer, []byte("/")) {
		return string(pointer)
	}
	return v.placeOf(pointer).String()
}

// placeOf is the path of an entry's pointer, in which [*] stands for every element.
func (v *version) placeOf(pointer []byte) Path {
	path, _ := v.locate(pointer)
	return path
}

// locate is placeOf, and the schema of the place, nil where that is not known.
func (v *version) locate(pointer []byte) (Path, *shape.Schema) {
	var path Path
	at := v.shape
	for _, segment := range splitPointer(pointer) {
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

// EntryKind says what an Entry is about.
type EntryKind string

// The kinds.
const (
	// EntryValue is the value of a field, or of an element without keys.
	EntryValue EntryKind = "Value"
	// EntryAbsence tells that a field was absent that coming back would fill.
	EntryAbsence EntryKind = "Absence"
	// EntryOrder is the order of a list that is a map in the other version.
	EntryOrder EntryKind = "Order"
)

// Entry is what an annotation preserves of one place of a version.
type Entry struct {
	// Pointer is the place, as in the annotation: a JSON Pointer in which an element
	// of a list with keys is named by them.
	Pointer string
	Kind    EntryKind
	// Value is JSON, nil for an absence.
	Value []byte
	// Anchor is how many segments of the pointer lead to the object without which the
	// entry does not come back.
	Anchor int
	// Digest is that of what an element without keys became in the other version,
	// empty for all other entries.
	Digest string
}

// AnnotationNames are the names under which values of a version of a resource
// (plural.group) may be preserved: that of AnnotationName, and that of format 1.
func AnnotationNames(resource, version string) []string {
	return []string{AnnotationName(resource, version), legacyName(version)}
}

// Entries are what the annotations of an object preserve of a version of a resource
// (plural.group), sorted by pointer and kind, of both formats. Readable is false where
// an annotation, or a part of it, is text in no known format.
func Entries(annotations map[string]string, resource, version string) (all []Entry, readable bool) {
	h := stepPool.Get().(*step)
	defer h.release()
	var read preserved
	readable = true
	if text, there := annotations[legacyName(version)]; there {
		readable = h.readLegacy([]byte(text), &read)
	}
	if text, there := annotations[AnnotationName(resource, version)]; there {
		readable = h.read([]byte(text), &read) && read.unreadable == nil && readable
	}
	kinds := map[entryKind]EntryKind{aValue: EntryValue, anAbsence: EntryAbsence, anOrder: EntryOrder}
	for _, e := range read.sorted() {
		if !bytes.HasPrefix(e.pointer, []byte("/")) {
			readable = false // an entry leads somewhere
			continue
		}
		one := Entry{Pointer: string(e.pointer), Kind: kinds[e.kind], Anchor: bytes.Count(e.pointer, []byte("/")) - 1}
		if e.kind != anAbsence {
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

// Dropped are the pointers of values that overflow: Drop gave up, as far as the
// annotations of an object name them.
func Dropped(annotations map[string]string, resource, version string) (pointers []string) {
	h := stepPool.Get().(*step)
	defer h.release()
	for _, name := range AnnotationNames(resource, version) {
		value, err := h.parse([]byte(annotations[name]), members)
		if err != nil {
			continue
		}
		if packed := value.get(&nameDeflate); packed != nil && isFormat(value.get(&nameFormat)) {
			value = h.format2(h.inflate(packed))
		}
		list := value.get(&nameDropped)
		if list == nil {
			continue
		}
		var named []string
		if json.Unmarshal(list.text, &named) == nil {
			pointers = append(pointers, named...)
		}
	}
	return pointers
}

// Digest is how an annotation tells what an element without keys became, given as JSON.
func Digest(element []byte) string {
	h := stepPool.Get().(*step)
	defer h.release()
	value, err := h.parse(element, everything)
	if err != nil {
		return ""
	}
	return decodeString(h.digest(value))
}
