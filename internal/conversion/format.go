// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import "strings"

// convert parses the spoke's string, or prints the hub's fields.
func (f *Format) convert(values []*node, toHub bool) []*node {
	if toHub {
		return f.parse(values[0])
	}
	return []*node{f.print(values)}
}

// parse reads a string by the template: a hole takes what comes before the first
// place where the next text stands, and the last hole what is left. Nothing is
// read of a string that does not fit. A hole that takes nothing gives no field.
func (f *Format) parse(value *node) []*node {
	parts := make([]*node, len(f.Integer))
	if value == nil || !isString(value.raw) {
		return parts
	}
	rest, fits := strings.CutPrefix(decodeString(value.raw), f.Texts[0])
	for i, integer := range f.Integer {
		var part string
		if fits {
			part, rest, fits = cutHole(rest, f.Texts[i+1], i == len(f.Integer)-1)
		}
		if fits && part != "" {
			parts[i], fits = holeValue(part, integer)
		}
	}
	if !fits {
		clear(parts)
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

// holeValue writes a part as the hub's field has it. An integer must be as it would
// be printed: 7, not 007.
func holeValue(part string, integer bool) (*node, bool) {
	if !integer {
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
			printed, ok := holeText(part, f.Integer[i])
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

func holeText(part *node, integer bool) (string, bool) {
	if integer {
		_, ok := readInteger(string(part.raw))
		return string(part.raw), ok
	}
	if !isString(part.raw) {
		return "", false
	}
	return decodeString(part.raw), true
}
