// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/conversion-operator/conversion-operator/internal/engine/jsonascii"
)

// appendQuoted appends text as a JSON string. Unlike encoding/json, it does not escape <, > and &.
func appendQuoted[T string | []byte](dst []byte, text T) []byte {
	dst = append(dst, '"')
	for rest := []byte(text); ; {
		length := jsonascii.LenUnicode(rest)
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

// isPlain reports whether text has no escapes.
func isPlain(text []byte) bool { return bytes.IndexByte(text, '\\') < 0 }

// decodeString returns the text of a valid JSON string.
func decodeString(quoted []byte) string {
	inner := quoted[1 : len(quoted)-1]
	if isPlain(inner) {
		return string(inner)
	}
	return string(appendUnquoted(nil, inner))
}

// appendUnquoted appends the content of a valid JSON string without escapes. It replaces unpaired
// surrogates, as encoding/json does.
func appendUnquoted(dst, inner []byte) []byte {
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

// appendUnescaped appends the character of an escape, given without its backslash, and returns the
// rest.
func appendUnescaped(dst, text []byte) (out, rest []byte) {
	if text[0] != 'u' {
		for i := 0; i < len(escapes); i += 2 {
			if escapes[i] == text[0] {
				dst = append(dst, escapes[i+1])
			}
		}
		return dst, text[1:]
	}
	char, rest := hexRune(text[1:5]), text[5:]
	if utf16.IsSurrogate(char) {
		other := rune(utf8.RuneError)
		if len(rest) >= 6 && rest[0] == '\\' && rest[1] == 'u' {
			other = hexRune(rest[2:6])
		}
		if char = utf16.DecodeRune(char, other); char != utf8.RuneError {
			rest = rest[6:]
		}
	}
	return utf8.AppendRune(dst, char), rest
}

func hexRune(digits []byte) rune {
	char, err := strconv.ParseUint(string(digits), 16, 16)
	if err != nil {
		return utf8.RuneError // cannot happen: the parser accepted the escape
	}
	return rune(char)
}

func isString(raw []byte) bool { return len(raw) >= 2 && raw[0] == '"' }

// sameScalar reports whether two scalars are equal: strings by content, numbers by text.
func sameScalar(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	return isString(a) && isString(b) && (!isPlain(a) || !isPlain(b)) && decodeString(a) == decodeString(b)
}
