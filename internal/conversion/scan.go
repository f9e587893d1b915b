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

	"github.com/conversion-operator/conversion-operator/internal/plain"
)

// skip reads a value without looking into it, and returns where it ends. All that
// reads is told where, and returns how far it came: the place stays in a register.
func (p *parser) skip(at int) (end int, err error) {
	switch c := byteAt(p.src, at); {
	case c == '"':
		return p.textEnd(at)
	case c == '{', c == '[':
		return p.skipNested(at)
	case c == 't':
		return p.wordEnd(at, "true")
	case c == 'f':
		return p.wordEnd(at, "false")
	case c == 'n':
		return p.wordEnd(at, "null")
	case c == '-' || '0' <= c && c <= '9':
		return p.numberEnd(at)
	}
	return at, invalid(at, "a value was expected")
}

// skipNested reads an object or a list, and all in it, in one loop. The brackets
// that close what it is in are memory of the arena, which has as much of it as the
// deepest value took so far.
func (p *parser) skipNested(at int) (end int, err error) {
	src, ends, left := p.src, p.ends[:0], maxDepth-p.depth
	for {
		// A value begins here.
		switch c := byteAt(src, at); c {
		case '"':
			at, err = p.textEnd(at)
		case '{', '[':
			if len(ends) >= left {
				return at, invalid(at, "nested deeper than "+strconv.Itoa(maxDepth))
			}
			ends = append(ends, c+2) // the bracket that closes it
			if at = skipSpace(src, at+1); byteAt(src, at) == c+2 {
				break
			}
			if c == '{' {
				if at, err = p.keyEnd(at); err != nil {
					return at, err
				}
			}
			continue
		default:
			at, err = p.skip(at)
		}
		if err != nil {
			return at, err
		}
		// A value, or what is in the brackets, ends here.
		last := len(ends) - 1
		for at = skipSpace(src, at); byteAt(src, at) != ','; at = skipSpace(src, at) {
			if byteAt(src, at) != ends[last] {
				return at, invalid(at, "a comma or an end was expected")
			}
			at++
			if last--; last < 0 {
				p.ends = ends
				return at, nil
			}
		}
		ends = ends[:last+1]
		if at = skipSpace(src, at+1); ends[last] == '}' {
			if at, err = p.keyEnd(at); err != nil {
				return at, err
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

// onlySpace refuses anything but white space from a place on.
func onlySpace(src []byte, at int) error {
	if at = skipSpace(src, at); at < len(src) {
		return invalid(at, "the end was expected")
	}
	return nil
}

func skipSpace(src []byte, at int) int {
	for at < len(src) && src[at] <= ' ' && isSpace(src[at]) {
		at++
	}
	return at
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

func invalid(at int, what string) error {
	return failf(CauseInvalidJSON, "invalid JSON at byte %d: %s", at, what)
}

// keyEnd reads a name and the colon behind it, and returns where the value begins.
func (p *parser) keyEnd(at int) (int, error) {
	if byteAt(p.src, at) != '"' {
		return at, invalid(at, "a name was expected")
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
		return at, invalid(at, "a colon was expected")
	}
	return skipSpace(p.src, at+1), nil
}

func (p *parser) wordEnd(at int, word string) (int, error) {
	if !bytes.HasPrefix(p.src[at:], []byte(word)) {
		return at, invalid(at, word+" was expected")
	}
	return at + len(word), nil
}

// textEnd reads a string, and returns where it ends: no control characters, valid
// escapes, valid UTF-8. Most strings are ASCII without escapes.
func (p *parser) textEnd(start int) (int, error) {
	// Said like this, the compiler sees that every word is within the text.
	at, src := start+1, slices.Clip(p.src)
	for at >= 0 && at <= len(src)-plain.Word {
		if marks := plain.Odd(binary.LittleEndian.Uint64(src[at:])); marks != 0 {
			at += bits.TrailingZeros64(marks) / plain.Word
			if src[at] == '"' {
				return at + 1, nil
			}
			break
		}
		at += plain.Word
	}
	return p.escapedText(start+1, at)
}

// escapedText reads the rest of a string that begins at start.
func (p *parser) escapedText(start, at int) (end int, err error) {
	for at < len(p.src) {
		switch c := p.src[at]; {
		case c == '"':
			if !utf8.Valid(p.src[start:at]) {
				return at, invalid(at, "the text is not UTF-8")
			}
			return at + 1, nil
		case c == '\\':
			if at, err = p.escapeEnd(at + 1); err != nil {
				return at, err
			}
		case c < ' ':
			return at, invalid(at, "a control character must be escaped")
		default:
			at += plain.LenUnicode(p.src[at:])
		}
	}
	return at, invalid(at, "the text does not end")
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
				return at, invalid(at, "four hexadecimal digits were expected")
			}
		}
		return at + 1, nil
	}
	return at, invalid(at, "there is no such escape")
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func (p *parser) numberEnd(at int) (end int, err error) {
	if p.src[at] == '-' {
		at++
	}
	if byteAt(p.src, at) == '0' {
		at++
	} else if at, err = p.digitsEnd(at); err != nil {
		return at, err
	}
	if byteAt(p.src, at) == '.' {
		if at, err = p.digitsEnd(at + 1); err != nil {
			return at, err
		}
	}
	if c := byteAt(p.src, at); c == 'e' || c == 'E' {
		if c = byteAt(p.src, at+1); c == '+' || c == '-' {
			at++
		}
		return p.digitsEnd(at + 1)
	}
	return at, nil
}

func (p *parser) digitsEnd(start int) (int, error) {
	at := start
	for at < len(p.src) && '0' <= p.src[at] && p.src[at] <= '9' {
		at++
	}
	if at == start {
		return at, invalid(at, "a digit was expected")
	}
	return at, nil
}
