// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/engine/preserve"
)

const (
	// MaxAnnotations is the API server's limit for all annotations of an object together, names
	// and values, in bytes. The API server checks it in the answer of a conversion:
	// k8s.io/apimachinery/pkg/api/validation, TotalAnnotationSizeLimitB.
	MaxAnnotations = 256 << 10
	// readable is the size up to which an annotation is not compressed, in bytes, so that most
	// annotations stay readable.
	readable = 16 << 10
	// maxDropped is the number of dropped values that an annotation names.
	maxDropped = 20
)

// writePreserved sets the annotation of a version, unless there is nothing to preserve. The entries
// are as rules name them.
func (s *step) writePreserved(metadata *node, v *version, p preserved) error {
	if len(p.excluded) > 0 {
		p.entries = append(p.entries, p.excluded.besides(p.entries)...).sorted()
	}
	if len(p.entries) == 0 && p.unreadable == nil {
		return nil
	}
	annotations := metadata.get(&nameAnnotations)
	if annotations == nil || !annotations.isObject() {
		annotations = s.newObject()
		metadata.set(&nameAnnotations, annotations)
	}
	if text := s.annotation(annotations, &v.annotation); text != nil {
		p.unreadable = text
		annotations.remove(&v.annotation)
	}
	text := p.unreadable
	p.entries = s.asVersionNames(p.entries, v)
	if len(p.entries) > 0 {
		text = s.pack(s.appendPreserved(p, nil))
	}
	if !s.truncates && !s.hasRoom(annotations, v, text) {
		if s.dropsOverflow {
			text = s.dropLargest(annotations, v, p)
		}
		if !s.dropsOverflow || !s.hasRoom(annotations, v, text) {
			return &OverflowError{Version: v.name, Preserved: len(text), Others: sizeOf(annotations)}
		}
	}
	s.outcome.PreservedBytes += len(text)
	annotations.set(&v.annotation, s.quote(text))
	return nil
}

// hasRoom reports whether the API server accepts the text together with the other annotations.
func (s *step) hasRoom(annotations *node, v *version, text []byte) bool {
	room := MaxAnnotations - len(v.annotation.text) - len(text)
	return room >= 0 && (quotedSizeOf(annotations) <= room || sizeOf(annotations) <= room)
}

// appendPreserved returns the value of an annotation.
func (s *step) appendPreserved(p preserved, dropped entries) []byte {
	start := len(s.text)
	s.text = append(s.text, `{"format":`+preservedFormat...)
	s.appendValues(&nameFields, p.entries, valueEntry)
	s.appendList(&nameAbsent, p.entries, absenceEntry)
	s.appendValues(&nameOrders, p.entries, orderEntry)
	s.appendValues(&nameExcluded, p.entries, excludedEntry)
	s.appendAttributes(&nameImages, p.entries, func(e *entry) []byte { return e.images })
	s.appendAttributes(&nameAnchors, p.entries, func(e *entry) []byte { return e.anchor })
	if len(dropped) > 0 {
		s.appendList(&nameDropped, dropped[:min(len(dropped), maxDropped)], valueEntry)
	}
	if p.unreadable != nil {
		s.appendName(&nameUnreadable)
		s.text = appendQuoted(s.text, p.unreadable)
	}
	s.text = append(s.text, '}')
	return s.textFrom(start)
}

func (s *step) appendName(name *name) {
	s.text = append(append(append(s.text, ','), name.quoted...), ':')
}

func (s *step) appendValues(name *name, of entries, kind entryKind) {
	separator := byte('{')
	for _, e := range of {
		if e.kind != kind {
			continue
		}
		if separator == '{' {
			s.appendName(name)
		}
		s.text = append(appendQuoted(append(s.text, separator), e.pointer), ':')
		s.text, separator = append(s.text, e.value...), ','
	}
	if separator == ',' {
		s.text = append(s.text, '}')
	}
}

func (s *step) appendList(name *name, of entries, kind entryKind) {
	separator := byte('[')
	for _, e := range of {
		if e.kind != kind {
			continue
		}
		if separator == '[' {
			s.appendName(name)
		}
		s.text, separator = appendQuoted(append(s.text, separator), e.pointer), ','
	}
	if separator == ',' {
		s.text = append(s.text, ']')
	}
}

// appendAttributes writes an attribute of sorted entries, by pointer: once, if two kinds of
// entries have the same one.
func (s *step) appendAttributes(name *name, of entries, part func(*entry) []byte) {
	separator := byte('{')
	for i := range of {
		said := part(&of[i])
		next := i + 1
		if said == nil || next < len(of) && part(&of[next]) != nil && bytes.Equal(of[i].pointer, of[next].pointer) {
			continue
		}
		if separator == '{' {
			s.appendName(name)
		}
		s.text = append(appendQuoted(append(s.text, separator), of[i].pointer), ':')
		s.text, separator = append(s.text, said...), ','
	}
	if separator == ',' {
		s.text = append(s.text, '}')
	}
}

// pack compresses a long text if that makes it shorter.
func (s *step) pack(text []byte) []byte {
	if len(text) <= readable {
		return text
	}
	s.meter.take(packBytes)
	return preserve.Compress(text, preservedFormat)
}

// dropLargest drops the largest values until the rest fits, and returns the text of the rest,
// which names the first dropped values.
func (s *step) dropLargest(annotations *node, v *version, p preserved) []byte {
	order := make([]int, len(p.entries))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(len(p.entries[b].value), len(p.entries[a].value))
	})
	without := func(count int) []byte {
		isDropped := make([]bool, len(p.entries))
		for _, i := range order[:count] {
			isDropped[i] = true
		}
		rest, dropped := preserved{unreadable: p.unreadable}, entries{}
		for i, e := range p.entries {
			if isDropped[i] {
				e.kind = valueEntry
				dropped = append(dropped, e)
			} else {
				rest.entries = append(rest.entries, e)
			}
		}
		start := len(s.text)
		text := bytes.Clone(s.pack(s.appendPreserved(rest, dropped)))
		s.text = s.text[:start]
		return text
	}
	// Find the smallest number of values to drop: the text shrinks with each of them.
	low, high := 1, len(order)
	for low < high {
		if middle := (low + high) / 2; s.hasRoom(annotations, v, without(middle)) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	if len(order) == 0 {
		return s.appendPreserved(p, nil)
	}
	s.outcome.DroppedValues += low
	return without(low)
}

// sizeOf returns the size of annotations in bytes, as the API server counts it.
func sizeOf(annotations *node) (total int) {
	for m := annotations.first; m != nil; m = m.next {
		total += textSize(m.key) + textSize(m.text)
	}
	return total
}

// quotedSizeOf is an upper bound of sizeOf that needs no decoding.
func quotedSizeOf(annotations *node) (total int) {
	for m := annotations.first; m != nil; m = m.next {
		total += len(m.key) + len(m.text)
	}
	return total
}

// textSize returns the length of a string value without its escapes.
func textSize(quoted []byte) int {
	switch {
	case !isString(quoted):
		return len(quoted)
	case isPlain(quoted):
		return len(quoted) - len(`""`)
	}
	return len(decodeString(quoted))
}

// pointers returns the pointers of fields, with the names of their version, as a JSON list.
func pointers(fields []slot) []byte {
	list := []byte{'['}
	for i := range fields {
		if i > 0 {
			list = append(list, ',')
		}
		list = appendQuoted(list, fields[i].image)
	}
	return append(list, ']')
}
