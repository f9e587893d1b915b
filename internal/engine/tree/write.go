// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Append appends the value as JSON. What was read is written as it was.
func (n *Node) Append(dst []byte) []byte {
	switch {
	case n.raw != nil:
		return append(dst, n.raw...)
	case n.kind == List:
		dst = append(dst, '[')
		for i, element := range n.elems {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = element.Append(dst)
		}
		return append(dst, ']')
	}
	dst = append(dst, '{')
	for i := range n.members {
		m := &n.members[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		if m.key != nil {
			dst = append(dst, m.key...)
		} else {
			dst = Quote(dst, m.Name)
		}
		dst = m.Value.Append(append(dst, ':'))
	}
	return append(dst, '}')
}

// Quote appends a text as a JSON string. Unlike encoding/json, it does not escape <, > and &.
func Quote(dst []byte, text string) []byte { return quote(dst, bytesOf(text)) }

func quote(dst, rest []byte) []byte {
	dst = append(dst, '"')
	for {
		length := plainLength(rest)
		dst = append(dst, rest[:length]...)
		if length == len(rest) {
			return append(dst, '"')
		}
		dst, rest = appendEscape(dst, rest[length]), rest[length+1:]
	}
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	const hex = "0123456789abcdef"
	return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

// Unquote appends the content of a valid JSON string, which is given without its quotes. It replaces unpaired surrogates,
// as encoding/json does.
func Unquote(dst, inner []byte) []byte {
	for {
		pos := bytes.IndexByte(inner, '\\')
		if pos < 0 {
			return append(dst, inner...)
		}
		dst = append(dst, inner[:pos]...)
		dst, inner = appendUnescaped(dst, inner[pos+1:])
	}
}

// escapes pairs the letters of escapes with their characters.
const escapes = "\"\"\\\\//b\bf\fn\nr\rt\t"

// appendUnescaped appends the character of an escape, given without its backslash, and returns the rest.
func appendUnescaped(dst, text []byte) (out, rest []byte) {
	if text[0] != 'u' {
		for i := 0; i < len(escapes); i += 2 {
			if escapes[i] == text[0] {
				dst = append(dst, escapes[i+1])
			}
		}
		return dst, text[1:]
	}
	const digits = 4
	char, rest := hexRune(text[1:1+digits]), text[1+digits:]
	if utf16.IsSurrogate(char) {
		other := rune(utf8.RuneError)
		if len(rest) >= 2+digits && rest[0] == '\\' && rest[1] == 'u' {
			other = hexRune(rest[2 : 2+digits])
		}
		if char = utf16.DecodeRune(char, other); char != utf8.RuneError {
			rest = rest[2+digits:]
		}
	}
	return utf8.AppendRune(dst, char), rest
}

func hexRune(digits []byte) rune {
	char, err := strconv.ParseUint(viewOf(digits), 16, 16)
	if err != nil {
		return utf8.RuneError // cannot happen: the reader accepted the escape
	}
	return rune(char)
}
