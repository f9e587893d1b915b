// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"slices"
)

// PreservedPrefix is the prefix of annotations with preserved values.
const PreservedPrefix = "conversion-operator.io/"

// preservedFormat is the current format of the annotation's value. A higher one was written by a
// later version of conversion-operator, and stays unchanged.
const preservedFormat = "2"

// maxPreserved limits the size of a decompressed annotation, in bytes: an API server accepts no
// request of more than 3 MiB.
const maxPreserved = 4 << 20

// AnnotationName returns the name of the annotation with the preserved values of a version of a
// resource (plural.group). The name contains the resource, because controllers copy annotations
// between kinds. The part after the slash has at most 63 characters, which is the limit of
// Kubernetes: a longer one ends in the first 16 digits of its SHA-256.
func AnnotationName(resource, version string) string {
	const longest, digits = 63, 16
	name := version + "." + resource
	if len(name) > longest {
		sum := sha256.Sum256([]byte(name))
		name = name[:longest-digits-len("-")] + "-" + hex.EncodeToString(sum[:])[:digits]
	}
	return PreservedPrefix + name
}

// openMembers opens an object.
var openMembers = &projection{}

// openNestedMembers opens an object and its members.
var openNestedMembers = &projection{each: openMembers}

var (
	nameFormat     = newName("format")
	nameFields     = newName("fields")
	nameAbsent     = newName("absent")
	nameOrders     = newName("orders")
	nameExcluded   = newName("excluded")
	nameImages     = newName("images")
	nameAnchors    = newName("anchors")
	nameDropped    = newName("dropped")
	nameDeflate    = newName("deflate")
	nameUnreadable = newName("unreadable")
)

// preserved is the content of the annotations of one version.
type preserved struct {
	entries
	// excluded are the entries of excluded elements, which no rule looks up (exclude.go).
	excluded entries
	// unreadable is other text that was found in the annotation, and stays in it.
	unreadable []byte
}

// takePreserved removes the annotations of a version and returns their content, as rules name it. It leaves an
// annotation that it cannot read: users can write annotations, and later versions of this program write
// other formats.
func (s *step) takePreserved(metadata *node, v *version, into entries) preserved {
	p := preserved{entries: into}
	annotations := metadata.get(&nameAnnotations)
	if annotations == nil {
		return p
	}
	if text := s.annotation(annotations, &v.annotation); text != nil && s.readAnnotation(text, &p) {
		annotations.remove(&v.annotation)
		if annotations.first == nil {
			metadata.remove(&nameAnnotations)
		}
	}
	if !p.areSorted() {
		p.entries = p.sorted()
	}
	p.entries = s.asRulesName(p.entries, v)
	p.splitExcluded()
	return p
}

// peekPreserved returns the content of the annotations of a version, as rules name it.
func (s *step) peekPreserved(annotations *node, v *version) (p preserved) {
	if text := s.annotation(annotations, &v.annotation); text != nil {
		s.readAnnotation(text, &p)
	}
	p.entries = s.asRulesName(p.entries, v)
	return p
}

// annotation returns the text of an annotation, nil if there is none.
func (a *arena) annotation(annotations *node, name *name) []byte {
	value := annotations.get(name)
	if value == nil || !value.isText() {
		return nil
	}
	return a.decode(value.text)
}

