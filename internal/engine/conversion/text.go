// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"

	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// appendQuoted appends text as a JSON string.
func appendQuoted[T string | []byte](dst []byte, text T) []byte { return tree.Quote(dst, text) }

// isPlain reports whether text has no escapes.
func isPlain(text []byte) bool { return bytes.IndexByte(text, '\\') < 0 }

// decodeString returns the text of a valid JSON string.
func decodeString(quoted []byte) string {
	inner := quoted[1 : len(quoted)-1]
	if isPlain(inner) {
		return string(inner)
	}
	return string(tree.Unquote(nil, inner))
}

func isString(raw []byte) bool { return len(raw) >= 2 && raw[0] == '"' }

// sameScalar reports whether two scalars are equal: strings by content, numbers by text.
func sameScalar(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	return isString(a) && isString(b) && (!isPlain(a) || !isPlain(b)) && decodeString(a) == decodeString(b)
}
