// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package playground

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify"
)

// Completed is the answer to Complete.
type Completed struct {
	// Typed is what stands before the cursor of the key or value: what an option replaces.
	Typed   string   `json:"typed"`
	Options []Option `json:"options"`
}

// Option is what can stand at the cursor.
type Option struct {
	Label string `json:"label"`
	// Detail is its type, Info its description.
	Detail string `json:"detail,omitempty"`
	Info   string `json:"info,omitempty"`
	// IsKey distinguishes keys from values.
	IsKey bool `json:"isKey,omitempty"`
}

// maxOptions bounds an answer. Editors filter them by what is typed.
const maxOptions = 1000

// Complete returns what can stand in the policy at the cursor, which is an offset in bytes: fields of a
// ConversionPolicy, values of enumerations, and paths of the versions.
func Complete(in Input, offset int) *Completed {
	at := cursorAt(in.Policy[:max(0, min(offset, len(in.Policy)))])
	completed := &Completed{Typed: at.typed, Options: []Option{}}
	of := schemaAt(policySchema(), described(at.path))
	switch {
	case of == nil:
	case at.key == "":
		for _, name := range slices.Sorted(maps.Keys(of.Properties)) {
			property := of.Properties[name]
			completed.Options = append(completed.Options, Option{Label: name, Detail: property.Type, Info: firstParagraph(property.Description), IsKey: true})
		}
		if len(of.Properties) == 0 {
			completed.Options = values(*of)
		}
	default:
		completed.Options = in.valuesOf(*of, at)
	}
	completed.Options = completed.Options[:min(len(completed.Options), maxOptions)]
	return completed
}

// valuesOf returns the values of a key.
func (in Input) valuesOf(of apiextensionsv1.JSONSchemaProps, at cursor) []Option {
	value := schemaAt(&of, []string{at.key})
	definition, _, err := in.readDefinition()
	switch {
	case value == nil:
		return []Option{}
	case err != nil:
		return values(*value)
	case at.key == "hub" || at.key == "version" && slices.Contains(at.path, "spokes"):
		return versions(definition)
	}
	if paths := in.paths(definition, at); len(paths) > 0 {
		return paths
	}
	return values(*value)
}

func versions(definition *apiextensionsv1.CustomResourceDefinition) []Option {
	options := []Option{}
	for _, version := range crds.ByPriority(definition) {
		options = append(options, Option{Label: version.Name})
	}
	return options
}

// values returns those of an enumeration or a boolean.
func values(of apiextensionsv1.JSONSchemaProps) []Option {
	options := []Option{}
	for _, value := range of.Enum {
		text := ""
		if json.Unmarshal(value.Raw, &text) == nil {
			options = append(options, Option{Label: text})
		}
	}
	if of.Type == "boolean" {
		options = append(options, Option{Label: "true"}, Option{Label: "false"})
	}
	return options
}

// paths returns the fields that a rule's from or to can name: those of the spoke, or of the hub. In a move, paths of
// inner rules continue those of the move.
func (in Input) paths(definition *apiextensionsv1.CustomResourceDefinition, at cursor) []Option {
	side := at.key
	if side != "from" && side != "to" && len(at.path) > 0 {
		side = at.path[len(at.path)-1] // the fields of format and cel
	}
	if side != "from" && side != "to" || !slices.Contains(at.path, "rules") || slices.Contains(at.path, "ruleGroups") {
		return nil // the paths of a group begin where it is used, which may be at several paths
	}
	hub, spoke := in.versionsAt(at)
	name := spoke
	if side == "to" {
		name = hub
	}
	version, _ := crds.Version(definition, name)
	if version == nil || version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
		return nil
	}
	var options []Option
	fieldsOf(version.Schema.OpenAPIV3Schema, nil, func(path conversion.Path, of *apiextensionsv1.JSONSchemaProps) {
		options = append(options, Option{Label: path.String(), Detail: of.Type, Info: firstParagraph(of.Description)})
	})
	return options
}

// versionsAt returns the hub, and the spoke at the cursor, which is the last one before it.
func (in Input) versionsAt(at cursor) (hub, spoke string) {
	for line := range strings.Lines(at.before) {
		key, value, _ := strings.Cut(strings.TrimLeft(line, "- "), ":")
		switch value = strings.Trim(strings.TrimSpace(value), `"'`); key {
		case "hub":
			hub = value
		case "version":
			spoke = value
		}
	}
	return hub, spoke
}

// fieldsOf visits all fields of a schema in the order of their names, parents first.
func fieldsOf(of *apiextensionsv1.JSONSchemaProps, at conversion.Path, visit func(conversion.Path, *apiextensionsv1.JSONSchemaProps)) {
	for _, name := range slices.Sorted(maps.Keys(of.Properties)) {
		if len(at) == 0 && (name == "apiVersion" || name == "kind") {
			continue
		}
		property, path := of.Properties[name], append(slices.Clip(at), name)
		visit(path, &property)
		fieldsOf(&property, path, visit)
	}
	if elements := crds.Elements(of); elements != nil {
		fieldsOf(elements, append(slices.Clip(at), conversion.Each), visit)
	}
}

// policySchema returns the schema of what users write in a ConversionPolicy: all but the status. It is nil if the
// CustomResourceDefinition cannot be read, which is ours.
func policySchema() *apiextensionsv1.JSONSchemaProps {
	definition, err := verify.PolicyDefinition()
	if err != nil {
		return nil
	}
	written := *definition.Spec.Versions[0].Schema.OpenAPIV3Schema
	written.Properties = maps.Clone(written.Properties)
	delete(written.Properties, "status")
	return &written
}

