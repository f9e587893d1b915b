// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"slices"
	"strings"
)

// formatted is what a format rule has computed and will put.
type formatted struct {
	paths  []Path
	values []*node
}

func (f *formatted) put(n *node) {
	for i, value := range f.values {
		if value != nil {
			n.put(f.paths[i], value)
		}
	}
}

// format takes the values of one side away and computes those of the other.
func (h *hop) format(f *Format, n *node, at string) formatted {
	if h.toHub {
		return h.split(f, n, at)
	}
	return h.join(f, n, at)
}

// split parses the spoke's string. What cannot be parsed, or would be printed
// otherwise, is kept aside.
func (h *hop) split(f *Format, n *node, at string) formatted {
	text := n.detach(f.Spoke)
	parts := f.parse(text)
	if kept := h.keptParts(f, n, at, text == nil); kept != nil && sameText(f.print(kept), text) {
		parts = kept
	}
	if text != nil && !sameText(f.print(parts), text) {
		h.setAside(at+f.Spoke.pointer(), text, some(parts))
	}
	result := formatted{values: parts}
	for i, hole := range f.Holes {
		result.paths = append(result.paths, hole.Hub)
		if text == nil && parts[i] != nil {
			h.alone = append(h.alone, hole.Hub)
		}
	}
	return result
}

// join prints the hub's fields. Those that would not be parsed again are kept aside.
func (h *hop) join(f *Format, n *node, at string) formatted {
	parts := make([]*node, len(f.Holes))
	for i, hole := range f.Holes {
		parts[i] = n.detach(hole.Hub)
	}
	text := f.print(parts)
	if raw, found := h.restore[at+f.Spoke.pointer()]; found && (text != nil || n.holds(f.Spoke[:f.Anchor])) {
		if kept := rawNode(raw); sameParts(f.parse(kept), parts) {
			text = kept
		}
	}
	if !sameParts(f.parse(text), parts) {
		for i, part := range parts {
			if part != nil {
				h.setAside(at+f.Holes[i].Hub.pointer(), part, text != nil)
			}
		}
	}
	if text != nil && !some(parts) {
		h.alone = append(h.alone, f.Spoke)
	}
	return formatted{paths: []Path{f.Spoke}, values: []*node{text}}
}

// keptParts are the fields that were kept aside together, nil where there are
// none. Where they are all that there is, the objects above them must be there.
func (h *hop) keptParts(f *Format, n *node, at string, alone bool) []*node {
	var parts []*node
	for i, hole := range f.Holes {
		if raw, found := h.restore[at+hole.Hub.pointer()]; found {
			if alone && !n.holds(hole.Hub[:hole.Anchor]) {
				return nil
			}
			if parts == nil {
				parts = make([]*node, len(f.Holes))
			}
			parts[i] = rawNode(raw)
		}
	}
	return parts
}

// parse reads a string by the template: a hole takes what comes before the first
// place where the next text stands, and the last hole what is left. Nothing is
// read of a string that does not fit. A hole that takes nothing gives no field.
func (f *Format) parse(value *node) []*node {
	parts := make([]*node, len(f.Holes))
	if value == nil || !isString(value.raw) {
		return parts
	}
	rest, fits := strings.CutPrefix(decodeString(value.raw), f.Texts[0])
	for i, hole := range f.Holes {
		if !fits {
			return make([]*node, len(f.Holes))
		}
		var part string
		part, rest, fits = cutHole(rest, f.Texts[i+1], i == len(f.Holes)-1)
		if fits && part != "" {
			parts[i], fits = hole.value(part)
		}
	}
	if !fits {
		return make([]*node, len(f.Holes))
	}
	return parts
}

// cutHole takes what stands before the next text.
func cutHole(text, next string, last bool) (part, rest string, fits bool) {
	if last {
		part, fits = strings.CutSuffix(text, next)
		return part, "", fits
	}
	return strings.Cut(text, next)
}

// value writes a part as the hub's field has it. An integer must be as it would
// be printed: 7, not 007.
func (h *Hole) value(part string) (*node, bool) {
	if !h.Integer {
		return rawNode(appendString(nil, part)), true
	}
	if _, ok := readInteger(part); !ok {
		return nil, false
	}
	return rawNode([]byte(part)), true
}

// print writes the fields by the template, nil where there are none, or where
// one of them is not of the hole's type.
func (f *Format) print(parts []*node) *node {
	text, found := f.Texts[0], false
	for i, part := range parts {
		if part != nil {
			printed, ok := f.Holes[i].text(part)
			if !ok {
				return nil
			}
			text, found = text+printed, true
		}
		text += f.Texts[i+1]
	}
	if !found {
		return nil
	}
	return rawNode(appendString(nil, text))
}

func (h *Hole) text(part *node) (string, bool) {
	if h.Integer {
		_, ok := readInteger(string(part.raw))
		return string(part.raw), ok
	}
	if !isString(part.raw) {
		return "", false
	}
	return decodeString(part.raw), true
}

// some reports whether there is any part.
func some(parts []*node) bool {
	return slices.ContainsFunc(parts, func(part *node) bool { return part != nil })
}

func sameParts(a, b []*node) bool {
	for i := range a {
		if !sameText(a[i], b[i]) {
			return false
		}
	}
	return true
}

// sameText compares two scalars, or their absence.
func sameText(a, b *node) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.raw != nil && b.raw != nil && sameScalar(a.raw, b.raw)
}
