// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import "bytes"

// formatting is a Format, prepared.
type formatting struct {
	*Format
	// texts are those of the Format.
	texts [][]byte
}

func newFormatting(f *Format) *formatting {
	x := &formatting{Format: f}
	for _, text := range f.Texts {
		x.texts = append(x.texts, []byte(text))
	}
	return x
}

// parse reads a string by the template: a hole takes what comes before the first
// place where the next text stands, and the last hole what is left. Nothing is
// read of a string that does not fit. A hole that takes nothing gives no field.
func (f *formatting) parse(h *hop, value *node) []*node {
	parts := h.lists.take(len(f.Integer))
	if value == nil || !value.isText() {
		return parts
	}
	plain := isPlain(value.text)
	rest, fits := bytes.CutPrefix(h.decode(value.text), f.texts[0])
	for i, integer := range f.Integer {
		var part []byte
		if fits {
			part, rest, fits = cutHole(rest, f.texts[i+1], i == len(f.Integer)-1)
		}
		if fits && len(part) > 0 {
			parts[i], fits = holeValue(h, part, integer, plain)
		}
	}
	if !fits {
		clear(parts)
	}
	return parts
}

// cutHole takes what stands before the next text.
func cutHole(text, next []byte, last bool) (part, rest []byte, fits bool) {
	if last {
		part, fits = bytes.CutSuffix(text, next)
		return part, nil, fits
	}
	return bytes.Cut(text, next)
}

// holeValue writes a part as the hub's field has it. An integer must be as it
// would be printed: 7, not 007. A part of plain text needs no escapes.
func holeValue(h *hop, part []byte, integer, plain bool) (*node, bool) {
	switch {
	case !integer && plain:
		return h.enclose(part), true
	case !integer:
		return h.quote(part), true
	}
	if !isInteger(part) {
		return nil, false
	}
	return h.raw(part), true
}

// write prints the fields by the template, nil where there are none, or where
// one of them is not of the hole's type.
func (f *formatting) write(h *hop, parts []*node) *node {
	if !some(parts) {
		return nil
	}
	var buffer [64]byte
	text := append(buffer[:0], f.texts[0]...)
	for i, part := range parts {
		if part != nil {
			printed, ok := holeText(h, part, f.Integer[i])
			if !ok {
				return nil
			}
			text = append(text, printed...)
		}
		text = append(text, f.texts[i+1]...)
	}
	return h.quote(text)
}

func holeText(h *hop, part *node, integer bool) ([]byte, bool) {
	if integer {
		return part.text, isInteger(part.text)
	}
	if !part.isText() {
		return nil, false
	}
	return h.decode(part.text), true
}
