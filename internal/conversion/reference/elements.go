// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// convert converts the elements of a list or map of x, in place.
func (e *elements) convert(x any, s kept, at string) kept {
	keep := kept{}
	at += e.path.pointer() + "/"
	switch held := find(x, e.path).(type) {
	case map[string]any:
		for name := range held {
			if e.isMap {
				y, more := e.way.convert(held[name], s, at+escapes.Replace(name))
				held[name] = y
				keep.add(more)
			}
		}
	case []any:
		switch {
		case e.isMap:
		case e.named(held):
			for i := range held {
				y, more := e.way.convert(held[i], s, at+selector(held[i], e.keys))
				held[i] = y
				keep.add(more)
			}
		default:
			return e.anonymous(held, s, at)
		}
	}
	return keep
}

// named reports whether the elements of a list are known by their keys: all have
// them, and no two have the same.
func (e *elements) named(list []any) bool {
	seen := map[string]bool{}
	for _, element := range list {
		for _, key := range e.keys {
			if find(element, path{key}) == none {
				return false
			}
		}
		name := selector(element, e.keys)
		if seen[name] {
			return false
		}
		seen[name] = true
	}
	return len(e.keys) > 0
}

// selector names an element by its keys: [name="http",protocol="TCP"].
func selector(element any, keys []string) string {
	var parts []string
	for _, key := range keys {
		parts = append(parts, escapes.Replace(key)+"="+escapes.Replace(literal(find(element, path{key}))))
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// literal writes a key as JSON. Of text it escapes only what must be, so that
// there is one way to write it.
func literal(value any) string {
	text, isText := value.(string)
	if !isText {
		return marshal(value)
	}
	var out strings.Builder
	for _, char := range text {
		switch {
		case char == '"' || char == '\\':
			out.WriteString(`\` + string(char))
		case char == '\n' || char == '\r' || char == '\t':
			out.WriteString(map[rune]string{'\n': `\n`, '\r': `\r`, '\t': `\t`}[char])
		case char < ' ':
			fmt.Fprintf(&out, `\u%04x`, char)
		default:
			out.WriteRune(char)
		}
	}
	return `"` + out.String() + `"`
}

// anonymous converts elements that have no keys. They obey the law as a whole:
// one of which something would be kept aside is kept whole, by its index, and is
// restored in the place of an element that it converts to.
func (e *elements) anonymous(list []any, s kept, at string) kept {
	keep := kept{}
	restored := e.matched(list, s, at)
	for i := range list {
		if restored[i] != none {
			list[i] = restored[i]
			continue
		}
		x := e.way.withoutAll(list[i])
		y, more := e.way.convert(x, nil, "")
		if list[i] = y; len(more) > 0 {
			keep[at+strconv.Itoa(i)] = x
		}
	}
	return keep
}

// matched finds for each element what was kept aside of it, or none. An element
// that is still at its index comes first; of all others, those that were kept
// first take the first place.
func (e *elements) matched(list []any, s kept, at string) []any {
	matched := slices.Repeat([]any{none}, len(list))
	var waiting []int
	for _, index := range s.indexes(at) {
		if index < len(list) && e.becomes(s[at+strconv.Itoa(index)], list[index]) {
			matched[index] = s[at+strconv.Itoa(index)]
		} else {
			waiting = append(waiting, index)
		}
	}
	for _, index := range waiting {
		for i := range list {
			if matched[i] == none && e.becomes(s[at+strconv.Itoa(index)], list[i]) {
				matched[i] = s[at+strconv.Itoa(index)]
				break
			}
		}
	}
	return matched
}

// becomes reports whether an element that was kept aside is what an element was
// on the other side.
func (e *elements) becomes(old, element any) bool {
	y, _ := e.way.back.forward(old, nil, "")
	return Equal(y, element)
}

// withoutAll is x without what is given up in it and in all elements below it.
func (w *way) withoutAll(x any) any {
	x = w.without(x)
	for i := range w.collections {
		e := &w.collections[i]
		switch held := find(x, e.path).(type) {
		case map[string]any:
			for name := range held {
				held[name] = e.way.withoutAll(held[name])
			}
		case []any:
			for i := range held {
				held[i] = e.way.withoutAll(held[i])
			}
		}
	}
	return x
}
