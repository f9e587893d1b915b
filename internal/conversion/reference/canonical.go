// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// digest tells later whether a value still is what it is now.
func digest(value any) any {
	sum := sha256.Sum256([]byte(canonical(value)))
	return hex.EncodeToString(sum[:])[:16]
}

// canonical writes a value in the only way: without white space, members sorted by
// the bytes of their names, and text with no more escapes than it needs.
func canonical(value any) string {
	var parts []string
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			parts = append(parts, literal(name)+":"+canonical(value[name]))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case []any:
		for _, element := range value {
			parts = append(parts, canonical(element))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case string:
		return literal(value)
	}
	return marshal(value)
}

func literal(text string) string {
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
