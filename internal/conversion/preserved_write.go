// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/base64"
	"slices"
)

const (
	// MaxAnnotations is the API server's limit on all annotations of an object
	// together, names and values, in bytes. It checks the answer of a conversion:
	// k8s.io/apimachinery/pkg/api/validation, TotalAnnotationSizeLimitB.
	MaxAnnotations = 256 << 10
	// readable is how long an annotation may be that is not compressed, in bytes:
	// most stay legible, and kubectl apply stores what it is given again.
	readable = 16 << 10
	// maxDropped is how many of the values that were given up an annotation names.
	maxDropped = 20
)

// write sets the annotation of a version, where there is something to preserve.
func (h *step) write(metadata *node, v *version, p preserved) error {
	if len(p.entries) == 0 && p.unreadable == nil {
		return nil
	}
	annotations := metadata.get(&nameAnnotations)
	if annotations == nil || !annotations.isObject() {
		annotations = h.newObject()
		metadata.set(&nameAnnotations, annotations)
	}
	if text := h.annotation(annotations, &v.annotation); text != nil {
		p.unreadable = text
		annotations.remove(&v.annotation)
	}
	text := p.unreadable
	if len(p.entries) > 0 {
		text = h.pack(h.appendPreserved(p, nil))
	}
	if !h.truncates && !h.hasRoom(annotations, v, text) {
		if h.dropsOverflow {
			text = h.dropLargest(annotations, v, p)
		}
		if !h.dropsOverflow || !h.hasRoom(annotations, v, text) {
			return &OverflowError{Version: v.name, Kept: len(text), Others: sizeOf(annotations)}
		}
	}
	h.outcome.KeptBytes += len(text)
	annotations.set(&v.annotation, h.quote(text))
	return nil
}

// hasRoom reports whether the API server accepts a text beside the other annotations.
func (h *step) hasRoom(annotations *node, v *version, text []byte) bool {
	room := MaxAnnotations - len(v.annotation.text) - len(text)
	return room >= 0 && (quotedSizeOf(annotations) <= room || sizeOf(annotations) <= room)
}

// appendPreserved writes the value of an annotation: format 2.
func (h *step) appendPreserved(p preserved, dropped entries) []byte {
	start := len(h.text)
	h.text = append(h.text, `{"format":`+preservedFormat...)
	h.appendValues(&nameFields, p.entries, aValue)
	h.appendList(&nameAbsent, p.entries, anAbsence)
	h.appendValues(&nameOrders, p.entries, anOrder)
	h.appendOf(&nameImages, p.entries, func(e *entry) []byte { return e.images })
	h.appendOf(&nameAnchors, p.entries, func(e *entry) []byte { return e.anchor })
	if len(dropped) > 0 {
		h.appendList(&nameDropped, dropped[:min(len(dropped), maxDropped)], aValue)
	}
	if p.unreadable != nil {
		h.appendName(&nameUnreadable)
		h.text = appendQuoted(h.text, p.unreadable)
	}
	h.text = append(h.text, '}')
	return h.since(start)
}

func (h *step) appendName(name *name) {
	h.text = append(append(append(h.text, ','), name.quoted...), ':')
}

func (h *step) appendValues(name *name, of entries, kind entryKind) {
	separator := byte('{')
	for _, e := range of {
		if e.kind != kind {
			continue
		}
		if separator == '{' {
			h.appendName(name)
		}
		h.text = append(appendQuoted(append(h.text, separator), e.pointer), ':')
		h.text, separator = append(h.text, e.value...), ','
	}
	if separator == ',' {
		h.text = append(h.text, '}')
	}
}

func (h *step) appendList(name *name, of entries, kind entryKind) {
	separator := byte('[')
	for _, e := range of {
		if e.kind != kind {
			continue
		}
		if separator == '[' {
			h.appendName(name)
		}
		h.text, separator = appendQuoted(append(h.text, separator), e.pointer), ','
	}
	if separator == ',' {
		h.text = append(h.text, ']')
	}
}

// appendOf writes the findings about sorted entries, by their pointers: once, where
// two kinds of entries have the same one.
func (h *step) appendOf(name *name, of entries, part func(*entry) []byte) {
	separator := byte('{')
	for i := range of {
		said := part(&of[i])
		next := i + 1
		if said == nil || next < len(of) && part(&of[next]) != nil && bytes.Equal(of[i].pointer, of[next].pointer) {
			continue
		}
		if separator == '{' {
			h.appendName(name)
		}
		h.text = append(appendQuoted(append(h.text, separator), of[i].pointer), ':')
		h.text, separator = append(h.text, said...), ','
	}
	if separator == ',' {
		h.text = append(h.text, '}')
	}
}

// pack compresses a text that is long, where that makes it shorter.
func (h *step) pack(text []byte) []byte {
	if len(text) <= readable {
		return text
	}
	var packed bytes.Buffer
	encoder := base64.NewEncoder(base64.StdEncoding, &packed)
	packed.WriteString(`{"format":` + preservedFormat + `,"deflate":"`)
	writer, err := flate.NewWriter(encoder, flate.DefaultCompression)
	if err != nil {
		return text // cannot be: the level is one that there is
	}
	// A buffer takes all that is written.
	_, _ = writer.Write(text)
	_, _ = writer.Close(), encoder.Close()
	packed.WriteString(`"}`)
	if packed.Len() >= len(text) {
		return text
	}
	return packed.Bytes()
}

// dropLargest gives the largest values up until the rest fits, and returns the text
// of that. The first of them are named in it.
func (h *step) dropLargest(annotations *node, v *version, p preserved) []byte {
	order := make([]int, len(p.entries))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(len(p.entries[b].value), len(p.entries[a].value))
	})
	without := func(count int) []byte {
		gone := make([]bool, len(p.entries))
		for _, i := range order[:count] {
			gone[i] = true
		}
		rest, dropped := preserved{unreadable: p.unreadable}, entries{}
		for i, e := range p.entries {
			if gone[i] {
				e.kind = aValue
				dropped = append(dropped, e)
			} else {
				rest.entries = append(rest.entries, e)
			}
		}
		start := len(h.text)
		text := bytes.Clone(h.pack(h.appendPreserved(rest, dropped)))
		h.text = h.text[:start]
		return text
	}
	// The fewest that must go, by halves: the rest shrinks with each that goes.
	low, high := 1, len(order)
	for low < high {
		if middle := (low + high) / 2; h.hasRoom(annotations, v, without(middle)) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	if len(order) == 0 {
		return h.appendPreserved(p, nil)
	}
	h.outcome.DroppedValues += low
	return without(low)
}

// sizeOf is what annotations take, in bytes, as the API server counts them.
func sizeOf(annotations *node) (total int) {
	for m := annotations.first; m != nil; m = m.next {
		total += textSize(m.key) + textSize(m.text)
	}
	return total
}

// quotedSizeOf is never less than sizeOf, and needs no look at the texts.
func quotedSizeOf(annotations *node) (total int) {
	for m := annotations.first; m != nil; m = m.next {
		total += len(m.key) + len(m.text)
	}
	return total
}

// textSize is how long a string value is without its escapes.
func textSize(quoted []byte) int {
	switch {
	case !isString(quoted):
		return len(quoted)
	case isPlain(quoted):
		return len(quoted) - len(`""`)
	}
	return len(decodeString(quoted))
}

// pointers writes the places of fields as a JSON list.
func pointers(fields []slot) []byte {
	list := []byte{'['}
	for i := range fields {
		if i > 0 {
			list = append(list, ',')
		}
		list = appendQuoted(list, fields[i].pointer)
	}
	return append(list, ']')
}
