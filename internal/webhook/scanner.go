// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// scanner walks over JSON without decoding it. It checks the structure of what
// it walks into; what it skips, it only delimits: strings and brackets are
// followed, their content is left to whoever reads the span.
type scanner struct {
	data []byte
	pos  int
}

// object walks into an object. visit is called in front of every value and must
// consume it. A null is taken for an object without members, as encoding/json does.
func (s *scanner) object(visit func(name string) error) error {
	return s.sequence('{', '}', func() error {
		name, err := s.name()
		if err != nil {
			return err
		}
		if err := s.expect(':'); err != nil {
			return err
		}
		return visit(name)
	})
}

// list walks into a list. visit is called in front of every value and must
// consume it. A null is taken for a list without elements.
func (s *scanner) list(visit func() error) error {
	return s.sequence('[', ']', visit)
}

func (s *scanner) sequence(open, closing byte, element func() error) error {
	if s.null() {
		return nil
	}
	if err := s.expect(open); err != nil {
		return err
	}
	if s.peek() == closing {
		s.pos++
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		if s.peek() == closing {
			s.pos++
			return nil
		}
		if err := s.expect(','); err != nil {
			return err
		}
	}
}

// name reads the name of a member, which may be written with escapes.
func (s *scanner) name() (string, error) {
	if c := s.peek(); c != '"' {
		return "", s.unexpected("the name of a member")
	}
	span, err := s.value()
	if err != nil {
		return "", err
	}
	if bytes.IndexByte(span, '\\') < 0 {
		return string(span[1 : len(span)-1]), nil
	}
	return unquote(span)
}

// text reads a string into to. A null is taken for an empty one.
func (s *scanner) text(to *string) error {
	if s.null() {
		*to = ""
		return nil
	}
	if s.peek() != '"' {
		return s.unexpected("a string")
	}
	span, err := s.value()
	if err != nil {
		return err
	}
	*to, err = unquote(span)
	return err
}

// value returns the span of the next value. Appending to it does not reach the
// bytes behind it.
func (s *scanner) value() ([]byte, error) {
	c, start := s.peek(), s.pos
	var err error
	switch c {
	case '"':
		err = s.skipString()
	case '{', '[':
		err = s.skipNested()
	default:
		err = s.skipLiteral()
	}
	return s.data[start:s.pos:s.pos], err
}

// end reports anything but space behind the value that was read.
func (s *scanner) end() error {
	s.peek()
	if s.pos < len(s.data) {
		return s.unexpected("the end")
	}
	return nil
}

// null consumes a null, if that is the next value.
func (s *scanner) null() bool {
	if s.peek() != 'n' || !bytes.HasPrefix(s.data[s.pos:], []byte("null")) {
		return false
	}
	s.pos += len("null")
	return true
}

// peek skips space and returns the next byte, or 0 at the end.
func (s *scanner) peek() byte {
	for ; s.pos < len(s.data); s.pos++ {
		switch c := s.data[s.pos]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

func (s *scanner) expect(c byte) error {
	if s.peek() != c {
		return s.unexpected(fmt.Sprintf("%q", c))
	}
	s.pos++
	return nil
}

// skipString goes behind the string at the current position. A quote ends it
// unless an odd number of backslashes stands before it.
func (s *scanner) skipString() error {
	for at := s.pos + 1; ; at++ {
		quote := bytes.IndexByte(s.data[at:], '"')
		if quote < 0 {
			s.pos = len(s.data)
			return s.unexpected("the end of a string")
		}
		at += quote
		backslashes := 0
		for s.data[at-1-backslashes] == '\\' {
			backslashes++
		}
		if backslashes%2 == 0 {
			s.pos = at + 1
			return nil
		}
	}
}

// skipNested goes behind the object or list at the current position. It counts
// instead of recursing, so that no depth exhausts the stack.
func (s *scanner) skipNested() error {
	for depth := 0; s.pos < len(s.data); s.pos++ {
		switch s.data[s.pos] {
		case '"':
			if err := s.skipString(); err != nil {
				return err
			}
			s.pos--
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth == 0 {
				s.pos++
				return nil
			}
		}
	}
	return s.unexpected("a closing bracket")
}

// skipLiteral goes behind the number, boolean or null at the current position.
func (s *scanner) skipLiteral() error {
	start := s.pos
	for s.pos < len(s.data) && isLiteral(s.data[s.pos]) {
		s.pos++
	}
	if s.pos == start {
		return s.unexpected("a value")
	}
	return nil
}

func isLiteral(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == 'E' || c == '-' || c == '+' || c == '.'
}

func (s *scanner) unexpected(wanted string) error {
	if s.pos >= len(s.data) {
		return fmt.Errorf("the body ends at byte %d where %s should be", len(s.data), wanted)
	}
	return fmt.Errorf("%q at byte %d where %s should be", s.data[s.pos], s.pos, wanted)
}

func unquote(span []byte) (string, error) {
	var text string
	err := json.Unmarshal(span, &text)
	return text, err
}
