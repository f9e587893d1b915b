// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/conversion-operator/conversion-operator/internal/engine/jsonascii"
)

// maxDepth is the maximum nesting that the API server accepts.
const maxDepth = 10000

// Fits returns nil if the API server would accept the JSON value for the field of the schema,
// would prune nothing of it, and would not replace a null in it. Otherwise the error names the
// place and the reason, and does not contain the value.
func (s *Schema) Fits(value []byte) error {
	r := scanner{src: value}
	if m := r.scan(s); m != nil {
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

// scanner checks a value without decoding it.
type scanner struct {
	src   []byte
	depth int
	// limited is set if a schema on the way has limits that need decoding.
	limited bool
}

func (r *scanner) scan(s *Schema) *MisfitError {
	if !utf8.Valid(r.src) {
		return misfit("is not UTF-8")
	}
	pos, m := r.value(s, r.skipSpace(0))
	if m == nil && r.skipSpace(pos) != len(r.src) {
		m = misfit(notJSON)
	}
	return m
}

// value scans the value at pos and returns its end.
func (r *scanner) value(s *Schema, pos int) (end int, m *MisfitError) {
	switch c := r.byte(pos); c {
	case '"':
		if end, m = r.textEnd(pos); m == nil {
			m = r.checkString(s, r.src[pos:end])
		}
		return end, m
	case '{':
		if m := r.checkType(s, objectKind); m != nil {
			return pos, m
		}
		return r.nested(s, pos)
	case '[':
		if m := r.checkType(s, arrayKind); m != nil {
			return pos, m
		}
		return r.nested(s, pos)
	case 't':
		end, m = r.literalEnd(pos, "true")
		return end, firstMisfit(m, r.checkType(s, booleanKind))
	case 'f':
		end, m = r.literalEnd(pos, "false")
		return end, firstMisfit(m, r.checkType(s, booleanKind))
	case 'n':
		end, m = r.literalEnd(pos, "null")
		return end, firstMisfit(m, r.checkNull(s))
	}
	return r.number(s, pos)
}

// checkType compares the type of a value with the schema.
func (r *scanner) checkType(s *Schema, of kind) *MisfitError {
	r.limited = r.limited || s.limited
	if s.kind == of || s.kind == anyKind || s.kind == intOrStringKind && of == stringKind {
		return nil
	}
	return misfit("must be " + kindNames[s.kind] + ", not " + kindNames[of])
}

// checkNull accepts null if the field is nullable. Elsewhere the API server prunes null or
// replaces it by the default, except for elements of a list, which it never prunes.
func (r *scanner) checkNull(s *Schema) *MisfitError {
	r.limited = r.limited || s.limited
	if s.nullable || s.element && s.kind == anyKind && s.limits.Default == nil {
		return nil
	}
	return misfit("must be " + kindNames[s.kind] + ", not null")
}

// nested scans the content of brackets.
func (r *scanner) nested(s *Schema, pos int) (end int, m *MisfitError) {
	if r.depth++; r.depth > maxDepth {
		return pos, misfit("is nested deeper than " + strconv.Itoa(maxDepth))
	}
	if inside := r.skipSpace(pos + 1); r.src[pos] == '{' {
		end, m = r.members(s, inside)
	} else {
		end, m = r.elements(s, inside)
	}
	r.depth--
	return end, m
}

func (r *scanner) elements(s *Schema, pos int) (int, *MisfitError) {
	if r.byte(pos) == ']' {
		return pos + 1, nil
	}
	items := s.Items()
	for i := 0; ; i++ {
		end, m := r.value(items, pos)
		if m != nil {
			return end, m.inElement(i)
		}
		switch pos = r.skipSpace(end); r.byte(pos) {
		case ',':
			pos = r.skipSpace(pos + 1)
		case ']':
			return pos + 1, nil
		default:
			return pos, misfit(notJSON)
		}
	}
}

// number scans a number. A short number in the form of an integer is an integer. For any other
// number, decoding decides as the API server does.
func (r *scanner) number(s *Schema, pos int) (end int, m *MisfitError) {
	end, integral, m := r.numberEnd(pos)
	if m != nil {
		return pos, m
	}
	text := r.src[pos:end]
	small := integral && len(text) <= 18
	if !small {
		if number, err := strconv.ParseFloat(string(text), 64); err != nil || math.IsInf(number, 0) {
			return pos, misfit("is a number that is too large")
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

func (r *scanner) numberEnd(pos int) (end int, integral bool, m *MisfitError) {
	end, integral = pos, true
	if r.byte(end) == '-' {
		end++
	}
	from := end
	if end = r.digitsEnd(end); end == from || r.src[from] == '0' && end > from+1 {
		return pos, false, misfit(notJSON)
	}
	if r.byte(end) == '.' {
		from, integral = end+1, false
		if end = r.digitsEnd(from); end == from {
			return pos, false, misfit(notJSON)
		}
	}
	if c := r.byte(end); c == 'e' || c == 'E' {
		from, integral = end+1, false
		if c := r.byte(from); c == '+' || c == '-' {
			from++
		}
		if end = r.digitsEnd(from); end == from {
			return pos, false, misfit(notJSON)
		}
	}
	return end, integral, nil
}

func (r *scanner) digitsEnd(pos int) int {
	for c := r.byte(pos); '0' <= c && c <= '9'; c = r.byte(pos) {
		pos++
	}
	return pos
}

// textEnd returns the end of a string.
func (r *scanner) textEnd(pos int) (end int, m *MisfitError) {
	for pos++; ; {
		pos += jsonascii.LenUnicode(r.src[min(pos, len(r.src)):])
		switch c := r.byte(pos); {
		case c == '"' && pos < len(r.src):
			return pos + 1, nil
		case c != '\\':
			return pos, misfit(notJSON)
		}
		switch r.byte(pos + 1) {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			pos += 2
		case 'u':
			if !r.hex(pos + 2) {
				return pos, misfit(notJSON)
			}
			pos += 6
		default:
			return pos, misfit(notJSON)
		}
	}
}

func (r *scanner) hex(pos int) bool {
	for i := range 4 {
		c := r.byte(pos + i)
		if ('0' > c || c > '9') && ('a' > c || c > 'f') && ('A' > c || c > 'F') {
			return false
		}
	}
	return true
}

func (r *scanner) literalEnd(pos int, word string) (end int, m *MisfitError) {
	if !bytes.HasPrefix(r.src[pos:], []byte(word)) {
		return pos, misfit(notJSON)
	}
	return pos + len(word), nil
}

func (r *scanner) skipSpace(pos int) int {
	for c := r.byte(pos); c == ' ' || c == '\n' || c == '\t' || c == '\r'; c = r.byte(pos) {
		pos++
	}
	return pos
}

// byte returns the byte at pos, and 0 after the end.
func (r *scanner) byte(pos int) byte {
	if pos < len(r.src) {
		return r.src[pos]
	}
	return 0
}

// newEnumTexts returns the strings of the enum.
func (s *Schema) newEnumTexts() *map[string]struct{} {
	words := make(map[string]struct{}, len(s.limits.Enum))
	for _, text := range s.limits.Enum {
		if word, err := decoded(text); err == nil {
			if word, isString := word.(string); isString {
				words[word] = struct{}{}
			}
		}
	}
	return &words
}

// checkString checks a string. Common limits need no decoding if the string has no escapes.
func (r *scanner) checkString(s *Schema, quoted []byte) *MisfitError {
	simple := s.isText && s.limits.extraCheck == nil && bytes.IndexByte(quoted, '\\') < 0
	if !s.limited || !simple {
		return r.checkType(s, stringKind)
	}
	text, n := quoted[1:len(quoted)-1], s.limits
	if n.Enum != nil {
		if _, allowed := (*n.enumTexts.of(s, (*Schema).newEnumTexts))[string(text)]; !allowed {
			return misfit("is none of the allowed values")
		}
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
	if pattern := n.pattern.of(s, (*Schema).newPattern); pattern.err != nil || !pattern.Match(text) {
		return misfit("does not match the pattern")
	}
	return nil
}
