// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"bytes"
	"unicode/utf8"

	"github.com/conversion-operator/conversion-operator/internal/conversion/shape/internal/form"
)

// isText reports whether a schema's limits can be checked on a string's bytes.
func isText(n *form.Node) bool {
	return n.Type == "s" && !n.IntOrString && n.Format == "" && n.AllOf == nil && n.AnyOf == nil && n.OneOf == nil && n.Not == nil
}

// newWords are the strings of an enum.
func (s *Schema) newWords() map[string]struct{} {
	words := make(map[string]struct{}, len(s.node.Enum))
	for _, text := range s.node.Enum {
		if word, err := decoded(text); err == nil {
			if word, isString := word.(string); isString {
				words[word] = struct{}{}
			}
		}
	}
	return words
}

// string holds a string against its schema. The usual limits need no decoding where
// nothing is escaped.
func (r *scanner) string(s *Schema, quoted []byte) *MisfitError {
	simple := s.words != nil && s.extra == nil && bytes.IndexByte(quoted, '\\') < 0
	if !s.limited || !simple {
		return r.ofKind(s, stringKind)
	}
	text, n := quoted[1:len(quoted)-1], s.node
	if _, allowed := s.words()[string(text)]; !allowed && n.Enum != nil {
		return misfit("is none of the allowed values")
	}
	if n.MaxLength != nil && int64(utf8.RuneCount(text)) > *n.MaxLength {
		return misfit("is too long")
	}
	if n.MinLength != nil && int64(utf8.RuneCount(text)) < *n.MinLength {
		return misfit("is too short")
	}
	if n.Pattern == "" {
		return nil
	}
	if pattern, err := s.pattern(); err != nil || !pattern.Match(text) {
		return misfit("does not match the pattern")
	}
	return nil
}
