// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

const (
	// maxDepth is the maximum nesting of values.
	maxDepth = 1000
	// maxValues is the maximum number of values, including names, and those of expanded aliases.
	maxValues = 4 * maxPlaces
	// spare and perByte limit what becomes of a text: perByte bytes for each of its bytes, and spare
	// bytes.
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
	r := reader{values: maxValues, bytes: spare + perByte*len(text)}
	value = r.value(root, 0)
	return value, !r.failed
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

// reader makes values of nodes.
type reader struct {
	// values and bytes are what the value may still take.
	values, bytes int
	failed        bool
}

// fail makes the text one without a value.
func (r *reader) fail() any {
	r.failed = true
	return nil
}

func (r *reader) value(n *yaml.Node, depth int) any {
	r.values--
	if r.bytes -= 1 + len(n.Value); r.values < 0 || r.bytes < 0 || depth > maxDepth || r.failed {
		return r.fail()
	}
	switch tag := n.ShortTag(); {
	case n.Kind == yaml.DocumentNode:
		return r.value(n.Content[0], depth)
	case n.Kind == yaml.AliasNode:
		return r.value(n.Alias, depth+1)
	case n.Kind == yaml.SequenceNode && tag == "!!seq":
		return r.list(n, depth)
	case n.Kind == yaml.MappingNode && tag == "!!map":
		return r.object(n, depth)
	case n.Kind == yaml.ScalarNode:
		return r.scalar(n, tag)
	}
	return r.fail()
}

func (r *reader) list(n *yaml.Node, depth int) any {
	list := make([]any, 0, len(n.Content))
	for _, element := range n.Content {
		list = append(list, r.value(element, depth+1))
	}
	return list
}

func (r *reader) object(n *yaml.Node, depth int) any {
	object := make(map[string]any, len(n.Content)/2)
	var base *yaml.Node
	for i := 0; i+1 < len(n.Content) && !r.failed; i += 2 {
		if key := n.Content[i]; key.Kind == yaml.ScalarNode && key.Value == "<<" && key.ShortTag() == "!!merge" {
			if base != nil {
				return r.fail()
			}
			base = n.Content[i+1]
			continue
		}
		name := r.name(n.Content[i], depth)
		if _, twice := object[name]; twice {
			return r.fail()
		}
		object[name] = r.value(n.Content[i+1], depth+1)
	}
	if base != nil {
		r.merge(object, base, depth+1)
	}
	return object
}

// merge adds the members of another object, or of several, that the object lacks.
func (r *reader) merge(object map[string]any, base *yaml.Node, depth int) {
	var bases []any
	switch from := r.value(base, depth).(type) {
	case map[string]any:
		bases = []any{from}
	case []any:
		bases = from
	default:
		r.fail()
	}
	for _, from := range bases {
		members, isObject := from.(map[string]any)
		if !isObject {
			r.fail()
		}
		for name, member := range members {
			if _, found := object[name]; !found {
				object[name] = member
			}
		}
	}
}

// name returns the text of a scalar that is the name of a member. Numbers and booleans are written as
// in JSON.
func (r *reader) name(n *yaml.Node, depth int) string {
	switch key := r.value(n, depth+1).(type) {
	case string:
		return key
	case bool:
		return strconv.FormatBool(key)
	case int64, float64:
		if text, ok := Encode(key); ok {
			return string(text)
		}
	}
	r.fail()
	return ""
}

func (r *reader) scalar(n *yaml.Node, tag string) any {
	switch tag {
	case "!!str", "!!timestamp":
		return n.Value
	case "!!null", "!!bool", "!!int", "!!float":
	default:
		return r.fail()
	}
	var value any
	if n.Decode(&value) != nil {
		return r.fail()
	}
	switch value := value.(type) {
	case nil, bool:
		return value
	case int:
		return int64(value)
	case int64:
		return value
	case uint64:
		return float64(value)
	case float64:
		if !math.IsInf(value, 0) && !math.IsNaN(value) {
			return value + 0 // -0 is 0
		}
	}
	return r.fail()
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
