// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package playground

import (
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// positions finds fields in a YAML document.
type positions struct{ root *yaml.Node }

// newPositions reads a document of a text, by its number from 1.
func newPositions(text string, index int) positions {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	for ; index > 0; index-- {
		document := &yaml.Node{}
		if decoder.Decode(document) != nil {
			return positions{}
		}
		if index == 1 && len(document.Content) == 1 {
			return positions{document.Content[0]}
		}
	}
	return positions{}
}

// segments are the names and indexes of a field.Path.
var segments = regexp.MustCompile(`[^.\[\]]+|\[[^\]]*\]`)

// of returns the line and column of a field, from 1: those of its key, or of the dash's content of an element. If
// the text lacks the field, it is that of the nearest field above. It is 0 if the text cannot be read.
func (p positions) of(path string) (line, column int) {
	if p.root == nil {
		return 0, 0
	}
	at, node := p.root, p.root
	for _, segment := range segments.FindAllString(path, -1) {
		name := strings.Trim(segment, `[]`)
		name = strings.Trim(name, `"`)
		key, value := child(node, name)
		if value == nil {
			break
		}
		at, node = key, value
	}
	return at.Line, at.Column
}

// child returns a member with its key, or an element twice; nil if there is none.
func child(node *yaml.Node, name string) (key, value *yaml.Node) {
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

// member returns the value at names and indexes, nil if there is none.
func (p positions) member(names ...string) *yaml.Node {
	node := p.root
	for _, name := range names {
		if node == nil {
			return nil
		}
		_, node = child(node, name)
	}
	return node
}
