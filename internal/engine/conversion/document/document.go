// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package document reads and writes values as texts in JSON and YAML.
//
// A value is a tree. Its numbers are as an API server writes them: integers of 64 bits unchanged, and others in their
// shortest form.
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

	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
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

// Read returns the value of a text: nil if the text has none, or too many, and for a null.
func Read(a *tree.Arena, format string, text []byte) *tree.Node {
	if countPlaces(text) > maxPlaces {
		return nil
	}
	if format == YAML {
		text = readYAML(text)
	}
	value, err := a.Read(text)
	if err != nil || value.Is(tree.Null) {
		return nil
	}
	return normal(a, value)
}

// Write returns the text of a value: nil if the value has too many, or a number that is too large, or if the text would be more
// than a multiple of the value's JSON.
func Write(a *tree.Arena, format string, value *tree.Node) []byte {
	if value = normal(a, value); value == nil {
		return nil
	}
	text := a.Canonical(nil, value)
	if countPlaces(text) > maxPlaces {
		return nil
	}
	if format == YAML {
		return writeYAML(value, text)
	}
	return text
}

// normal returns a value with normal numbers, nil if one is too large.
func normal(a *tree.Arena, n *tree.Node) *tree.Node {
	if n.Is(tree.Number) {
		var value any
		if kjson.UnmarshalCaseSensitivePreserveInts(n.JSON(), &value) != nil {
			return nil
		}
		text, err := json.Marshal(value)
		if err != nil || bytes.Equal(text, n.JSON()) {
			return n // it is never infinite
		}
		return a.NewScalar(text)
	}
	isNormal := true
	n = a.Filter(n, func(_ string, inner *tree.Node) *tree.Node {
		inner = normal(a, inner)
		isNormal = isNormal && inner != nil
		return inner
	})
	if !isNormal {
		return nil
	}
	return n
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
