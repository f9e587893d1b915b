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

// PreservedPrefix begins the annotations in which a version's values are preserved
// while the object is in another version.
const PreservedPrefix = "conversion-operator.io/"

// preservedFormat is that of the annotation's value. A higher one was written by a
// later version of conversion-operator: it is left unchanged.
const preservedFormat = "2"

// maxPreserved bounds what a compressed annotation may grow to, in bytes: an API
// server accepts no request of more than 3 MiB.
const maxPreserved = 4 << 20

// AnnotationName is the name of the annotation in which values of a version of a
// resource (plural.group) are preserved. The resource is in it, because controllers
// copy annotations from one kind to another: neither is then taken for the other.
// The part behind the slash has at most 63 characters, as the API server demands:
// a longer one ends in the first 16 digits of its SHA-256.
func AnnotationName(resource, version string) string {
	const longest, digits = 63, 16
	name := version + "." + resource
	if len(name) > longest {
		sum := sha256.Sum256([]byte(name))
		name = name[:longest-digits-len("-")] + "-" + hex.EncodeToString(sum[:])[:digits]
	}
	return PreservedPrefix + name
}

// legacyName is that of format 1, which names no resource.
func legacyName(version string) string { return PreservedPrefix + version }

// one looks into the members of an object.
var one = &look{}

// members looks into the members of an object, and those of its members.
var members = &look{each: one}

var (
	nameFormat     = newName("format")
	nameFields     = newName("fields")
	nameAbsent     = newName("absent")
	nameOrders     = newName("orders")
	nameImages     = newName("images")
	nameAnchors    = newName("anchors")
	nameDropped    = newName("dropped")
	nameDeflate    = newName("deflate")
	nameUnreadable = newName("unreadable")
)

// preserved is what the annotations of one version hold.
type preserved struct {
	// entries are sorted.
	entries
	// unreadable is text that was found in the annotation's place and is carried on.
	unreadable []byte
}

// take takes the annotations of a version away, and returns what they hold. What
// cannot be read stays unchanged: users can write annotations, other kinds may have
// one of the former name, and later versions of this program write other formats.
func (h *step) take(metadata *node, v *version, into entries) preserved {
	p := preserved{entries: into}
	annotations := metadata.get(&nameAnnotations)
	if annotations == nil {
		return p
	}
	found := false
	if text := h.annotation(annotations, &v.legacy); text != nil && h.readLegacy(text, &p) {
		annotations.remove(&v.legacy)
		found = true
	}
	if text := h.annotation(annotations, &v.annotation); text != nil && h.read(text, &p) {
		annotations.remove(&v.annotation)
		found = true
	}
	if found && annotations.first == nil {
		metadata.remove(&nameAnnotations)
	}
	if !p.areSorted() {
		p.entries = p.sorted()
	}
	return p
}

// peek reads what the annotations of a version hold, and leaves them unchanged.
func (h *step) peek(annotations *node, v *version) (p preserved) {
	if text := h.annotation(annotations, &v.legacy); text != nil {
		h.readLegacy(text, &p)
	}
	if text := h.annotation(annotations, &v.annotation); text != nil {
		h.read(text, &p)
	}
	return p
}

// annotation is the text of an annotation, nil where there is none.
func (a *arena) annotation(annotations *node, name *name) []byte {
	value := annotations.get(name)
	if value == nil || !value.isText() {
		return nil
	}
	return a.decode(value.text)
}

