// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strconv"
	"unicode/utf8"

	"github.com/conversion-operator/conversion-operator/internal/plain"
)

// skip reads a value without looking into it.
func (p *parser) skip() error {
	if p.at >= len(p.src) {
		return p.fail("a value was expected")
	}
	switch c := p.src[p.at]; {
	case c == '"':
		return p.text()
	case c == '{', c == '[':
		return p.skipNested()
	case c == 't':
		return p.word("true")
	case c == 'f':
		return p.word("false")
	case c == 'n':
		return p.word("null")
	case c == '-' || '0' <= c && c <= '9':
		return p.number()
	}
	return p.fail("a value was expected")
}

// skipNested reads an object or a list, and all in it, in one loop: where it is
// stays in a register.
func (p *parser) skipNested() (err error) {
	src, at, outside := p.src, p.at, p.depth
	for {
		// A value begins here.
		switch c := byteAt(src, at); c {
		case '"':
			at, err = p.textEnd(at)
		case '{', '[':
			if p.depth++; p.depth > maxDepth {
				return p.failAt(at, "nested deeper than "+strconv.Itoa(maxDepth))
			}
			p.ends[p.depth] = c + 2 // the bracket that closes it
			if at = skipSpace(src, at+1); byteAt(src, at) == c+2 {
				break
			}
			if c == '{' {
				if at, err = p.keyEnd(at); err != nil {
					return err
				}
			}
			continue
		default:
			p.at = at
			err = p.skip()
			at = p.at
		}
		if err != nil {
			return err
		}
		// A value, or what is in the brackets, ends here.
		for at = skipSpace(src, at); byteAt(src, at) != ','; at = skipSpace(src, at) {
			if byteAt(src, at) != p.ends[p.depth] {
				return p.failAt(at, "a comma or an end was expected")
			}
			at++
			if p.depth--; p.depth == outside {
				p.at = at
				return nil
			}
		}
		if at = skipSpace(src, at+1); p.ends[p.depth] == '}' {
			if at, err = p.keyEnd(at); err != nil {
				return err
			}
		}
	}
}

// byteAt is 0 behind the end, which is a byte that nothing begins or ends with.
func byteAt(src []byte, at int) byte {
	if at < len(src) {
		return src[at]
	}
	return 0
}

func skipSpace(src []byte, at int) int {
	for at < len(src) && src[at] <= ' ' && isSpace(src[at]) {
		at++
	}
	return at
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

func (p *parser) failAt(at int, what string) error {
	p.at = at
	return p.fail(what)
}

// keyEnd reads a name and the colon behind it, and returns where the value begins.
func (p *parser) keyEnd(at int) (int, error) {
	if byteAt(p.src, at) != '"' {
		return at, p.failAt(at, "a name was expected")
	}
	end, err := p.textEnd(at)
	if err != nil {
		return end, err
	}
	return p.colonEnd(end)
}

// colonEnd reads a colon with the space around it, of which there is none mostly.
func (p *parser) colonEnd(at int) (int, error) {
	if next := at + 1; next < len(p.src) && p.src[at] == ':' && p.src[next] > ' ' {
		return next, nil
	}
	return p.spacedColon(at)
}

func (p *parser) spacedColon(at int) (int, error) {
	if at = skipSpace(p.src, at); byteAt(p.src, at) != ':' {
		return at, p.failAt(at, "a colon was expected")
	}
	return skipSpace(p.src, at+1), nil
}

func (p *parser) word(word string) error {
	if !bytes.HasPrefix(p.src[p.at:], []byte(word)) {
		return p.fail(word + " was expected")
	}
	p.at += len(word)
	return nil
}

func (p *parser) space() { p.at = skipSpace(p.src, p.at) }

// text reads a string.
func (p *parser) text() (err error) {
	p.at, err = p.textEnd(p.at)
	return err
}

// textEnd reads a string, and returns where it ends: no control characters, valid
// escapes, valid UTF-8. Most strings are ASCII without escapes.
func (p *parser) textEnd(start int) (int, error) {
	at := start + 1
	for ; at+plain.Word <= len(p.src); at += plain.Word {
		if marks := plain.Odd(binary.LittleEndian.Uint64(p.src[at:])); marks != 0 {
			at += bits.TrailingZeros64(marks) / plain.Word
			if p.src[at] == '"' {
				return at + 1, nil
			}
			break
		}
	}
	return p.oddText(start+1, at)
}

// oddText reads what is left of a string that begins at start.
func (p *parser) oddText(start, at int) (end int, err error) {
	for at < len(p.src) {
		switch c := p.src[at]; {
		case c == '"':
			if !utf8.Valid(p.src[start:at]) {
				return at, p.failAt(at, "the text is not UTF-8")
			}
			return at + 1, nil
		case c == '\\':
			if at, err = p.escapeEnd(at + 1); err != nil {
				return at, err
			}
		case c < ' ':
			return at, p.failAt(at, "a control character must be escaped")
		default:
			at += plain.LenUnicode(p.src[at:])
		}
	}
	return at, p.failAt(at, "the text does not end")
}

// escapeEnd reads an escape behind its backslash.
func (p *parser) escapeEnd(at int) (int, error) {
	p.escaped = true
	switch byteAt(p.src, at) {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return at + 1, nil
	case 'u':
		for range 4 {
			if at++; !isHex(byteAt(p.src, at)) {
				return at, p.failAt(at, "four hexadecimal digits were expected")
			}
		}
		return at + 1, nil
	}
	return at, p.failAt(at, "there is no such escape")
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func (p *parser) number() error {
	if p.src[p.at] == '-' {
		p.at++
	}
	if p.at < len(p.src) && p.src[p.at] == '0' {
		p.at++
	} else if err := p.digits(); err != nil {
		return err
	}
	if p.at < len(p.src) && p.src[p.at] == '.' {
		p.at++
		if err := p.digits(); err != nil {
			return err
		}
	}
	if p.at < len(p.src) && (p.src[p.at] == 'e' || p.src[p.at] == 'E') {
		p.at++
		if p.at < len(p.src) && (p.src[p.at] == '+' || p.src[p.at] == '-') {
			p.at++
		}
		return p.digits()
	}
	return nil
}

func (p *parser) digits() error {
	start := p.at
	for p.at < len(p.src) && '0' <= p.src[p.at] && p.src[p.at] <= '9' {
		p.at++
	}
	if p.at == start {
		return p.fail("a digit was expected")
	}
	return nil
}
