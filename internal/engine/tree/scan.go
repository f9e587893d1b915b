// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"unicode/utf8"
)

// The functions of a reader below check a value, and make no nodes of it. They return its end.

// skip reads a value without making nodes, and returns its end.
func (r *reader) skip(pos int) (end int, err error) {
	switch c := byteAt(r.src, pos); {
	case c == '"':
		return r.textEnd(pos)
	case c == '{', c == '[':
		return r.skipNested(pos)
	case c == 't':
		return r.wordEnd(pos, "true")
	case c == 'f':
		return r.wordEnd(pos, "false")
	case c == 'n':
		return r.wordEnd(pos, "null")
	case c == '-' || '0' <= c && c <= '9':
		return r.numberEnd(pos)
	}
	return pos, invalid(pos, "a value was expected")
}

// skipNested reads an object or a list with all its content, in one loop.
func (r *reader) skipNested(pos int) (end int, err error) {
	src, ends, room := r.src, r.ends[:0], MaxDepth-r.depth
	defer func() { r.ends = ends }()
	for {
		// A value begins here.
		switch c := byteAt(src, pos); c {
		case '"':
			pos, err = r.textEnd(pos)
		case '{', '[':
			if len(ends) >= room {
				return pos, tooDeep(pos)
			}
			ends = append(ends, c+2) // the bracket that closes it
			if pos = skipSpace(src, pos+1); byteAt(src, pos) == c+2 {
				break
			}
			if c == '{' {
				if pos, err = r.keyEnd(pos); err != nil {
					return pos, err
				}
			}
			continue
		default:
			pos, err = r.skip(pos)
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
				return pos, nil
			}
		}
		ends = ends[:last+1]
		if pos = skipSpace(src, pos+1); ends[last] == '}' {
			if pos, err = r.keyEnd(pos); err != nil {
				return pos, err
			}
		}
	}
}

func (r *reader) wordEnd(pos int, word string) (int, error) {
	if !bytes.HasPrefix(r.src[pos:], bytesOf(word)) {
		return pos, invalid(pos, word+" was expected")
	}
	return pos + len(word), nil
}

// textEnd reads a string and returns its end. It refuses control characters, invalid escapes and
// invalid UTF-8. Most strings are ASCII without escapes.
func (r *reader) textEnd(start int) (int, error) {
	// This form lets the compiler omit the bounds checks.
	pos, src := start+1, slices.Clip(r.src)
	for pos >= 0 && pos <= len(src)-wordSize {
		if marks := special(binary.LittleEndian.Uint64(src[pos:])); marks != 0 {
			pos += bits.TrailingZeros64(marks) / wordSize
			if src[pos] == '"' {
				return pos + 1, nil
			}
			break
		}
		pos += wordSize
	}
	return r.escapedText(start+1, pos)
}

// escapedText reads the rest of a string that begins at start.
func (r *reader) escapedText(start, pos int) (end int, err error) {
	for pos < len(r.src) {
		switch c := r.src[pos]; {
		case c == '"':
			if !utf8.Valid(r.src[start:pos]) {
				return pos, invalid(pos, "the text is not UTF-8")
			}
			return pos + 1, nil
		case c == '\\':
			if pos, err = r.escapeEnd(pos + 1); err != nil {
				return pos, err
			}
		case c < ' ':
			return pos, invalid(pos, "a control character must be escaped")
		default:
			pos += plainLength(r.src[pos:])
		}
	}
	return pos, invalid(pos, "the text does not end")
}

// escapeEnd reads an escape after its backslash.
func (r *reader) escapeEnd(pos int) (int, error) {
	switch byteAt(r.src, pos) {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return pos + 1, nil
	case 'u':
		for range 4 {
			if pos++; !isHex(byteAt(r.src, pos)) {
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

func (r *reader) numberEnd(pos int) (end int, err error) {
	if r.src[pos] == '-' {
		pos++
	}
	if byteAt(r.src, pos) == '0' {
		pos++
	} else if pos, err = r.digitsEnd(pos); err != nil {
		return pos, err
	}
	if byteAt(r.src, pos) == '.' {
		if pos, err = r.digitsEnd(pos + 1); err != nil {
			return pos, err
		}
	}
	if c := byteAt(r.src, pos); c == 'e' || c == 'E' {
		if c = byteAt(r.src, pos+1); c == '+' || c == '-' {
			pos++
		}
		return r.digitsEnd(pos + 1)
	}
	return pos, nil
}

func (r *reader) digitsEnd(start int) (int, error) {
	pos := start
	for pos < len(r.src) && '0' <= r.src[pos] && r.src[pos] <= '9' {
		pos++
	}
	if pos == start {
		return pos, invalid(pos, "a digit was expected")
	}
	return pos, nil
}
