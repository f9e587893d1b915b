// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"errors"
	"io"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	kjson "sigs.k8s.io/json"

	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
)

const (
	// maxDepth is the maximum nesting of values.
	maxDepth = 1000
	// maxAliased is the maximum number of values that aliases and merges make.
	maxAliased = 2 * maxPlaces
	// spare and perByte limit what aliases make of a text, and indentation of a value: perByte bytes for each of its bytes, and
	// spare bytes.
	spare   = 4 << 10
	perByte = 16
)

// readYAML returns the value of a text that is one YAML document.
func readYAML(text []byte) (value any, ok bool) {
	if !utf8.Valid(text) || countPlaces(text) > maxPlaces {
		return nil, false
	}
	root := parseYAML(text)
	if root == nil {
		return nil, false
	}
	encoded, err := manifest.Reader{Depth: maxDepth, Aliased: maxAliased, Bytes: spare + perByte*len(text), Scalar: scalar}.ToJSON(root)
	if err != nil || kjson.UnmarshalCaseSensitivePreserveInts(encoded, &value) != nil {
		return nil, false
	}
	return value, true
}

// parseYAML returns nil if the text is not exactly one document.
func parseYAML(text []byte) (root *yaml.Node) {
	defer func() {
		if recover() != nil { // the text is a user's, and a fault of the library must not fail the conversion
			root = nil
		}
	}()
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, next yaml.Node
	if decoder.Decode(&document) != nil || !errors.Is(decoder.Decode(&next), io.EOF) {
		return nil
	}
	return &document
}

var errNotJSON = errors.New("it has a value that JSON cannot express")

// scalar writes a scalar as JSON.
func scalar(n *yaml.Node) ([]byte, error) {
	var value any = n.Value
	switch n.ShortTag() {
	case "!!str", "!!timestamp":
	case "!!null", "!!bool", "!!int", "!!float":
		if err := n.Decode(&value); err != nil {
			return nil, err
		}
		if float, is := value.(float64); is {
			value = float + 0 // -0 is 0
		}
	default:
		return nil, errNotJSON
	}
	text, ok := Encode(value)
	if !ok {
		return nil, errNotJSON
	}
	return text, nil
}

// writeYAML returns false if indentation would make the text much longer than the value.
func writeYAML(value any) (text []byte, ok bool) {
	plain, ok := Encode(value)
	if !ok || yamlSize(value, 0) > spare+perByte*len(plain) {
		return nil, false
	}
	defer func() {
		if recover() != nil { // as in parseYAML
			text, ok = nil, false
		}
	}()
	node, err := manifest.ToYAML(plain)
	if err != nil {
		return nil, false
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(indent)
	if encoder.Encode(node) != nil || encoder.Close() != nil {
		return nil, false
	}
	return out.Bytes(), true
}

const indent = 2

// yamlSize returns approximately the length of a value's text: each line of it is indented.
func yamlSize(value any, depth int) (size int) {
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			size += indent*depth + len(name) + len(": ") + yamlSize(member, depth+1)
		}
	case []any:
		for _, element := range value {
			size += indent*depth + len("- ") + yamlSize(element, depth+1)
		}
	case string:
		return len(value) + indent*depth*bytes.Count([]byte(value), []byte("\n"))
	}
	return size + len("null\n")
}
