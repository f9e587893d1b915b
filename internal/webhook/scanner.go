// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"fmt"

	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// scanner reads JSON without decoding it, member by member. After an error it does not advance, so callers
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
	err     error
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
	isText := s.peek() == '"'
	span := s.value()
	if !isText || s.err != nil || len(span) > maxText {
		return ""
	}
	return string(unquoted(span))
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
	span := s.value()
	if s.err != nil {
		return nil
	}
	return unquoted(span)
}

func unquoted(text []byte) []byte {
	inner := text[1 : len(text)-1 : len(text)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	return tree.Unquote(nil, inner)
}

// value skips the next value, and returns its span, with a capacity that protects the bytes after
// it.
func (s *scanner) value() []byte {
	if s.peek(); s.err != nil {
		return nil
	}
	start := s.pos
	end, err := tree.Skip(s.data, start)
	if err != nil {
		s.fail(err)
		return nil
	}
	s.pos = end
	return s.data[start:end:end]
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
