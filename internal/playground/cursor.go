// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package playground

import (
	"slices"
	"strings"
)

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
