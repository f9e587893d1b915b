// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/conversion-operator/conversion-operator/internal/engine/jsonascii"
)

// maxNesting is the maximum depth of a skipped value. API servers do not decode deeper values.
const maxNesting = 10_000

// scanner reads JSON without decoding it. It checks the structure of the objects and lists that it
// enters. Of a value that it skips, it only finds the end: it matches quotes and brackets, and
// leaves the content to the consumer of the span. After an error it does not advance, so callers
// can check err once.
//
//	if s.enter('{') {
//		for s.next('}') {
//			name := s.name()
//			... read one value
//		}
//	}
type scanner struct {
	data []byte
	pos  int
	// entered is true until the first member or element of the innermost object or list is read.
	entered bool
	// anyDepth disables maxNesting.
	anyDepth bool
	err      error
}

// enter enters the object or list that begins with opening. For a null it returns false:
// encoding/json treats it as empty, too.
func (s *scanner) enter(opening byte) bool {
	if s.null() {
		return false
	}
	s.entered = s.expect(opening)
	return s.entered
}

// next advances to the next member or element, or past the closing bracket. It reports whether
// there is one.
func (s *scanner) next(closing byte) bool {
	if s.err != nil {
		return false
	}
	first := s.entered
	s.entered = false
	if s.peek() == closing {
		s.pos++
		return false
	}
	return first || s.expect(',')
}

// name reads the name of a member and the colon. The result is unescaped, and may share memory with
// the data.
func (s *scanner) name() []byte {
	if s.peek() != '"' {
		s.unexpected("the name of a member")
		return nil
	}
	name := s.text()
	s.expect(':')
	return name
}

// members calls each for every member of an object, until an error. each must read the value. For a
// value that is not an object, members skips it.
func (s *scanner) members(each func(name string)) {
	if s.peek() != '{' {
		s.value()
		return
	}
	s.enter('{')
	for s.next('}') {
		if name := s.name(); s.err == nil {
			each(string(name))
		}
	}
}

// maxText is the length of the longest text that is read from a request, besides objects: names have at most 253
// characters. Answers and messages repeat some texts, also several times.
const maxText = 1 << 10

// textOrSkip reads a value, and returns it if it is a string, and not too long.
func (s *scanner) textOrSkip() string {
	if s.peek() != '"' || len((&scanner{data: s.data, pos: s.pos}).value()) > maxText {
		s.value()
		return ""
	}
	return string(s.text())
}

// text reads a string, and returns it decoded. A null reads as an empty string. Strings without
// escapes share memory with the data.
func (s *scanner) text() []byte {
	if s.peek() != '"' {
		if !s.null() {
			s.unexpected("a string")
		}
		return nil
	}
	inner := s.data[s.pos+1:]
	if length := jsonascii.Len(inner); length < len(inner) && inner[length] == '"' && s.err == nil {
		s.pos += length + len(`""`)
		return inner[:length:length]
	}
	return s.escapedText()
}

// escapedText reads a string that contains escapes.
func (s *scanner) escapedText() []byte {
	span := s.value()
	if s.err != nil {
		return nil
	}
	var decoded string
	if err := json.Unmarshal(span, &decoded); err != nil {
		s.fail(err)
	}
	return []byte(decoded)
}

// value skips the next value, and returns its span, with a capacity that protects the bytes after
// it.
func (s *scanner) value() []byte {
	c, start := s.peek(), s.pos
	switch {
	case s.err != nil:
		return nil
	case c == '"':
		s.skipString()
	case c == '{' || c == '[':
		s.skipNested()
	default:
		s.skipLiteral()
	}
	return s.data[start:s.pos:s.pos]
}

// end fails if anything but white space follows.
func (s *scanner) end() {
	s.peek()
	if s.err == nil && s.pos < len(s.data) {
		s.unexpected("the end")
	}
}

// null skips a null, if it is the next value.
func (s *scanner) null() bool {
	if s.peek() != 'n' || !bytes.HasPrefix(s.data[s.pos:], []byte("null")) {
		return false
	}
	s.pos += len("null")
	return true
}

// peek skips white space and returns the next byte, or 0 at the end.
func (s *scanner) peek() byte {
	if s.pos < len(s.data) && s.data[s.pos] > ' ' {
		return s.data[s.pos]
	}
	return s.skipSpace()
}

func (s *scanner) skipSpace() byte {
	for ; s.pos < len(s.data); s.pos++ {
		switch c := s.data[s.pos]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

func (s *scanner) expect(c byte) bool {
	if s.peek() != c || s.err != nil {
		s.unexpected(fmt.Sprintf("%q", c))
		return false
	}
	s.pos++
	return true
}

// skipString skips the string at the current position. A quote ends it unless the number of
// backslashes before it is not even.
func (s *scanner) skipString() {
	for i := s.pos + 1; ; i++ {
		quote := bytes.IndexByte(s.data[i:], '"')
		if quote < 0 {
			s.pos = len(s.data)
			s.unexpected("the end of a string")
			return
		}
		i += quote
		backslashes := 0
		for s.data[i-1-backslashes] == '\\' {
			backslashes++
		}
		if backslashes%2 == 0 {
			s.pos = i + 1
			return
		}
	}
}

// skipNested skips the object or list at the current position. It counts brackets instead of
// recursing, so that depth cannot exhaust the stack.
func (s *scanner) skipNested() {
	for depth := 0; s.pos < len(s.data) && s.err == nil; {
		switch s.data[s.pos] {
		case '"':
			s.skipString()
			continue
		case '{', '[':
			if depth++; depth > maxNesting && !s.anyDepth {
				s.fail(fmt.Errorf("the value at byte %d is nested deeper than %d levels", s.pos, maxNesting))
				return
			}
		case '}', ']':
			if depth--; depth == 0 {
				s.pos++
				return
			}
		}
		s.pos++
	}
	s.unexpected("a closing bracket")
}

// skipLiteral skips the number, boolean or null at the current position.
func (s *scanner) skipLiteral() {
	start := s.pos
	for s.pos < len(s.data) && isLiteral(s.data[s.pos]) {
		s.pos++
	}
	if s.pos == start {
		s.unexpected("a value")
	}
}

func isLiteral(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == 'E' || c == '-' || c == '+' || c == '.'
}

func (s *scanner) unexpected(wanted string) {
	if s.pos >= len(s.data) {
		s.fail(fmt.Errorf("the body ends at byte %d where %s should be", len(s.data), wanted))
		return
	}
	s.fail(fmt.Errorf("%q at byte %d where %s should be", s.data[s.pos], s.pos, wanted))
}

// fail records the first error.
func (s *scanner) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// within adds the name of the member to an error.
func (s *scanner) within(name string) {
	if s.err != nil {
		s.err = fmt.Errorf("%s: %w", name, s.err)
	}
}
