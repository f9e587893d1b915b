// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// Write writes documents in a form, or each in its own if the form is empty. Documents that
// were read as JSON keep their bytes in JSON.
func Write(w io.Writer, form Form, documents []Document) error {
	formOf := func(d Document) Form {
		if form != "" {
			return form
		}
		return d.Form
	}
	// JSON is also YAML, so a stream with both separates all documents like YAML.
	separated := slices.ContainsFunc(documents, func(d Document) bool { return formOf(d) == YAML })
	var out bytes.Buffer
	for i, document := range documents {
		if separated && i > 0 {
			out.WriteString("---\n")
		}
		if err := document.write(&out, formOf(document)); err != nil {
			return fmt.Errorf("%s: %w", document, err)
		}
	}
	_, err := w.Write(out.Bytes())
	return err
}

func (d Document) write(out *bytes.Buffer, form Form) error {
	switch {
	case form == YAML:
		return writeYAML(out, d.JSON)
	case d.Form == YAML:
		if err := json.Indent(out, d.JSON, "", "  "); err != nil {
			return err
		}
	default:
		out.Write(d.JSON)
	}
	out.WriteByte('\n')
	return nil
}

// Encode writes a value of JSON as a document of YAML.
func Encode(value []byte) (string, error) {
	var out bytes.Buffer
	err := writeYAML(&out, value)
	return out.String(), err
}

// ToYAML returns a value of JSON as a value of YAML, in block style.
func ToYAML(value []byte) (*yaml.Node, error) {
	root, err := new(tree.Arena).Read(value)
	if err != nil {
		return nil, err
	}
	return toYAML(root), nil
}

func writeYAML(out *bytes.Buffer, text []byte) error {
	node, err := ToYAML(text)
	if err != nil {
		return err
	}
	encoder := yaml.NewEncoder(out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(node); err != nil {
		return err
	}
	return encoder.Close()
}

// tags are those of values by their kind. A number has none.
var tags = map[tree.Kind]string{tree.Null: "!!null", tree.Bool: "!!bool"}

// toYAML keeps the order of members.
func toYAML(n *tree.Node) *yaml.Node {
	node := &yaml.Node{Kind: yaml.ScalarNode, Tag: tags[n.Kind()]}
	switch n.Kind() {
	case tree.Object:
		node.Kind = yaml.MappingNode
	case tree.List:
		node.Kind = yaml.SequenceNode
	case tree.String:
		return textNode(n.Text())
	default:
		node.Value = string(n.JSON())
		return node
	}
	for _, m := range n.Members() {
		node.Content = append(node.Content, textNode(m.Name), toYAML(m.Value))
	}
	for _, element := range n.Elems() {
		node.Content = append(node.Content, toYAML(element))
	}
	if n.Len() == 0 {
		node.Style = yaml.FlowStyle
	}
	return node
}

// readOtherwise matches texts that readers of YAML 1.1, as kubectl, take for a boolean, a number, also with base 60, or
// something else that is no text.
var readOtherwise = regexp.MustCompile(`^(?i:y|n|yes|no|on|off|<<|=|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?|-?(0|[1-9][0-9]*)(\.[0-9]+)?(e[+-]?[0-9]+)?)$`)

// textNode returns a node that every reader reads as this text.
func textNode(text string) *yaml.Node {
	node := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	if readOtherwise.MatchString(text) || strings.ContainsAny(text, "\n\r") && !isBlock(text) {
		node.Style = yaml.DoubleQuotedStyle
	}
	return node
}

// isBlock reports whether lines can be written as a block. They cannot if a reader may take
// white space for indentation, or may ignore it.
func isBlock(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if strings.TrimRightFunc(line, unicode.IsSpace) != line || strings.ContainsFunc(line, unicode.IsControl) {
			return false
		}
	}
	return text[0] != '\n' && text[0] != ' '
}
