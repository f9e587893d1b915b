// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/conversion-operator/conversion-operator/internal/jsonascii"
)

// maxNesting is how deep a value may go that is skipped. The API server decodes
// nothing that goes deeper, and nothing that people write has 50 levels.
const maxNesting = 10_000

// scanner walks over JSON without decoding it. It checks the structure of what
// it walks into; what it skips, it only delimits: strings and brackets are
// followed, their content is left to the client that reads the span. After an error it
// stalls, so that callers look at err once.
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
	// entered tells that nothing was read yet in the innermost object or list.
	entered bool
	// anyDepth skips values however deep they go.
	anyDepth bool
	err      error
}

// enter walks into the object or list that opening begins. A null is taken for
// an empty one, as encoding/json does: then there is nothing to walk into.
func (s *scanner) enter(opening byte) bool {
	if s.null() {
		return false
	}
	s.entered = s.expect(opening)
	return s.entered
}

// take goes behind a text that stands here byte by byte, and reports whether it does.
func (s *scanner) take(text string) bool {
	if s.err != nil || !bytes.HasPrefix(s.data[s.pos:], []byte(text)) {
		return false
	}
	s.pos += len(text)
	return true
}

// next goes in front of the next member or element, or behind the closing
// bracket if there is none.
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

// name reads the name of a member, up to its value. It may be a part of the
// data, and may have been written with escapes.
func (s *scanner) name() []byte {
	if s.peek() != '"' {
		s.unexpected("the name of a member")
		return nil
	}
	name := s.text()
	s.expect(':')
	return name
}

// members goes through the members of an object up to an error. The client that is told of
// one reads its value. What is no object has none.
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

// textOrElse reads a value, and returns it if it is a string.
func (s *scanner) textOrElse() string {
	if s.peek() != '"' {
		s.value()
		return ""
	}
	return string(s.text())
}

// text reads a string, and returns it decoded. A null is taken for an empty one.
// Of most strings that is a part of the data, and costs nothing.
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

// escapedText is a string that is not plain.
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

// value skips the next value and returns its span. Appending to it does not
// reach the bytes behind it.
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

// end reports anything but space behind the value that was read.
func (s *scanner) end() {
	s.peek()
	if s.err == nil && s.pos < len(s.data) {
		s.unexpected("the end")
	}
}

// null consumes a null, if that is the next value.
func (s *scanner) null() bool {
	if s.peek() != 'n' || !bytes.HasPrefix(s.data[s.pos:], []byte("null")) {
		return false
	}
	s.pos += len("null")
	return true
}

// peek skips space, of which there is none mostly, and returns the next byte, or
// 0 at the end.
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

// skipString goes behind the string at the current position. A quote ends it
// unless it is escaped: the number of backslashes before it is not even.
func (s *scanner) skipString() {
	for at := s.pos + 1; ; at++ {
		quote := bytes.IndexByte(s.data[at:], '"')
		if quote < 0 {
			s.pos = len(s.data)
			s.unexpected("the end of a string")
			return
		}
		at += quote
		backslashes := 0
		for s.data[at-1-backslashes] == '\\' {
			backslashes++
		}
		if backslashes%2 == 0 {
			s.pos = at + 1
			return
		}
	}
}

// skipNested goes behind the object or list at the current position. It counts
// instead of recursing, so that no depth exhausts the stack.
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

// skipLiteral goes behind the number, boolean or null at the current position.
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

// fail stops the walk. The first error is the one that counts.
func (s *scanner) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// within names the member in which the walk failed.
func (s *scanner) within(name string) {
	if s.err != nil {
		s.err = fmt.Errorf("%s: %w", name, s.err)
	}
}