// described returns the path of the same field where the schema describes it: the rules of groups are described at
// spokes (internal/dev/tools/crd).
func described(path []string) []string {
	at := slices.Index(path, "ruleGroups")
	if at < 0 || !slices.Contains(path[at:], "rules") {
		return path
	}
	path = slices.Clone(path)
	path[at] = "spokes"
	return path
}

// schemaAt returns the schema at keys and elements, nil if there is none.
func schemaAt(of *apiextensionsv1.JSONSchemaProps, path []string) *apiextensionsv1.JSONSchemaProps {
	for _, name := range path {
		if of == nil {
			return nil
		}
		property, isProperty := of.Properties[name]
		switch {
		case isProperty:
			of = &property
		case (name == element) == (of.Items != nil):
			of = crds.Elements(of)
		default:
			return nil
		}
	}
	return of
}

func firstParagraph(text string) string {
	first, _, _ := strings.Cut(text, "\n\n")
	return strings.ReplaceAll(first, "\n", " ")
}

// cursor is a place in a YAML text that may be unfinished.
type cursor struct {
	// path are the keys above it, with element for elements of lists.
	path []string
	// key is the key of the value at the cursor, empty where a key can stand.
	key string
	// typed is what stands before the cursor of the key or value.
	typed string
	// before is the text before the cursor.
	before string
}

// element stands for any element of a list in the path of a cursor.
const element = "[]"

// frame is a key, or an element of a list, in block style.
type frame struct {
	indent int
	name   string
}

// cursorAt returns the place at the end of a text. It does not parse YAML, because a text that a user types is often
// none: it follows indentation, dashes, and braces in the last line.
func cursorAt(text string) cursor {
	all := strings.Split(text, "\n")
	var frames []frame
	for i, line := range all {
		isLast := i == len(all)-1
		if !isLast { // the last one ends at the cursor
			line = strings.TrimSuffix(line, "\r")
		}
		content := strings.TrimLeft(line, " ")
		switch {
		case strings.HasPrefix(line, "---"):
			frames = nil
			continue
		case !isLast && (strings.TrimSpace(content) == "" || content[0] == '#'):
			continue
		}
		indent := len(line) - len(content)
		frames, content, indent = elements(frames, content, indent)
		key, value, isKey := cutKey(content)
		if isKey || isLast {
			frames = above(frames, indent)
		}
		if isLast {
			at := atEnd(frames, key, value, content, isKey)
			at.before = text
			return at
		}
		if isKey {
			frames = append(frames, frame{indent, key})
		}
	}
	return cursor{}
}

// elements reads the dashes at the start of a line.
func elements(frames []frame, content string, indent int) ([]frame, string, int) {
	for content == "-" || strings.HasPrefix(content, "- ") {
		frames = above(frames, indent+1)
		if n := len(frames); n > 0 && frames[n-1] == (frame{indent, element}) {
			frames = frames[:n-1]
		}
		frames = append(frames, frame{indent, element})
		rest := strings.TrimLeft(content[1:], " ")
		indent += len(content) - len(rest)
		content = rest
	}
	return frames, content, indent
}

// above removes the frames that end before a line of this indentation. Elements of a list have the indentation of
// their dash.
func above(frames []frame, indent int) []frame {
	for len(frames) > 0 && frames[len(frames)-1].indent >= indent {
		frames = frames[:len(frames)-1]
	}
	return frames
}

// cutKey splits "key: value".
func cutKey(content string) (key, value string, isKey bool) {
	if content == "" || strings.ContainsRune(`{["'#`, rune(content[0])) {
		return "", "", false
	}
	if key, found := strings.CutSuffix(content, ":"); found {
		return key, "", true
	}
	return strings.Cut(content, ": ")
}

// atEnd returns the cursor at the end of the last line.
func atEnd(frames []frame, key, value, content string, isKey bool) cursor {
	at := cursor{}
	for _, frame := range frames {
		at.path = append(at.path, frame.name)
	}
	if !isKey {
		value = content
	} else {
		at.key = key
	}
	value = strings.TrimLeft(value, " ")
	if value == "" || value[0] != '{' && value[0] != '[' {
		at.typed = value
		return at
	}
	return at.inFlow(value)
}

// inFlow follows braces and brackets. The key of a value before them becomes a part of the path.
func (at cursor) inFlow(text string) cursor {
	var outer []cursor
	start, quote := 0, byte(0)
	for i := range len(text) {
		switch c := text[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '{' || c == '[':
			outer = append(outer, at)
			if at.key != "" {
				at.path = append(slices.Clip(at.path), at.key)
			}
			if at.key = ""; c == '[' {
				at.path = append(slices.Clip(at.path), element)
			}
			start = i + 1
		case c == '}' || c == ']':
			if len(outer) == 0 {
				return cursor{}
			}
			at, outer, start = outer[len(outer)-1], outer[:len(outer)-1], i+1
		case c == ',':
			at.key, start = "", i+1
		case c == ':' && i+1 < len(text) && text[i+1] == ' ':
			at.key, start = strings.TrimSpace(text[start:i]), i+1
		}
	}
	at.typed = strings.TrimLeft(text[start:], " ")
	return at
}
