// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	kubernetesyaml "sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

const (
	// maxDepth limits the objects and lists around a value, also for an alias that
	// contains itself. It is the limit of API servers, of conversions, and of
	// encoding/json and yaml.
	maxDepth = 10_000
	// maxAliased limits the values that aliases and merges produce.
	maxAliased = 1 << 20
)

// errTooDeep is the error for a document that every API server refuses.
var errTooDeep = fmt.Errorf("nested deeper than %d levels of objects and lists, which is the maximum of API servers", maxDepth)

// jsonNumber matches a number in JSON, RFC 8259. Most numbers in YAML have this format.
var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// oldBooleans are booleans in YAML 1.1, which kubectl reads, and text in YAML 1.2.
var oldBooleans = []string{"y", "n", "yes", "no", "on", "off"}

func isOldBoolean(text string) bool { return slices.Contains(oldBooleans, strings.ToLower(text)) }

// ToJSON writes a document of YAML, or a value in it, as JSON. It copies the text of numbers.
func ToJSON(document *yaml.Node) ([]byte, error) {
	return Reader{Depth: maxDepth, Aliased: maxAliased, Bytes: math.MaxInt, Scalar: scalar}.ToJSON(document)
}

// Reader reads YAML as JSON, within limits.
type Reader struct {
	// Depth limits the objects and lists around a value, Aliased the values that aliases and merges produce, and Bytes
	// the JSON with such values.
	Depth, Aliased, Bytes int
	// Scalar writes a scalar as JSON.
	Scalar func(*yaml.Node) ([]byte, error)
}

// ToJSON writes a document of YAML, or a value in it, as JSON.
func (r Reader) ToJSON(document *yaml.Node) ([]byte, error) {
	w := jsonWriter{Reader: r}
	err := w.node(document, 0)
	return w.out.Bytes(), err
}

type jsonWriter struct {
	Reader
	out bytes.Buffer
	// aliased counts the values that aliases and merges have produced.
	aliased int
	inAlias bool
}

func (w *jsonWriter) node(n *yaml.Node, depth int) error {
	if w.inAlias {
		if err := w.count(n, 1); err != nil {
			return err
		}
	}
	switch n.Kind {
	case yaml.DocumentNode:
		return w.node(n.Content[0], depth)
	case yaml.AliasNode:
		defer func(was bool) { w.inAlias = was }(w.inAlias)
		w.inAlias = true
		return w.node(n.Alias, depth)
	case yaml.SequenceNode:
		return w.sequence(n, depth+1)
	case yaml.MappingNode:
		return w.mapping(n, depth+1)
	case yaml.ScalarNode:
		text, err := w.Scalar(n)
		w.out.Write(text)
		return err
	}
	w.out.WriteString("null")
	return nil
}

// count counts values that aliases or merges produce.
func (w *jsonWriter) count(n *yaml.Node, values int) error {
	if w.aliased += values; w.aliased > w.Aliased {
		return fmt.Errorf("line %d: aliases make more than %d values", n.Line, w.Aliased)
	}
	if w.out.Len() > w.Bytes {
		return fmt.Errorf("line %d: aliases make more than %d bytes", n.Line, w.Bytes)
	}
	return nil
}

// enter checks an object or a list at a depth; the document itself has depth 1.
func (w *jsonWriter) enter(n *yaml.Node, depth int, tag string) error {
	switch {
	case depth > w.Depth:
		return fmt.Errorf("line %d: %w", n.Line, errTooDeep)
	case n.ShortTag() != tag:
		return errTag(n)
	}
	return nil
}

func errTag(n *yaml.Node) error {
	return fmt.Errorf("line %d: the tag %s has no meaning in JSON: remove it", n.Line, n.Tag)
}

func (w *jsonWriter) sequence(n *yaml.Node, depth int) error {
	if err := w.enter(n, depth, "!!seq"); err != nil {
		return err
	}
	w.out.WriteByte('[')
	for i, element := range n.Content {
		if i > 0 {
			w.out.WriteByte(',')
		}
		if err := w.node(element, depth); err != nil {
			return err
		}
	}
	w.out.WriteByte(']')
	return nil
}

