// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/conversion-operator/conversion-operator/internal/plain"
)

// appendQuoted writes text as a JSON string. Unlike encoding/json it leaves
// <, > and & unchanged: escaping is for HTML, and bytes should stay.
func appendQuoted[T string | []byte](dst []byte, text T) []byte {
	dst = append(dst, '"')
	for rest := []byte(text); ; {
		length := plain.LenUnicode(rest)
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

// decodeString returns the text of a JSON string that is known to be valid.
func decodeString(quoted []byte) string {
	inner := quoted[1 : len(quoted)-1]
	if isPlain(inner) {
		return string(inner)
	}
	return string(appendUnquoted(nil, inner))
}

// appendUnquoted writes what stands between the quotes of a valid JSON string
// without its escapes. Half a surrogate pair is replaced, as by encoding/json.
func appendUnquoted(dst, inner []byte) []byte {
	for {
		at := bytes.IndexByte(inner, '\\')
		if at < 0 {
			return append(dst, inner...)
		}
		dst = append(dst, inner[:at]...)
		dst, inner = appendUnescaped(dst, inner[at+1:])
	}
}

// escapes pairs the letters of escapes with what they stand for.
const escapes = "\"\"\\\\//b\bf\fn\nr\rt\t"

// appendUnescaped writes one escape, whose backslash is gone, and returns what follows.
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
		return utf8.RuneError // cannot be: the parser has accepted it
	}
	return rune(char)
}

func isString(raw []byte) bool { return len(raw) >= 2 && raw[0] == '"' }

// sameScalar compares two scalars: strings by what they say, numbers by their text.
func sameScalar(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	return isString(a) && isString(b) && (!isPlain(a) || !isPlain(b)) && decodeString(a) == decodeString(b)
}
