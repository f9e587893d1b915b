// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// maxDepth bounds nesting. The API server's own limit on objects is lower.
const maxDepth = 512

// parser reads JSON strictly, RFC 8259, in one pass: each byte is looked at
// once, and only what a look names becomes a node of its own.
type parser struct {
	src   []byte
	at    int
	depth int
}

// look is where a plan looks into an object. A nil look sees one value of bytes.
type look struct {
	members map[string]*look
	// each looks into the elements of a list, or the values of a map.
	each *look
}

// parse reads one JSON value and nothing behind it.
func parse(src []byte, at *look) (*node, error) {
	p := parser{src: src}
	p.space()
	value, err := p.value(at)
	if err != nil {
		return nil, err
	}
	p.space()
	if p.at != len(src) {
		return nil, p.fail("the end was expected")
	}
	return value, nil
}

func (p *parser) fail(what string) error {
	return fmt.Errorf("invalid JSON at byte %d: %s", p.at, what)
}

func (p *parser) value(at *look) (*node, error) {
	if at != nil && p.at < len(p.src) {
		switch p.src[p.at] {
		case '{':
			return p.object(at)
		case '[':
			if at.each != nil {
				return p.array(at)
			}
		}
	}
	start := p.at
	if err := p.skip(); err != nil {
		return nil, err
	}
	return rawNode(p.src[start:p.at]), nil
}

func (p *parser) object(at *look) (*node, error) {
	start := p.at
	object := newObject()
	err := p.members(func(key []byte) error {
		name := decodeString(key)
		next := at.members[name]
		if next == nil {
			next = at.each
		}
		value, err := p.value(next)
		object.members = append(object.members, member{key: key, name: name, value: value})
		return err
	})
	if err != nil {
		return nil, err
	}
	object.src = p.src[start:p.at]
	return object, p.unique(object.members)
}

// unique refuses an object with a name that is there twice: which of them counts
// would depend on who reads it.
func (p *parser) unique(members []member) error {
	const few = 16
	if len(members) <= few {
		for i := range members {
			for j := range i {
				if members[i].name == members[j].name {
					return p.fail(fmt.Sprintf("the name %q is there twice", members[i].name))
				}
			}
		}
		return nil
	}
	seen := make(map[string]struct{}, len(members))
	for i := range members {
		if _, twice := seen[members[i].name]; twice {
			return p.fail(fmt.Sprintf("the name %q is there twice", members[i].name))
		}
		seen[members[i].name] = struct{}{}
	}
	return nil
}

func (p *parser) array(at *look) (*node, error) {
	start := p.at
	list := &node{kind: array}
	err := p.elements(func() error {
		element, err := p.value(at.each)
		list.elements = append(list.elements, element)
		return err
	})
	list.src = p.src[start:p.at]
	return list, err
}

// members calls visit with each key; visit reads the value.
func (p *parser) members(visit func(key []byte) error) error {
	return p.sequence('}', func() error {
		start := p.at
		if p.at >= len(p.src) || p.src[p.at] != '"' {
			return p.fail("a name was expected")
		}
		if err := p.text(); err != nil {
			return err
		}
		key := p.src[start:p.at]
		p.space()
		if p.at >= len(p.src) || p.src[p.at] != ':' {
			return p.fail("a colon was expected")
		}
		p.at++
		p.space()
		return visit(key)
	})
}

func (p *parser) elements(visit func() error) error { return p.sequence(']', visit) }

// sequence reads what stands between the bracket at hand and its end.
func (p *parser) sequence(end byte, item func() error) error {
	if p.depth++; p.depth > maxDepth {
		return p.fail(fmt.Sprintf("nested deeper than %d", maxDepth))
	}
	p.at++
	p.space()
	if p.at < len(p.src) && p.src[p.at] == end {
		p.at++
		p.depth--
		return nil
	}
	for {
		if err := item(); err != nil {
			return err
		}
		p.space()
		if p.at >= len(p.src) {
			return p.fail("it ends too early")
		}
		switch p.src[p.at] {
		case ',':
			p.at++
			p.space()
		case end:
			p.at++
			p.depth--
			return nil
		default:
			return p.fail("a comma or an end was expected")
		}
	}
}

// skip reads a value without looking into it.
func (p *parser) skip() error {
	if p.at >= len(p.src) {
		return p.fail("a value was expected")
	}
	switch c := p.src[p.at]; {
	case c == '"':
		return p.text()
	case c == '{':
		return p.members(func([]byte) error { return p.skip() })
	case c == '[':
		return p.elements(p.skip)
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

func (p *parser) word(word string) error {
	if !bytes.HasPrefix(p.src[p.at:], []byte(word)) {
		return p.fail(word + " was expected")
	}
	p.at += len(word)
	return nil
}

func (p *parser) space() {
	for p.at < len(p.src) {
		switch p.src[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

// text reads a string: no control characters, valid escapes, valid UTF-8.
func (p *parser) text() error {
	p.at++
	start := p.at
	plain := true
	for p.at < len(p.src) {
		switch c := p.src[p.at]; {
		case c == '"':
			if !plain && !utf8.Valid(p.src[start:p.at]) {
				return p.fail("the text is not UTF-8")
			}
			p.at++
			return nil
		case c < 0x20:
			return p.fail("a control character must be escaped")
		case c == '\\':
			if err := p.escape(); err != nil {
				return err
			}
		default:
			plain = plain && c < utf8.RuneSelf
			p.at++
		}
	}
	return p.fail("the text does not end")
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