func (w *jsonWriter) mapping(n *yaml.Node, depth int) error {
	members, err := w.membersOf(n, depth)
	if err != nil {
		return err
	}
	w.out.WriteByte('{')
	for i, member := range members {
		if i > 0 {
			w.out.WriteByte(',')
		}
		w.out.Write(tree.Quote(nil, member.name))
		w.out.WriteByte(':')
		if err := w.node(member.value, depth); err != nil {
			return err
		}
	}
	w.out.WriteByte('}')
	return nil
}

type yamlMember struct {
	name  string
	value *yaml.Node
}

// membersOf returns the members of a mapping: first its own, then those that it merges in.
func (w *jsonWriter) membersOf(n *yaml.Node, depth int) ([]yamlMember, error) {
	if err := w.enter(n, depth, "!!map"); err != nil {
		return nil, err
	}
	var members, merged []yamlMember
	names, merges := map[string]bool{}, false
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name, err := w.nameOf(key)
		if err != nil {
			return nil, err
		}
		isMerge := key.ShortTag() == "!!merge"
		if names[name] && !isMerge || isMerge && merges {
			return nil, fmt.Errorf("line %d: duplicate name %q", key.Line, name)
		}
		if isMerge {
			merges = true
			if merged, err = w.mergedBy(value, depth); err == nil {
				err = w.count(value, len(merged))
			}
			if err != nil {
				return nil, err
			}
			continue
		}
		names[name] = true
		members = append(members, yamlMember{name, value})
	}
	for _, member := range merged {
		if !names[member.name] {
			names[member.name] = true
			members = append(members, member)
		}
	}
	return members, nil
}

// mergedBy returns the members in the value of a merge key, <<.
func (w *jsonWriter) mergedBy(value *yaml.Node, depth int) ([]yamlMember, error) {
	switch value.Kind {
	case yaml.AliasNode:
		return w.mergedBy(value.Alias, depth)
	case yaml.MappingNode:
		return w.membersOf(value, depth+1)
	case yaml.SequenceNode:
		var members []yamlMember
		for _, element := range value.Content {
			more, err := w.mergedBy(element, depth)
			if err != nil {
				return nil, err
			}
			members = append(members, more...)
		}
		return members, nil
	}
	return nil, fmt.Errorf("line %d: << can merge only mappings", value.Line)
}

// nameOf returns the name of a member. Numbers and booleans are names by their text.
func (w *jsonWriter) nameOf(key *yaml.Node) (string, error) {
	if key.Kind == yaml.AliasNode {
		key = key.Alias
	}
	if key.Kind == yaml.ScalarNode && key.Value == "<<" && key.ShortTag() == "!!merge" {
		return key.Value, nil
	}
	if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!null" {
		return "", fmt.Errorf("line %d: a name must be text", key.Line)
	}
	text, err := w.Scalar(key)
	if err != nil {
		return "", err
	}
	if text[0] != '"' {
		return string(text), nil
	}
	return key.Value, nil
}

// scalar writes a scalar as JSON: a number unchanged, everything else like kubectl.
func scalar(n *yaml.Node) ([]byte, error) {
	tag := n.ShortTag()
	switch {
	case n.Style&yaml.TaggedStyle != 0 && tag != "!!str":
		return nil, errTag(n)
	case n.Style != 0, tag == "!!str" && !isOldBoolean(n.Value):
		return tree.Quote(nil, n.Value), nil
	case jsonNumber.MatchString(n.Value):
		return []byte(n.Value), nil
	}
	text, err := kubernetesyaml.YAMLToJSON([]byte(n.Value))
	if err != nil {
		return nil, fmt.Errorf("line %d: %q cannot be converted to JSON: %w", n.Line, n.Value, err)
	}
	return bytes.TrimSpace(text), nil
}
