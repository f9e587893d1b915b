// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"fmt"
	"slices"
)

// maxDepth bounds nesting. It is the API server's own limit, which is that of
// encoding/json: what one accepts is converted.
const maxDepth = 10_000

// parser reads JSON strictly, RFC 8259, in one pass: each byte is looked at
// once, and only what a look names becomes a node of its own. What reads a part is
// told where it begins, and returns where it ends: that stays in a register.
type parser struct {
	*arena
	src   []byte
	depth int
	// escaped tells that there was an escape since it was last false.
	escaped bool
}

// parse reads one JSON value and nothing behind it.
func parse(src []byte, look *look) (*node, error) { return new(arena).parse(src, look) }

// parse reads one JSON value and nothing behind it.
func (a *arena) parse(src []byte, look *look) (*node, error) {
	value, end, err := a.parseFirst(src, look)
	if err == nil {
		err = onlySpace(src, end)
	}
	if err != nil {
		return nil, err
	}
	return value, nil
}

// parseFirst reads the JSON value that a text begins with, and returns where it ends.
func (a *arena) parseFirst(src []byte, look *look) (value *node, end int, err error) {
	p := parser{arena: a, src: src}
	value = p.node()
	end, err = p.into(value, skipSpace(src, 0), look)
	return value, end, err
}

// into reads a value into a node.
func (p *parser) into(n *node, at int, look *look) (end int, err error) {
	switch c := byteAt(p.src, at); {
	case c == '"':
		end, err = p.textEnd(at)
	case c == '{' && look != nil:
		end, err = p.object(n, at, look)
	case c == '[' && look != nil && look.each != nil:
		end, err = p.array(n, at, look)
	default:
		end, err = p.skip(at)
		n.kind = kindOf(p.src[at:])
	}
	n.text = p.src[at:end:end]
	return end, err
}

