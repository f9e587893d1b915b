// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package document reads and writes values as texts in JSON and YAML.
//
// A value is what an API server decodes from JSON: nil, bool, int64, float64, string, []any or
// map[string]any. Encode writes it as JSON, in one form only.
//
// YAML is read as the library go.yaml.in/yaml/v3 reads it, which follows YAML 1.2 and also accepts
// octal integers with a leading zero. A text has no value if it would be read in several ways, or if
// JSON cannot express it: with several documents, duplicate names, tags that are not YAML's own,
// infinite numbers, or names that are null, a list or an object.
//
// Time and memory are limited: a text has at most 32,768 places where a value may begin, and aliases
// are expanded to a multiple of the text's length only. A text beyond that has no value either.
package document

import (
	"bytes"
	"encoding/json"
	"slices"

	kjson "sigs.k8s.io/json"
)

// Formats are the formats of texts.
var Formats = []string{JSON, YAML}

// JSON is compact, with sorted names. YAML is in block style, with sorted names and without anchors.
const (
	JSON = "JSON"
	YAML = "YAML"
)

// Known reports whether Read and Write know the format.
func Known(format string) bool { return slices.Contains(Formats, format) }

// Read returns the value of a text. It returns false if the text has none, and for a null.
func Read(format string, text []byte) (value any, ok bool) {
	if format == YAML {
		value, ok = readYAML(text)
	} else {
		value, ok = Decode(text)
	}
	return value, ok && value != nil
}

// Write returns the text of a value. It returns false if the text would be more than a multiple of the
// value's JSON.
func Write(format string, value any) (text []byte, ok bool) {
	if format == YAML {
		return writeYAML(value)
	}
	return Encode(value)
}

// Decode decodes JSON. It returns false if the text is not JSON, has a duplicate name in an object, a
// number that is too large, or too many values.
func Decode(text []byte) (value any, ok bool) {
	if countPlaces(text) > maxPlaces {
		return nil, false
	}
	duplicates, err := kjson.UnmarshalStrict(text, &value)
	return value, err == nil && len(duplicates) == 0
}

// Encode encodes a value as JSON, with sorted names. It returns false for a number that JSON cannot
// express.
func Encode(value any) (text []byte, ok bool) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(value) != nil {
		return nil, false
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), true
}

// maxPlaces is the maximum number of places in a text where a value may begin. A value takes much more
// memory than a short text of it.
const maxPlaces = 1 << 15

// countPlaces returns at least the number of places where a value may begin, except for those that
// share a line with their name: after a break, which may be one of Unicode's, a bracket or a comma, and
// after the - or ? of a block.
func countPlaces(text []byte) (count int) {
	for i, c := range text {
		switch c {
		case '\n', '\r', ',', '[', '{', 0x85, 0xa8, 0xa9:
			count++
		case '-', '?':
			if next := text[min(i+1, len(text)-1)]; next == ' ' || next == '\t' {
				count++
			}
		}
	}
	return count
}