// readAnnotation reads the value of an annotation. It returns false if any part is not
// as this version of the program writes it.
func (s *step) readAnnotation(text []byte, into *preserved) bool {
	value := s.formatted(text)
	if packed := value.get(&nameDeflate); packed != nil && value.first.next == value.last {
		if text = s.inflate(packed); text == nil {
			return false
		}
		if value = s.formatted(text); value.get(&nameDeflate) != nil {
			return false
		}
	}
	if value.first == nil {
		return false
	}
	own, good := into.entries[len(into.entries):], true
	for m := value.first; m != nil && good; m = m.next {
		own, good = s.readMember(m, own)
	}
	if !good {
		return false
	}
	slices.SortStableFunc(own, compareEntries)
	s.readAttributes(value.get(&nameImages), own, func(e *entry, images []byte) {
		switch {
		case e.kind == absenceEntry:
		case isString(images):
			e.images = s.quote(s.decode(images)).text // digests are compared
		default:
			e.images = images
		}
	})
	s.readAttributes(value.get(&nameAnchors), own, func(e *entry, anchor []byte) {
		if e.kind != orderEntry {
			e.anchor = anchor
		}
	})
	into.entries = append(into.entries, own...)
	if unreadable := value.get(&nameUnreadable); unreadable != nil {
		into.unreadable = s.decode(unreadable.text)
	}
	return true
}

// formatted parses a text in the current format. It returns an empty object for any other text.
func (s *step) formatted(text []byte) *node {
	value, err := s.parse(text, openNestedMembers)
	if err != nil || !value.isObject() || !isFormat(value.get(&nameFormat)) {
		return s.newObject()
	}
	return value
}

// readMember reads a member of an annotation, and returns false if it does not know the member.
func (s *step) readMember(m *node, into entries) (read entries, known bool) {
	switch {
	case m.named(&nameFields):
		return s.readValues(m, valueEntry, into), m.isObject()
	case m.named(&nameOrders):
		return s.readValues(m, orderEntry, into), m.isObject()
	case m.named(&nameExcluded):
		return s.readValues(m, excludedEntry, into), m.isObject()
	case m.named(&nameAbsent):
		return s.readAbsent(m, into)
	case m.named(&nameImages), m.named(&nameAnchors):
		return into, m.isObject()
	case m.named(&nameUnreadable):
		return into, m.isText()
	}
	return into, m.named(&nameFormat) || m.named(&nameDropped)
}

func isFormat(n *node) bool { return n != nil && string(n.text) == preservedFormat }

func (s *step) readValues(of *node, kind entryKind, into entries) entries {
	for m := of.first; m != nil; m = m.next {
		s.meter.take(entryBytes)
		into = append(into, entry{pointer: s.nameOf(m), kind: kind, value: m.text})
	}
	return into
}

func (s *step) readAbsent(list *node, into entries) (read entries, good bool) {
	pointers, err := s.parse(list.text, openElements)
	if err != nil || pointers.kind != array {
		return into, false
	}
	for m := pointers.first; m != nil; m = m.next {
		if !m.isText() {
			return into, false
		}
		s.meter.take(entryBytes)
		into = append(into, entry{pointer: s.decode(m.text), kind: absenceEntry})
	}
	return into, true
}

// readAttributes reads the attributes of entries, by pointer. Null stands for no attribute.
func (s *step) readAttributes(of *node, sorted entries, set func(*entry, []byte)) {
	if of == nil {
		return
	}
	for m := of.first; m != nil; m = m.next {
		if m.isNull() {
			continue
		}
		for _, kind := range [...]entryKind{valueEntry, absenceEntry, orderEntry} {
			if found := sorted.find(s.nameOf(m), kind); found != nil {
				set(found, m.text)
			}
		}
	}
}

// metered counts the memory of what is read.
type metered struct {
	*meter
	io.Reader
}

func (m metered) Read(into []byte) (int, error) {
	n, err := m.Reader.Read(into)
	if m.take(inflatedBytes * n); m.meter != nil && m.err != nil {
		return n, m.err
	}
	return n, err
}

// inflate decompresses the output of pack, and returns nil for anything else.
func (s *step) inflate(packed *node) []byte {
	if !packed.isText() {
		return nil
	}
	reader := metered{s.meter, flate.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(s.decode(packed.text))))}
	var text bytes.Buffer
	if size, err := text.ReadFrom(io.LimitReader(reader, maxPreserved+1)); err != nil || size > maxPreserved {
		return nil
	}
	return text.Bytes()
}
