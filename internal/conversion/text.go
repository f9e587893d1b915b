// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"encoding/json"
)

// appendString writes text as a JSON string. Unlike encoding/json it leaves
// <, > and & as they are: escaping is for HTML, and bytes should stay.
func appendString(dst []byte, text string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := range len(text) {
		c := text[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, text[start:i]...)
		start = i + 1
		dst = appendEscape(dst, c)
	}
	dst = append(dst, text[start:]...)
	return append(dst, '"')
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

// decodeString returns the text of a JSON string that is known to be valid.
func decodeString(raw []byte) string {
	inner := raw[1 : len(raw)-1]
	if bytes.IndexByte(inner, '\\') >= 0 {
		return decodeEscaped(raw)
	}
	return string(inner)
}

func decodeEscaped(raw []byte) string {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return "" // cannot be: the parser has accepted it
	}
	return text
}

func isString(raw []byte) bool { return len(raw) >= 2 && raw[0] == '"' }
