// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/internal/generate"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserve"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

var pointerNames = strings.NewReplacer("~1", "/", "~2", "[", "~0", "~")

// escapePointer and unescapePointer are for a segment of a pointer. An element is in brackets.
func escapePointer(name string) string {
	return preserve.Address{{Name: name}}.Pointer()[1:]
}

func unescapePointer(segment string) string { return pointerNames.Replace(segment) }

func splitPointer(pointer string) []string {
	return strings.Split(strings.TrimPrefix(pointer, "/"), "/")
}

// isIndex reports whether a segment is the index of an element.
func isIndex(segment string) bool {
	index, err := strconv.Atoi(segment)
	return err == nil && index >= 0 && strconv.Itoa(index) == segment
}

// isElement reports whether a segment names an element of a list.
func isElement(segment string) bool { return strings.HasPrefix(segment, "[") || isIndex(segment) }

// quoted returns a text as a JSON string.
func quoted(text string) string { return string(tree.Quote(nil, text)) }

// withIndexes returns a pointer with indexes of elements for the digests of their contents.
func withIndexes(object any, pointer string) (with string) {
	for segment := range strings.SplitSeq(pointer[1:], "/") {
		if name, found := strings.CutPrefix(segment, "[#"); found {
			content, ordinal, _ := strings.Cut(strings.TrimSuffix(name, "]"), ",")
			left, _ := strconv.Atoi(ordinal)
			list, _ := valueAt(object, with)
			elements, _ := list.([]any)
			for i, element := range elements {
				if quoted(content) != digest(generate.Plain(element)) {
					continue
				}
				if left--; left <= 0 {
					segment = strconv.Itoa(i)
					break
				}
			}
		}
		with += "/" + segment
	}
	return with
}

// withIndex returns the pointer of an inserted element with its index, without brackets, and any other pointer unchanged.
func withIndex(pointer string) string {
	at := strings.LastIndex(pointer, "/[")
	if at >= 0 && isIndex(strings.Trim(pointer[at:], "/[]")) {
		return pointer[:at] + "/" + strings.Trim(pointer[at:], "/[]")
	}
	return pointer
}

// currentRules stands for what identifies the rules of the converter: convert replaces it.
const currentRules = "current"

// preservedText returns the value of an annotation that preserves values, a JSON object by pointer: of absent ones with a !, of
// inserted elements with a ~, and of dropped values with a -. @ marks those of which the other version got something. It
// returns any other text unchanged.
func preservedText(values string) string {
	read, err := decodeAny([]byte(values))
	object, isObject := read.(map[string]any)
	if err != nil || !isObject {
		return values
	}
	data := map[string]any{"format": json.Number(strconv.Itoa(preserve.Format)), "rules": currentRules}
	add := func(member, pointer string, value any) {
		of, _ := data[member].(map[string]any)
		if of == nil {
			of = map[string]any{}
		}
		of[pointer] = value
		data[member] = of
	}
	for _, pointer := range slices.Sorted(maps.Keys(object)) {
		switch value := object[pointer]; pointer[0] {
		case '!':
			add("absent", pointer[1:], "")
		case '~':
			last := strings.LastIndex(pointer, "/")
			add("values", pointer[1:last+1]+"["+pointer[last+1:]+"]", value)
		case '-':
			dropped, _ := data["dropped"].([]any)
			data["dropped"] = append(dropped, pointer[1:])
		case '@':
		default:
			if _, shown := object["@"+pointer]; shown {
				add("values", pointer, value)
			} else {
				add("hidden", pointer, value)
			}
		}
	}
	return generate.Plain(data)
}

// rule is a rule that computes a field: the pointers of its scope at the version of the field and at the
// other one, and the pointers of its target and source fields, relative to the scope.
type rule struct {
	scope, otherScope string
	to, from          []string
	fill              json.RawMessage
}

// rulesTo returns the rules, and the defaults, that compute a field of one of two versions.
func rulesTo(c *conversion.Converter, version, pointer string) (found []rule) {
	spoke := &c.Ruleset().Spokes[0]
	ofHub := version == c.Ruleset().Hub
	var path conversion.Path
	for _, segment := range splitPointer(pointer) {
		if isElement(segment) {
			path = append(path, segment)
		} else {
			path = append(path, unescapePointer(segment))
		}
	}
	var find func(s *conversion.Scope, at, otherAt, rest conversion.Path)
	find = func(s *conversion.Scope, at, otherAt, rest conversion.Path) {
		relative := func(fields []conversion.Field) (pointers []string) {
			for _, f := range fields {
				pointers = append(pointers, f.Path.Pointer())
			}
			return pointers
		}
		for i := range s.Exchanges {
			x := &s.Exchanges[i]
			to, from := x.Spoke, x.Hub
			if ofHub {
				to, from = from, to
			}
			if slices.ContainsFunc(to, func(f conversion.Field) bool { return slices.Equal(f.Path, rest) }) {
				found = append(found, rule{
					scope: at.Pointer(), otherScope: otherAt.Pointer(), to: relative(to), from: relative(from),
				})
			}
		}
		for _, d := range s.Defaults {
			if d.Hub == ofHub && slices.Equal(d.Path, rest) {
				found = append(found, rule{fill: d.Value})
			}
		}
		for i := range s.Collections {
			inner := &s.Collections[i]
			place := inner.At(ofHub)
			if len(rest) <= len(place) || !rest.HasPrefix(place) {
				continue
			}
			steps := len(place)
			if inner.Form(ofHub) != conversion.FormOne {
				steps++
			}
			element := rest[len(place):steps]
			find(&inner.Scope, slices.Concat(at, rest[:steps]), slices.Concat(otherAt, inner.At(!ofHub), element), rest[steps:])
		}
	}
	find(&spoke.Root, nil, nil, path)
	return found
}
