// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import "fmt"

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
	more, err := p.begin('}')
	for more && err == nil {
		var m member
		if m, err = p.member(at); err != nil {
			return nil, err
		}
		object.members = append(object.members, m)
		more, err = p.next('}')
	}
	if err != nil {
		return nil, err
	}
	object.src = p.src[start:p.at]
	return object, p.unique(object.members)
}

func (p *parser) member(at *look) (m member, err error) {
	if m.key, err = p.key(); err != nil {
		return m, err
	}
	m.name = decodeString(m.key)
	next := at.members[m.name]
	if next == nil {
		next = at.each
	}
	m.value, err = p.value(next)
	return m, err
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
	more, err := p.begin(']')
	for more && err == nil {
		var element *node
		if element, err = p.value(at.each); err != nil {
			return nil, err
		}
		list.elements = append(list.elements, element)
		more, err = p.next(']')
	}
	list.src = p.src[start:p.at]
	return list, err
}

// begin enters the bracket at hand and reports whether there is anything in it.
func (p *parser) begin(end byte) (more bool, err error) {
	if p.depth++; p.depth > maxDepth {
		return false, p.fail(fmt.Sprintf("nested deeper than %d", maxDepth))
	}
	p.at++
	p.space()
	if p.at < len(p.src) && p.src[p.at] == end {
		p.at++
		p.depth--
		return false, nil
	}
	return true, nil
}

// next goes on to what follows in a bracket, or leaves it.
func (p *parser) next(end byte) (more bool, err error) {
	p.space()
	if p.at >= len(p.src) {
		return false, p.fail("it ends too early")
	}
	switch p.src[p.at] {
	case ',':
		p.at++
		p.space()
		return true, nil
	case end:
		p.at++
		p.depth--
		return false, nil
	}
	return false, p.fail("a comma or an end was expected")
}

// key reads a name and the colon behind it.
func (p *parser) key() ([]byte, error) {
	start := p.at
	if p.at >= len(p.src) || p.src[p.at] != '"' {
		return nil, p.fail("a name was expected")
	}
	if err := p.text(); err != nil {
		return nil, err
	}
	key := p.src[start:p.at]
	p.space()
	if p.at >= len(p.src) || p.src[p.at] != ':' {
		return nil, p.fail("a colon was expected")
	}
	p.at++
	p.space()
	return key, nil
}