// read reads the value of an annotation of this format, and reports whether it could:
// all of it must be as this version of the program writes it.
func (h *step) read(text []byte, into *preserved) bool {
	value := h.format2(text)
	if packed := value.get(&nameDeflate); packed != nil && value.first.next == value.last {
		if text = h.inflate(packed); text == nil {
			return false
		}
		if value = h.format2(text); value.get(&nameDeflate) != nil {
			return false
		}
	}
	if value.first == nil {
		return false
	}
	own, good := into.entries[len(into.entries):], true
	for m := value.first; m != nil && good; m = m.next {
		own, good = h.readMember(m, own)
	}
	if !good {
		return false
	}
	slices.SortStableFunc(own, compareEntries)
	h.readOf(value.get(&nameImages), own, func(e *entry, images []byte) {
		switch {
		case e.kind == anAbsence:
		case isString(images):
			e.images = h.quote(h.decode(images)).text // digests are compared
		default:
			e.images = images
		}
	})
	h.readOf(value.get(&nameAnchors), own, func(e *entry, anchor []byte) {
		if e.kind != anOrder {
			e.anchor = anchor
		}
	})
	into.entries = append(into.entries, own...)
	if carried := value.get(&nameUnreadable); carried != nil {
		into.unreadable = h.decode(carried.text)
	}
	return true
}

// format2 parses a text of the format, and returns an object without members for
// any other one.
func (h *step) format2(text []byte) *node {
	value, err := h.parse(text, members)
	if err != nil || !value.isObject() || !isFormat(value.get(&nameFormat)) {
		return h.newObject()
	}
	return value
}

// readMember reads a member of the format, and reports whether it knows it.
func (h *step) readMember(m *node, into entries) (read entries, known bool) {
	switch {
	case m.named(&nameFields):
		return h.readValues(m, aValue, into), m.isObject()
	case m.named(&nameOrders):
		return h.readValues(m, anOrder, into), m.isObject()
	case m.named(&nameAbsent):
		return h.readAbsent(m, into)
	case m.named(&nameImages), m.named(&nameAnchors):
		return into, m.isObject()
	case m.named(&nameUnreadable):
		return into, m.isText()
	}
	return into, m.named(&nameFormat) || m.named(&nameDropped)
}

func isFormat(n *node) bool { return n != nil && string(n.text) == preservedFormat }

func (h *step) readValues(of *node, kind entryKind, into entries) entries {
	for m := of.first; m != nil; m = m.next {
		into = append(into, entry{pointer: h.nameOf(m), kind: kind, value: m.text})
	}
	return into
}

func (h *step) readAbsent(list *node, into entries) (read entries, good bool) {
	pointers, err := h.parse(list.text, elements)
	if err != nil || pointers.kind != array {
		return into, false
	}
	for m := pointers.first; m != nil; m = m.next {
		if !m.isText() {
			return into, false
		}
		into = append(into, entry{pointer: h.decode(m.text), kind: anAbsence})
	}
	return into, true
}

// readOf reads what an object says of entries, by their pointers. A null says nothing.
func (h *step) readOf(of *node, sorted entries, set func(*entry, []byte)) {
	if of == nil {
		return
	}
	for m := of.first; m != nil; m = m.next {
		if m.isNull() {
			continue
		}
		for _, kind := range [...]entryKind{aValue, anAbsence, anOrder} {
			if found := sorted.find(h.nameOf(m), kind); found != nil {
				set(found, m.text)
			}
		}
	}
}

// readLegacy reads format 1: an object of values by their pointers, in which a !
// before a pointer told an absence, and an object with one list called order was
// the order of a list. It told nothing of images.
func (h *step) readLegacy(text []byte, into *preserved) bool {
	values, err := h.parse(text, members)
	if err != nil || !values.isObject() {
		return false
	}
	for m := values.first; m != nil; m = m.next {
		e := entry{pointer: h.nameOf(m), value: m.text}
		if string(e.pointer) == nameDropped.text {
			continue // the names of what was given up
		}
		if absent, found := bytes.CutPrefix(e.pointer, []byte("!")); found {
			e = entry{pointer: absent, kind: anAbsence}
		}
		into.entries = append(into.entries, e)
	}
	return true
}

// inflate unpacks what pack has compressed, nil where it is something else.
func (h *step) inflate(packed *node) []byte {
	if !packed.isText() {
		return nil
	}
	reader := flate.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(h.decode(packed.text))))
	var text bytes.Buffer
	if size, err := text.ReadFrom(io.LimitReader(reader, maxPreserved+1)); err != nil || size > maxPreserved {
		return nil
	}
	return text.Bytes()
}
