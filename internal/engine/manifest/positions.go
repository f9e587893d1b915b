// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Positions finds fields in a document of YAML, or of JSON.
type Positions struct{ root *yaml.Node }

// NewPositions reads a document of a text, by its number from 1.
func NewPositions(text string, index int) Positions {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	for ; index > 0; index-- {
		document := &yaml.Node{}
		if decoder.Decode(document) != nil {
			return Positions{}
		}
		if index == 1 && len(document.Content) == 1 {
			return Positions{document.Content[0]}
		}
	}
	return Positions{}
}

// fieldSegments are the names and indexes of a field.Path.
var fieldSegments = regexp.MustCompile(`[^.\[\]]+|\[[^\]]*\]`)

// Of returns the line and column of a field, from 1: those of its key, or of the dash's content of an element. If
// the text lacks the field, it is that of the nearest field above. It is 0 if the text cannot be read.
func (p Positions) Of(path string) (line, column int) {
	if p.root == nil {
		return 0, 0
	}
	at, node := p.root, p.root
	for _, segment := range fieldSegments.FindAllString(path, -1) {
		name := strings.Trim(segment, `[]`)
		name = strings.Trim(name, `"`)
		key, value := Child(node, name)
		if value == nil {
			break
		}
		at, node = key, value
	}
	return at.Line, at.Column
}

// Child returns a member with its key, or an element twice; nil if there is none.
func Child(node *yaml.Node, name string) (key, value *yaml.Node) {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == name {
				return node.Content[i], node.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(node.Content) {
			return node.Content[i], node.Content[i]
		}
	}
	return nil, nil
}

// Member returns the value at names and indexes, nil if there is none.
func (p Positions) Member(names ...string) *yaml.Node {
	node := p.root
	for _, name := range names {
		if node == nil {
			return nil
		}
		_, node = Child(node, name)
	}
	return node
}