func (p *parser) object(n *node, at int, look *look) (end int, err error) {
	n.kind, n.open = object, true
	count, sorted := 0, true
	at, more, err := p.begin(at, '}')
	for more && err == nil {
		before := n.last
		if at, err = p.member(n, at, look); err != nil {
			return at, err
		}
		count++
		sorted = sorted && n.last.follows(before)
		at, more, err = p.next(at, '}')
	}
	if err != nil || sorted {
		return at, err
	}
	return at, p.unique(n, count, at)
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
func (p *parser) member(of *node, start int, look *look) (end int, err error) {
	if byteAt(p.src, start) != '"' {
		return start, invalid(start, "a name was expected")
	}
	p.escaped = false
	behind, err := p.textEnd(start)
	if err != nil {
		return behind, err
	}
	at, err := p.colonEnd(behind)
	if err != nil {
		return at, err
	}
	m, key := p.node(), p.src[start:behind]
	if m.key, m.mark = key, markOf(key); p.escaped {
		m.escaped, m.mark = true, markOf(p.quote(p.decode(key)).text)
	}
	of.add(m)
	next := look.members.of(m)
	if next == nil {
		next = look.each
	}
	m.untouched = at == behind+len(":")
	end, err = p.into(m, at, next)
	m.key = p.src[start:behind:end]
	return end, err
}

// unique refuses an object with a name that is there twice: which of them counts
// would depend on who reads it.
func (p *parser) unique(n *node, count, at int) error {
	const few = 24
	if count > few {
		return p.uniqueSorted(n, count, at)
	}
	for m := n.first; m != nil; m = m.next {
		for other := n.first; other != m; other = other.next {
			if m.mark == other.mark && (bytes.Equal(m.key, other.key) || (m.escaped || other.escaped) && m.label() == other.label()) {
				return twice(m, at)
			}
		}
	}
	return nil
}

func (p *parser) uniqueSorted(n *node, count, at int) error {
	members := p.keyed.take(count)[:0]
	for m := n.first; m != nil; m = m.next {
		members = append(members, keyed{element: m, text: p.decode(m.key)})
	}
	slices.SortFunc(members, keyed.compare)
	for i := 1; i < len(members); i++ {
		if bytes.Equal(members[i-1].text, members[i].text) {
			return twice(members[i].element, at)
		}
	}
	return nil
}

func twice(m *node, at int) error {
	return invalid(at, fmt.Sprintf("the name %q is there twice", m.label()))
}

func (p *parser) array(n *node, at int, look *look) (end int, err error) {
	n.kind, n.open = array, true
	at, more, err := p.begin(at, ']')
	for more && err == nil {
		element := p.node()
		n.add(element)
		if at, err = p.into(element, at, look.each); err != nil {
			return at, err
		}
		at, more, err = p.next(at, ']')
	}
	return at, err
}

// begin enters a bracket and reports whether there is anything in it.
func (p *parser) begin(at int, end byte) (inside int, more bool, err error) {
	if p.depth++; p.depth > maxDepth {
		return at, false, invalid(at, fmt.Sprintf("nested deeper than %d", maxDepth))
	}
	if at = skipSpace(p.src, at+1); byteAt(p.src, at) == end {
		p.depth--
		return at + 1, false, nil
	}
	return at, true, nil
}

// next goes on to what follows in a bracket, or leaves it.
func (p *parser) next(at int, end byte) (behind int, more bool, err error) {
	at = skipSpace(p.src, at)
	switch byteAt(p.src, at) {
	case ',':
		return skipSpace(p.src, at+1), true, nil
	case end:
		p.depth--
		return at + 1, false, nil
	}
	return at, false, invalid(at, "a comma or an end was expected")
}

// look is where a ruleset looks into an object. A nil look sees one value of bytes.
type look struct {
	members byName[*look]
	// each looks into the elements of a list, or the values of a map.
	each *look
}

func newLook() *look { return &look{} }

// addScope looks wherever a scope has something to do.
func (l *look) addScope(scope *Scope) {
	for _, move := range scope.Moves {
		l.parent(move.Spoke)
		l.parent(move.Hub)
	}
	for i := range scope.Exchanges {
		for _, f := range slices.Concat(scope.Exchanges[i].Spoke, scope.Exchanges[i].Hub) {
			l.parent(f.Path)
		}
	}
	for _, path := range slices.Concat(scope.DropSpoke, scope.DropHub) {
		l.parent(path)
	}
	for _, d := range scope.Defaults {
		l.parent(d.Path)
	}
	for _, leaf := range slices.Concat(scope.OnlySpoke, scope.OnlyHub) {
		l.parent(leaf.Path)
		if leaf.Shell || leaf.Known != nil {
			l.path(leaf.Path)
		}
	}
	for i := range scope.Shared {
		l.path(scope.Shared[i].Path)
	}
	for i := range scope.Collections {
		collection := &scope.Collections[i]
		at := l.path(collection.Path)
		if at.each == nil {
			at.each = newLook()
		}
		at.each.addScope(&collection.Scope)
	}
}

// merge makes a look into one element of a map see all that a look into each
// element sees: another rule, or another spoke, may name one of them.
func (l *look) merge() {
	for _, member := range l.members.entries {
		if l.each != nil {
			member.value.add(l.each)
		}
		member.value.merge()
	}
	if l.each != nil {
		l.each.merge()
	}
}

func (l *look) add(other *look) {
	for _, member := range other.members.entries {
		l.path(Path{member.text}).add(member.value)
	}
	if other.each != nil {
		if l.each == nil {
			l.each = newLook()
		}
		l.each.add(other.each)
	}
}

// parent looks into the object that holds a field.
func (l *look) parent(path Path) { l.path(path[:max(len(path)-1, 0)]) }

func (l *look) path(path Path) *look {
	for _, name := range path {
		next := l.members.get(name)
		if next == nil {
			next = newLook()
			l.members.set(name, next)
		}
		l = next
	}
	return l
}

// Valid reports what is wrong with a JSON text, nil where nothing is. It reads
// every byte once, as Convert does, and looks into nothing: the least that a
// converter can do, and so the mark that benchmarks hold Convert against.
func Valid(text []byte) error {
	p := parser{arena: new(arena), src: text}
	end, err := p.skip(skipSpace(text, 0))
	if err != nil {
		return err
	}
	return onlySpace(text, end)
}
