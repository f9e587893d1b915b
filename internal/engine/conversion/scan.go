// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/conversion-operator/conversion-operator/internal/engine/jsonascii"
)

// skip reads a value without making nodes, and returns its end. All functions take and return
// positions: these stay in a register.
func (p *parser) skip(pos int) (end int, err error) {
	switch c := byteAt(p.src, pos); {
	case c == '"':
		return p.textEnd(pos)
	case c == '{', c == '[':
		return p.skipNested(pos)
	case c == 't':
		return p.wordEnd(pos, "true")
	case c == 'f':
		return p.wordEnd(pos, "false")
	case c == 'n':
		return p.wordEnd(pos, "null")
	case c == '-' || '0' <= c && c <= '9':
		return p.numberEnd(pos)
	}
	return pos, invalid(pos, "a value was expected")
}

// skipNested reads an object or a list with all its content, in one loop. The stack of closing
// brackets is memory of the arena, which grows to the deepest value so far.
func (p *parser) skipNested(pos int) (end int, err error) {
	src, ends, room := p.src, p.ends[:0], maxDepth-p.depth
	for {
		// A value begins here.
		switch c := byteAt(src, pos); c {
		case '"':
			pos, err = p.textEnd(pos)
		case '{', '[':
			if len(ends) >= room {
				return pos, invalid(pos, "nested deeper than "+strconv.Itoa(maxDepth))
			}
			ends = append(ends, c+2) // the bracket that closes it
			if pos = skipSpace(src, pos+1); byteAt(src, pos) == c+2 {
				break
			}
			if c == '{' {
				if pos, err = p.keyEnd(pos); err != nil {
					return pos, err
				}
			}
			continue
		default:
			pos, err = p.skip(pos)
		}
		if err != nil {
			return pos, err
		}
		// A value, or the content of brackets, ends here.
		last := len(ends) - 1
		for pos = skipSpace(src, pos); byteAt(src, pos) != ','; pos = skipSpace(src, pos) {
			if byteAt(src, pos) != ends[last] {
				return pos, invalid(pos, "a comma or an end was expected")
			}
			pos++
			if last--; last < 0 {
				p.ends = ends
				return pos, nil
			}
		}
		ends = ends[:last+1]
		if pos = skipSpace(src, pos+1); ends[last] == '}' {
			if pos, err = p.keyEnd(pos); err != nil {
				return pos, err
			}
		}
	}
}

// byteAt returns the byte at a position, and 0 after the end, which is valid nowhere in JSON.
func byteAt(src []byte, pos int) byte {
	if pos < len(src) {
		return src[pos]
	}
	return 0
}

// onlySpace refuses anything but white space from a position on.
func onlySpace(src []byte, pos int) error {
	if pos = skipSpace(src, pos); pos < len(src) {
		return invalid(pos, "the end was expected")
	}
	return nil
}

func skipSpace(src []byte, pos int) int {
	for pos < len(src) && src[pos] <= ' ' && isSpace(src[pos]) {
		pos++
	}
	return pos
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

func invalid(pos int, what string) error {
	return failf(CauseInvalidJSON, "invalid JSON at byte %d: %s", pos, what)
}

// keyEnd reads a name and the colon after it, and returns the start of the value.
func (p *parser) keyEnd(pos int) (int, error) {
	if byteAt(p.src, pos) != '"' {
		return pos, invalid(pos, "a name was expected")
	}
	end, err := p.textEnd(pos)
	if err != nil {
		return end, err
	}
	return p.colonEnd(end)
}

// colonEnd reads a colon with the white space around it. Mostly there is none.
func (p *parser) colonEnd(pos int) (int, error) {
	if next := pos + 1; next < len(p.src) && p.src[pos] == ':' && p.src[next] > ' ' {
		return next, nil
	}
	return p.spacedColon(pos)
}

func (p *parser) spacedColon(pos int) (int, error) {
	if pos = skipSpace(p.src, pos); byteAt(p.src, pos) != ':' {
		return pos, invalid(pos, "a colon was expected")
	}
	return skipSpace(p.src, pos+1), nil
}

func (p *parser) wordEnd(pos int, word string) (int, error) {
	if !bytes.HasPrefix(p.src[pos:], []byte(word)) {
		return pos, invalid(pos, word+" was expected")
	}
	return pos + len(word), nil
}

// textEnd reads a string and returns its end. It refuses control characters, invalid escapes and
// invalid UTF-8. Most strings are ASCII without escapes.
func (p *parser) textEnd(start int) (int, error) {
	// This form lets the compiler omit the bounds checks.
	pos, src := start+1, slices.Clip(p.src)
	for pos >= 0 && pos <= len(src)-jsonascii.WordSize {
		if marks := jsonascii.Special(binary.LittleEndian.Uint64(src[pos:])); marks != 0 {
			pos += bits.TrailingZeros64(marks) / jsonascii.WordSize
			if src[pos] == '"' {
				return pos + 1, nil
			}
			break
		}
		pos += jsonascii.WordSize
	}
	return p.escapedText(start+1, pos)
}

// escapedText reads the rest of a string that begins at start.
func (p *parser) escapedText(start, pos int) (end int, err error) {
	for pos < len(p.src) {
		switch c := p.src[pos]; {
		case c == '"':
			if !utf8.Valid(p.src[start:pos]) {
				return pos, invalid(pos, "the text is not UTF-8")
			}
			return pos + 1, nil
		case c == '\\':
			if pos, err = p.escapeEnd(pos + 1); err != nil {
				return pos, err
			}
		case c < ' ':
			return pos, invalid(pos, "a control character must be escaped")
		default:
			pos += jsonascii.LenUnicode(p.src[pos:])
		}
	}
	return pos, invalid(pos, "the text does not end")
}

// escapeEnd reads an escape after its backslash.
func (p *parser) escapeEnd(pos int) (int, error) {
	p.escaped = true
	switch byteAt(p.src, pos) {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return pos + 1, nil
	case 'u':
		for range 4 {
			if pos++; !isHex(byteAt(p.src, pos)) {
				return pos, invalid(pos, "four hexadecimal digits were expected")
			}
		}
		return pos + 1, nil
	}
	return pos, invalid(pos, "there is no such escape")
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func (p *parser) numberEnd(pos int) (end int, err error) {
	if p.src[pos] == '-' {
		pos++
	}
	if byteAt(p.src, pos) == '0' {
		pos++
	} else if pos, err = p.digitsEnd(pos); err != nil {
		return pos, err
	}
	if byteAt(p.src, pos) == '.' {
		if pos, err = p.digitsEnd(pos + 1); err != nil {
			return pos, err
		}
	}
	if c := byteAt(p.src, pos); c == 'e' || c == 'E' {
		if c = byteAt(p.src, pos+1); c == '+' || c == '-' {
			pos++
		}
		return p.digitsEnd(pos + 1)
	}
	return pos, nil
}

func (p *parser) digitsEnd(start int) (int, error) {
	pos := start
	for pos < len(p.src) && '0' <= p.src[pos] && p.src[pos] <= '9' {
		pos++
	}
	if pos == start {
		return pos, invalid(pos, "a digit was expected")
	}
	return pos, nil
}
