// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"fmt"
	"slices"
)

// maxDepth bounds nesting. The API server's own limit on objects is lower.
const maxDepth = 512

// parser reads JSON strictly, RFC 8259, in one pass: each byte is looked at
// once, and only what a look names becomes a node of its own.
type parser struct {
	*arena
	src   []byte
	at    int
	depth int
	// escaped tells that there was an escape since it was last false.
	escaped bool
	// ends are the brackets that close what is being skipped, by their depth.
	ends [maxDepth + 1]byte
}

// parse reads one JSON value and nothing behind it.
func parse(src []byte, at *look) (*node, error) { return new(arena).parse(src, at) }

// parse reads one JSON value and nothing behind it.
func (a *arena) parse(src []byte, at *look) (*node, error) {
	value, end, err := a.parseFirst(src, at)
	if err != nil {
		return nil, err
	}
	if p := (parser{src: src, at: end}); !p.atEnd() {
		return nil, p.fail("the end was expected")
	}
	return value, nil
}

// atEnd reports whether nothing follows but white space.
func (p *parser) atEnd() bool {
	p.space()
	return p.at == len(p.src)
}

// parseFirst reads the JSON value that a text begins with, and returns where it ends.
func (a *arena) parseFirst(src []byte, at *look) (value *node, end int, err error) {
	p := parser{arena: a, src: src}
	p.space()
	value, err = p.value(at)
	return value, p.at, err
}

func (p *parser) fail(what string) error {
	return fmt.Errorf("invalid JSON at byte %d: %s", p.at, what)
}

func (p *parser) value(at *look) (*node, error) {
	n := p.node()
	return n, p.into(n, at)
}

// into reads a value into a node.
func (p *parser) into(n *node, at *look) (err error) {
	start := p.at
	switch c := byteAt(p.src, start); {
	case c == '"':
		p.at, err = p.textEnd(start)
	case c == '{' && at != nil:
		err = p.object(n, at)
	case c == '[' && at != nil && at.each != nil:
		err = p.array(n, at)
	default:
		err = p.skip()
		n.kind = kindOf(p.src[start:])
	}
	n.text = p.src[start:p.at:p.at]
	return err
}

func (p *parser) object(n *node, at *look) error {
	n.kind, n.open = object, true
	count, sorted := 0, true
	more, err := p.begin('}')
	for more && err == nil {
		before := n.last
		if err = p.member(n, at); err != nil {
			return err
		}
		count++
		sorted = sorted && n.last.follows(before)
		more, err = p.next('}')
	}
	if err != nil || sorted {
		return err
	}
	return p.unique(n, count)
}

// follows reports whether the name of a member comes behind that of another in
// the order of bytes. API servers write names in order, and then none is twice.
func (n *node) follows(before *node) bool {
	switch {
	case n.escaped:
		return false
	case before == nil || before.mark.before(n.mark):
		return true
	}
	return !n.mark.before(before.mark) && bytes.Compare(before.key, n.key) < 0
}

// member reads a name, the colon behind it, and a value.
func (p *parser) member(of *node, at *look) error {
	start := p.at
	if byteAt(p.src, start) != '"' {
		return p.fail("a name was expected")
	}
	p.escaped = false
	end, err := p.textEnd(start)
	if err != nil {
		return err
	}
	if p.at, err = p.colonEnd(end); err != nil {
		return err
	}
	m, key := p.node(), p.src[start:end]
	if m.key, m.mark = key, markOf(key); p.escaped {
		m.escaped, m.mark = true, markOf(p.quote(p.decode(key)).text)
	}
	of.add(m)
	next := at.members.of(m)
	if next == nil {
		next = at.each
	}
	m.untouched = p.at == end+len(":")
	err = p.into(m, next)
	m.key = p.src[start:end:p.at]
	return err
}

// unique refuses an object with a name that is there twice: which of them counts
// would depend on who reads it.
func (p *parser) unique(n *node, count int) error {
	const few = 24
	if count > few {
		return p.uniqueSorted(n, count)
	}
	for m := n.first; m != nil; m = m.next {
		for other := n.first; other != m; other = other.next {
			if m.mark == other.mark && (bytes.Equal(m.key, other.key) || (m.escaped || other.escaped) && m.label() == other.label()) {
				return p.twice(m)
			}
		}
	}
	return nil
}

func (p *parser) uniqueSorted(n *node, count int) error {
	members := p.lists.take(count)[:0]
	for m := n.first; m != nil; m = m.next {
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b *node) int { return bytes.Compare(p.decode(a.key), p.decode(b.key)) })
	for i := 1; i < len(members); i++ {
		if bytes.Equal(p.decode(members[i-1].key), p.decode(members[i].key)) {
			return p.twice(members[i])
		}
	}
	return nil
}

func (p *parser) twice(m *node) error {
	return p.fail(fmt.Sprintf("the name %q is there twice", m.label()))
}

func (p *parser) array(n *node, at *look) error {
	n.kind, n.open = array, true
	more, err := p.begin(']')
	for more && err == nil {
		element := p.node()
		n.add(element)
		if err = p.into(element, at.each); err != nil {
			return err
		}
		more, err = p.next(']')
	}
	return err
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
	switch byteAt(p.src, p.at) {
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
