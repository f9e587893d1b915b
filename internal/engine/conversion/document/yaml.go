// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
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
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(indent)
	if encoder.Encode(nodeOf(value)) != nil || encoder.Close() != nil {
		return nil, false
	}
	return out.Bytes(), true
}

const indent = 2

// nodeOf returns the node of a value. The library's own nodes have texts that it does not read again.
func nodeOf(value any) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode}
	switch value := value.(type) {
	case map[string]any:
		n.Kind, n.Tag = yaml.MappingNode, "!!map"
		for _, name := range slices.Sorted(maps.Keys(value)) {
			n.Content = append(n.Content, nodeOf(name), nodeOf(value[name]))
		}
	case []any:
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		for _, element := range value {
			n.Content = append(n.Content, nodeOf(element))
		}
	case string:
		n.Value = value
		n.Style, n.Tag = styleOf(n), "!!str"
	default:
		text, _ := Encode(value)
		n.Value = string(text)
	}
	return n
}

// otherwise matches texts that readers of YAML 1.1 take for a boolean, a number with base 60, or
// something else that is no text.
var otherwise = regexp.MustCompile(`^(?i:y|n|yes|no|on|off|<<|=|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?)$`)

// styleOf returns the style of a text without a tag: block style for several lines, and no quotes if
// every reader takes it for a text.
func styleOf(n *yaml.Node) yaml.Style {
	switch {
	case lines.MatchString(n.Value):
		return yaml.LiteralStyle
	case strings.ContainsAny(n.Value, "\n\r") || otherwise.MatchString(n.Value) || n.ShortTag() != "!!str":
		return yaml.DoubleQuotedStyle
	}
	return 0
}

// lines matches several lines that can be written as a block: none of them begins or ends with a space.
var lines = regexp.MustCompile(`^([^\s\pC]([^\pC\n]*[^\s\pC])?\n+)+([^\s\pC]([^\pC\n]*[^\s\pC])?)?$`)

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
