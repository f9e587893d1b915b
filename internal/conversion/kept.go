// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"cmp"
	"slices"
)

// KeptPrefix begins the annotation in which a version's values are kept aside
// while the object is in another version; the version's name ends it.
const KeptPrefix = "conversion-operator.io/"

// maxAnnotations is the API server's limit on all annotations of an object
// together, keys and values, in bytes. It checks the answer of a conversion:
// k8s.io/apimachinery/pkg/api/validation, TotalAnnotationSizeLimitB.
const maxAnnotations = 256 << 10

// kept holds values by their place, a JSON Pointer in which an element of a list
// with keys is named by them: /spec/ports/[name="http"]/weight. In the
// annotation it is a JSON object. A ! before a place tells that nothing was
// there, where coming back would otherwise fill it.
type kept []entry

type entry struct{ pointer, value []byte }

const (
	// absent begins the place of a field that was not there.
	absent = "!"
	// droppedName is the name under which the annotation lists the places of
	// values that were given up because there was no room for them.
	droppedName = "dropped"
)

func compareEntries(a, b entry) int { return bytes.Compare(a.pointer, b.pointer) }

// keepAside keeps a value that stands at a path of a scope.
func (h *hop) keepAside(at *place, pointer string, value []byte) {
	h.keep = append(h.keep, entry{h.pointer(at, "", pointer), value})
}

// pointer writes a place in a scope.
func (h *hop) pointer(at *place, mark, pointer string) []byte {
	start := len(h.text)
	h.text = append(at.append(append(h.text, mark...)), pointer...)
	return h.since(start)
}

// restored looks a value up that was kept aside, nil where there is none.
func (h *hop) restored(at *place, mark, pointer string) []byte {
	if len(h.restore) == 0 {
		return nil
	}
	start := len(h.text)
	found, ok := slices.BinarySearchFunc(h.restore, entry{pointer: h.pointer(at, mark, pointer)}, compareEntries)
	h.text = h.text[:start]
	if !ok {
		return nil
	}
	return h.restore[found].value
}

// under reports whether something below a place is kept: it comes back only
// where the place is still there.
func (k kept) under(pointer []byte) bool {
	return slices.ContainsFunc(k, func(e entry) bool {
		return len(e.pointer) > len(pointer) && e.pointer[len(pointer)] == '/' && bytes.HasPrefix(e.pointer, pointer)
	})
}

// one looks into the members of an object.
var one = &look{}

// takeKept removes a version's annotation and returns what it holds, sorted.
// Nothing is made of an annotation that is not readable: users can write it.
func (a *arena) takeKept(metadata *node, annotation *name, into kept) kept {
	text := a.dropKept(metadata, annotation)
	if text == nil {
		return into
	}
	values, err := a.parse(text, one)
	if err != nil || values.kind != object {
		return into
	}
	for m := values.first; m != nil; m = m.next {
		into = append(into, entry{a.decode(m.key), m.text})
	}
	if !slices.IsSortedFunc(into, compareEntries) {
		slices.SortFunc(into, compareEntries)
	}
	return into
}

// dropKept removes a version's annotation and returns its text, nil where there is none.
func (a *arena) dropKept(metadata *node, annotation *name) []byte {
	annotations := metadata.get(&nameAnnotations)
	if annotations == nil {
		return nil
	}
	value := annotations.remove(annotation)
	if value == nil {
		return nil
	}
	if annotations.first == nil {
		metadata.remove(&nameAnnotations)
	}
	if !value.isText() {
		return nil
	}
	return a.decode(value.text)
}

// writeKept sets a version's annotation, where there is something to keep.
func (h *hop) writeKept(metadata *node, annotation *name) error {
	if len(h.keep) == 0 {
		return nil
	}
	h.keep = h.keep.settle()
	annotations := metadata.get(&nameAnnotations)
	if annotations == nil || !annotations.isObject() {
		annotations = h.newObject()
		metadata.set(&nameAnnotations, annotations)
	}
	text := h.appendKept(nil)
	if room := maxAnnotations - len(annotation.text) - sizeOf(annotations); len(text) > room {
		if h.dropsOverflow {
			text = h.dropLargest(room)
		}
		if len(text) > room || len(text) == 0 {
			return &OverflowError{Version: annotation.text[len(KeptPrefix):], Kept: len(h.appendKept(nil)), Others: sizeOf(annotations)}
		}
	}
	h.outcome.KeptBytes += len(text)
	annotations.set(annotation, h.quote(text))
	return nil
}

// settle sorts what is kept. Of what was kept twice at a place, the latter counts.
func (k kept) settle() kept {
	slices.SortStableFunc(k, compareEntries)
	settled := k[:0]
	for i, e := range k {
		if i+1 == len(k) || !bytes.Equal(e.pointer, k[i+1].pointer) {
			settled = append(settled, e)
		}
	}
	return settled
}

// appendKept writes what is kept, and the names of what was dropped, as JSON.
func (h *hop) appendKept(dropped []entry) []byte {
	start := len(h.text)
	h.text = append(h.text, '{')
	for _, e := range h.keep {
		h.text = append(append(appendQuoted(h.text, e.pointer), ':'), e.value...)
		h.text = append(h.text, ',')
	}
	if len(dropped) > 0 {
		h.text = append(appendQuoted(h.text, droppedName), ":["...)
		for _, e := range dropped {
			h.text = append(appendQuoted(h.text, e.pointer), ',')
		}
		h.text[len(h.text)-1] = ']'
		h.text = append(h.text, ',')
	}
	h.text[len(h.text)-1] = '}'
	return h.since(start)
}

// dropLargest gives the largest values up until the rest fits, and returns the
// text of that; nothing if not even the names of what was dropped fit.
func (h *hop) dropLargest(room int) []byte {
	bySize := slices.Clone(h.keep)
	slices.SortStableFunc(bySize, func(a, b entry) int { return cmp.Compare(len(b.value), len(a.value)) })
	for count := 1; count <= len(bySize); count++ {
		dropped := slices.Clone(bySize[:count])
		slices.SortFunc(dropped, compareEntries)
		h.keep = slices.Clone(bySize[count:])
		slices.SortFunc(h.keep, compareEntries)
		if text := h.appendKept(dropped); len(text) <= room {
			h.outcome.DroppedValues += count
			return text
		}
	}
	return nil
}

// sizeOf is what annotations take, in bytes, as the API server counts them. Where
// they are far from the limit it counts the escapes in.
func sizeOf(annotations *node) int {
	size := func(length func([]byte) int) (total int) {
		for m := annotations.first; m != nil; m = m.next {
			total += length(m.key) + length(m.text)
		}
		return total
	}
	const near = maxAnnotations / 2
	if bound := size(func(text []byte) int { return len(text) }); bound < near {
		return bound
	}
	return size(func(text []byte) int {
		if !isString(text) {
			return len(text)
		}
		return len(decodeString(text))
	})
}
