// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// skip reads a value without looking into it.
func (p *parser) skip() error {
	if p.at >= len(p.src) {
		return p.fail("a value was expected")
	}
	switch c := p.src[p.at]; {
	case c == '"':
		return p.text()
	case c == '{':
		return p.skipObject()
	case c == '[':
		return p.skipArray()
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

func (p *parser) skipObject() error {
	more, err := p.begin('}')
	for more && err == nil {
		if _, err = p.key(); err != nil {
			return err
		}
		if err = p.skip(); err != nil {
			return err
		}
		more, err = p.next('}')
	}
	return err
}

func (p *parser) skipArray() error {
	more, err := p.begin(']')
	for more && err == nil {
		if err = p.skip(); err != nil {
			return err
		}
		more, err = p.next(']')
	}
	return err
}

func (p *parser) word(word string) error {
	if !bytes.HasPrefix(p.src[p.at:], []byte(word)) {
		return p.fail(word + " was expected")
	}
	p.at += len(word)
	return nil
}

func (p *parser) space() {
	for p.at < len(p.src) && p.src[p.at] <= ' ' {
		switch p.src[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

// text reads a string: no control characters, valid escapes, valid UTF-8. Most
// strings are ASCII without escapes.
func (p *parser) text() error {
	at := p.at + 1
	for ; at+8 <= len(p.src); at += 8 {
		if marks := oddBytes(binary.LittleEndian.Uint64(p.src[at:])); marks != 0 {
			at += bits.TrailingZeros64(marks) / 8
			if p.src[at] == '"' {
				p.at = at + 1
				return nil
			}
			break
		}
	}
	start := p.at + 1
	p.at = at
	return p.oddText(start)
}

// oddBytes marks, of eight bytes, each that is a quote, a backslash, a control
// character or not ASCII: "Bit Twiddling Hacks", determine if a word has a byte
// less than, or equal to n. A mark may be false only behind a true one, and the
// first is what counts.
func oddBytes(word uint64) uint64 {
	const low, high = 0x0101010101010101, 0x8080808080808080
	quote, slash := word^(low*'"'), word^(low*'\\')
	return (word | (quote-low)&^quote | (slash-low)&^slash | (word-low*' ')&^word) & high
}

// oddText reads what is left of a string.
func (p *parser) oddText(start int) error {
	plain := true
	for p.at < len(p.src) {
		switch c := p.src[p.at]; {
		case c == '"':
			if !plain && !utf8.Valid(p.src[start:p.at]) {
				return p.fail("the text is not UTF-8")
			}
			p.at++
			return nil
		case c == '\\':
			if err := p.escape(); err != nil {
				return err
			}
		case c < ' ':
			return p.fail("a control character must be escaped")
		default:
			plain = plain && c < utf8.RuneSelf
			p.at++
			p.skipPlain()
		}
	}
	return p.fail("the text does not end")
}

// skipPlain goes on to where something odd may be.
func (p *parser) skipPlain() {
	for ; p.at+8 <= len(p.src); p.at += 8 {
		if marks := oddBytes(binary.LittleEndian.Uint64(p.src[p.at:])); marks != 0 {
			p.at += bits.TrailingZeros64(marks) / 8
			return
		}
	}
}

func (p *parser) escape() error {
	p.at++
	if p.at >= len(p.src) {
		return p.fail("the text does not end")
	}
	switch p.src[p.at] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		p.at++
		return nil
	case 'u':
		p.at++
		for range 4 {
			if p.at >= len(p.src) || !isHex(p.src[p.at]) {
				return p.fail("four hexadecimal digits were expected")
			}
			p.at++
		}
		return nil
	}
	return p.fail("there is no such escape")
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
