// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
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

// readYAML returns the JSON of a text that is one YAML document, nil for any other text.
func readYAML(text []byte) []byte {
	if !utf8.Valid(text) {
		return nil
	}
	root := parseYAML(text)
	if root == nil {
		return nil
	}
	encoded, err := manifest.Reader{Depth: maxDepth, Aliased: maxAliased, Bytes: spare + perByte*len(text), Scalar: scalar}.ToJSON(root)
	if err != nil {
		return nil
	}
	return encoded
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
	switch n.ShortTag() {
	case "!!str", "!!timestamp":
		return tree.Quote(nil, n.Value), nil
	case "!!null", "!!bool", "!!int", "!!float":
		var value any
		if err := n.Decode(&value); err != nil {
			return nil, err
		}
		if float, is := value.(float64); is {
			value = float + 0 // -0 is 0
		}
		return json.Marshal(value)
	}
	return nil, errNotJSON
}

// writeYAML returns nil if indentation would make the text much longer than the value, which is given also as JSON.
func writeYAML(value *tree.Node, plain []byte) (text []byte) {
	if yamlSize(value, 0) > spare+perByte*len(plain) {
		return nil
	}
	defer func() {
		if recover() != nil { // as in parseYAML
			text = nil
		}
	}()
	node, err := manifest.ToYAML(plain)
	if err != nil {
		return nil
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(indent)
	if encoder.Encode(node) != nil || encoder.Close() != nil {
		return nil
	}
	return out.Bytes()
}

const indent = 2

// yamlSize returns approximately the length of a value's text: each line of it is indented.
func yamlSize(n *tree.Node, depth int) (size int) {
	for _, m := range n.Members() {
		size += indent*depth + len(m.Name) + len(": ") + yamlSize(m.Value, depth+1)
	}
	for _, element := range n.Elems() {
		size += indent*depth + len("- ") + yamlSize(element, depth+1)
	}
	return size + len(n.Text()) + indent*depth*strings.Count(n.Text(), "\n") + len("null\n")
}
