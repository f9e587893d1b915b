// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/conversion-operator/conversion-operator/internal/conversion/shape/internal/form"
	"github.com/conversion-operator/conversion-operator/internal/plain"
)

// maxDepth is how deep the API server lets JSON nest.
const maxDepth = 10000

// Fits returns nil where the API server would accept these JSON bytes as the value
// of the schema's field, and would prune nothing of it and replace no null in it.
// Otherwise the error names the place and the reason; it does not hold the value.
func (s *Schema) Fits(value []byte) error {
	r := scanner{src: value}
	if m := r.whole(s); m != nil {
		return m
	}
	if !r.limited {
		return nil
	}
	if m := s.decodedFits(value); m != nil {
		return m
	}
	return nil
}

// scanner looks at a value's bytes.
type scanner struct {
	src   []byte
	depth int
	// limited is true where a schema was passed that limits its value.
	limited bool
}

func (r *scanner) whole(s *Schema) *MisfitError {
	if !utf8.Valid(r.src) {
		return misfit("is not UTF-8")
	}
	at, m := r.value(s, r.space(0))
	if m == nil && r.space(at) != len(r.src) {
		m = misfit(notJSON)
	}
	return m
}

// value looks at the value that begins at a place and returns where it ends.
func (r *scanner) value(s *Schema, at int) (end int, m *MisfitError) {
	switch c := r.byte(at); c {
	case '"':
		if end, m = r.text(at); m == nil {
			m = r.string(s, r.src[at:end])
		}
		return end, m
	case '{':
		if m := r.ofKind(s, objectKind); m != nil {
			return at, m
		}
		return r.nested(s, at)
	case '[':
		if m := r.ofKind(s, arrayKind); m != nil {
			return at, m
		}
		return r.nested(s, at)
	case 't':
		end, m = r.word(at, "true")
		return end, first(m, r.ofKind(s, booleanKind))
	case 'f':
		end, m = r.word(at, "false")
		return end, first(m, r.ofKind(s, booleanKind))
	case 'n':
		end, m = r.word(at, "null")
		return end, first(m, r.null(s))
	}
	return r.number(s, at)
}

// ofKind holds a value's type against the schema's, and takes note of its limits.
func (r *scanner) ofKind(s *Schema, of kind) *MisfitError {
	r.limited = r.limited || s.limited
	if s.kind == of || s.kind == anyKind || s.kind == intOrStringKind && of == stringKind {
		return nil
	}
	return misfit("must be " + kindNames[s.kind] + ", not " + kindNames[of])
}

// null fits where it is allowed. Elsewhere the API server drops it or puts the
// default in its place, but for elements of a list, of which none is dropped.
func (r *scanner) null(s *Schema) *MisfitError {
	r.limited = r.limited || s.limited
	if s.node.Nullable || s.element && s.kind == anyKind && s.node.Default == nil {
		return nil
	}
	return misfit("must be " + kindNames[s.kind] + ", not null")
}

// nested looks at what is in brackets, one level deeper.
func (r *scanner) nested(s *Schema, at int) (end int, m *MisfitError) {
	if r.depth++; r.depth > maxDepth {
		return at, misfit("is nested deeper than " + strconv.Itoa(maxDepth))
	}
	if inside := r.space(at + 1); r.src[at] == '{' {
		end, m = r.members(s, inside)
	} else {
		end, m = r.elements(s, inside)
	}
	r.depth--
	return end, m
}

func (r *scanner) elements(s *Schema, at int) (int, *MisfitError) {
	if r.byte(at) == ']' {
		return at + 1, nil
	}
	items := s.Items()
	for i := 0; ; i++ {
		end, m := r.value(items, at)
		if m != nil {
			return end, m.inElement(i)
		}
		switch at = r.space(end); r.byte(at) {
		case ',':
			at = r.space(at + 1)
		case ']':
			return at + 1, nil
		default:
			return at, misfit(notJSON)
		}
	}
}

// number looks at a number. What is written as an integer and is short is one. For
// all else the API server's way to read it decides.
func (r *scanner) number(s *Schema, at int) (end int, m *MisfitError) {
	end, integral, m := r.numberEnd(at)
	if m != nil {
		return at, m
	}
	text := r.src[at:end]
	small := integral && len(text) <= 18
	if !small {
		if number, err := strconv.ParseFloat(string(text), 64); err != nil || math.IsInf(number, 0) {
			return at, misfit("is a number that is too large")
		}
	}
	r.limited = r.limited || s.limited
	switch s.kind {
	case anyKind, numberKind:
		return end, nil
	case integerKind, intOrStringKind:
		r.limited = r.limited || !small
		return end, nil
	}
	return end, misfit("must be " + kindNames[s.kind] + ", not a number")
}

func (r *scanner) numberEnd(at int) (end int, integral bool, m *MisfitError) {
	end, integral = at, true
	if r.byte(end) == '-' {
		end++
	}
	from := end
	if end = r.digits(end); end == from || r.src[from] == '0' && end > from+1 {
		return at, false, misfit(notJSON)
	}
	if r.byte(end) == '.' {
		from, integral = end+1, false
		if end = r.digits(from); end == from {
			return at, false, misfit(notJSON)
		}
	}
	if c := r.byte(end); c == 'e' || c == 'E' {
		from, integral = end+1, false
		if c := r.byte(from); c == '+' || c == '-' {
			from++
		}
		if end = r.digits(from); end == from {
			return at, false, misfit(notJSON)
		}
	}
	return end, integral, nil
}

func (r *scanner) digits(at int) int {
	for c := r.byte(at); '0' <= c && c <= '9'; c = r.byte(at) {
		at++
	}
	return at
}

// text returns where a string ends.
func (r *scanner) text(at int) (end int, m *MisfitError) {
	for at++; ; {
		at += plain.LenUnicode(r.src[min(at, len(r.src)):])
		switch c := r.byte(at); {
		case c == '"' && at < len(r.src):
			return at + 1, nil
		case c != '\\':
			return at, misfit(notJSON)
		}
		switch r.byte(at + 1) {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			at += 2
		case 'u':
			if !r.hex(at + 2) {
				return at, misfit(notJSON)
			}
			at += 6
		default:
			return at, misfit(notJSON)
		}
	}
}

func (r *scanner) hex(at int) bool {
	for i := range 4 {
		c := r.byte(at + i)
		if ('0' > c || c > '9') && ('a' > c || c > 'f') && ('A' > c || c > 'F') {
			return false
		}
	}
	return true
}

func (r *scanner) word(at int, word string) (end int, m *MisfitError) {
	if !bytes.HasPrefix(r.src[at:], []byte(word)) {
		return at, misfit(notJSON)
	}
	return at + len(word), nil
}

func (r *scanner) space(at int) int {
	for c := r.byte(at); c == ' ' || c == '\n' || c == '\t' || c == '\r'; c = r.byte(at) {
		at++
	}
	return at
}

// byte is the byte at a place, 0 behind the end.
func (r *scanner) byte(at int) byte {
	if at < len(r.src) {
		return r.src[at]
	}
	return 0
}

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
