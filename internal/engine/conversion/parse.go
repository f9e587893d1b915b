// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// maxDepth limits nesting. It is the limit of encoding/json, and so of the API server.
const maxDepth = 10_000

// parser reads JSON strictly (RFC 8259) in one pass: it reads each byte once, and only makes nodes
// of what a projection opens. Its functions take a start position and return the end: that stays
// in a register.
type parser struct {
	*arena
	src   []byte
	depth int
	// escaped is set by every escape.
	escaped bool
	// duplicates allows duplicate names in an object.
	duplicates bool
}

// parse reads a text that is one JSON value.
func parse(src []byte, proj *projection) (*node, error) { return new(arena).parse(src, proj) }

// parse reads a text that is one JSON value.
func (a *arena) parse(src []byte, proj *projection) (*node, error) {
	value, end, err := a.parseFirst(src, proj)
	if err == nil {
		err = onlySpace(src, end)
	}
	if err != nil {
		return nil, err
	}
	return value, nil
}

// parseFirst reads the JSON value at the beginning of a text, and returns its end.
func (a *arena) parseFirst(src []byte, proj *projection) (value *node, end int, err error) {
	p := parser{arena: a, src: src}
	value = p.node()
	end, err = p.into(value, skipSpace(src, 0), proj)
	return value, end, err
}

// into reads a value into a node.
func (p *parser) into(n *node, pos int, proj *projection) (end int, err error) {
	switch c := byteAt(p.src, pos); {
	case c == '"':
		end, err = p.textEnd(pos)
	case c == '{' && proj != nil:
		end, err = p.object(n, pos, proj)
	case c == '[' && proj != nil && proj.each != nil:
		end, err = p.array(n, pos, proj)
	default:
		end, err = p.skip(pos)
		n.kind = kindOf(p.src[pos:])
	}
	n.text = p.src[pos:end:end]
	return end, err
}

func (p *parser) object(n *node, pos int, proj *projection) (end int, err error) {
	n.kind, n.open = object, true
	count, sorted := 0, true
	pos, more, err := p.begin(pos, '}')
	for more && err == nil {
		before := n.last
		if pos, err = p.member(n, pos, proj); err != nil {
			return pos, err
		}
		count++
		sorted = sorted && n.last.follows(before)
		pos, more, err = p.next(pos, '}')
	}
	if err != nil || sorted || p.duplicates {
		return pos, err
	}
	return pos, p.unique(n, count, pos)
}

// follows reports whether a member's name sorts after that of another member, by bytes. API
// servers write names in order, and then there are no duplicates.
func (n *node) follows(before *node) bool {
	switch {
	case n.escaped:
		return false
	case before == nil || before.fingerprint.before(n.fingerprint):
		return true
	}
	return !n.fingerprint.before(before.fingerprint) && bytes.Compare(before.key, n.key) < 0
}

// member reads a name, the colon after it, and a value.
func (p *parser) member(of *node, start int, proj *projection) (end int, err error) {
	if byteAt(p.src, start) != '"' {
		return start, invalid(start, "a name was expected")
	}
	p.escaped = false
	behind, err := p.textEnd(start)
	if err != nil {
		return behind, err
	}
	pos, err := p.colonEnd(behind)
	if err != nil {
		return pos, err
	}
	m, key := p.node(), p.src[start:behind]
	if m.key, m.fingerprint = key, fingerprintOf(key); p.escaped {
		m.escaped, m.fingerprint = true, fingerprintOf(p.quote(p.decode(key)).text)
	}
	of.add(m)
	next := proj.members.lookup(m)
	if next == nil {
		next = proj.each
	}
	m.untouched = pos == behind+len(":")
	end, err = p.into(m, pos, next)
	m.key = p.src[start:behind:end]
	return end, err
}

// unique refuses an object with a duplicate name: readers differ in which one they use.
func (p *parser) unique(n *node, count, pos int) error {
	const few = 24
	if count > few {
		return p.uniqueSorted(n, count, pos)
	}
	for m := n.first; m != nil; m = m.next {
		for other := n.first; other != m; other = other.next {
			if m.fingerprint == other.fingerprint && (bytes.Equal(m.key, other.key) || (m.escaped || other.escaped) && m.decodedName() == other.decodedName()) {
				return duplicateName(m, pos)
			}
		}
	}
	return nil
}

func (p *parser) uniqueSorted(n *node, count, pos int) error {
	members := p.keyed.take(count)[:0]
	for m := n.first; m != nil; m = m.next {
		members = append(members, keyed{element: m, text: p.decode(m.key)})
	}
	slices.SortFunc(members, keyed.compare)
	for i := 1; i < len(members); i++ {
		if bytes.Equal(members[i-1].text, members[i].text) {
			return duplicateName(members[i].element, pos)
		}
	}
	return nil
}

func duplicateName(m *node, pos int) error {
	return invalid(pos, fmt.Sprintf("the name %.200q is there twice", m.decodedName()))
}

func (p *parser) array(n *node, pos int, proj *projection) (end int, err error) {
	n.kind, n.open = array, true
	pos, more, err := p.begin(pos, ']')
	for more && err == nil {
		element := p.node()
		n.add(element)
		if pos, err = p.into(element, pos, proj.each); err != nil {
			return pos, err
		}
		pos, more, err = p.next(pos, ']')
	}
	return pos, err
}

// begin enters a bracket and reports whether it has content.
func (p *parser) begin(pos int, end byte) (inside int, more bool, err error) {
	if p.depth++; p.depth > maxDepth {
		return pos, false, invalid(pos, fmt.Sprintf("nested deeper than %d", maxDepth))
	}
	if pos = skipSpace(p.src, pos+1); byteAt(p.src, pos) == end {
		p.depth--
		return pos + 1, false, nil
	}
	return pos, true, nil
}

// next moves to the next element, or leaves the bracket.
func (p *parser) next(pos int, end byte) (behind int, more bool, err error) {
	if p.meter != nil && p.meter.err != nil {
		return pos, false, p.meter.err
	}
	pos = skipSpace(p.src, pos)
	switch byteAt(p.src, pos) {
	case ',':
		return skipSpace(p.src, pos+1), true, nil
	case end:
		p.depth--
		return pos + 1, false, nil
	}
	return pos, false, invalid(pos, "a comma or an end was expected")
}

// projection says which objects and lists a parser opens, that is, where it makes a node for each
// member or element. A nil projection leaves the whole value as text.
type projection struct {
	members byName[*projection]
	// each opens the elements of a list, or the values of a map.
	each *projection
}

// addScope opens every path that a scope uses.
func (p *projection) addScope(scope *Scope) {
	for _, move := range scope.Moves {
		p.addParent(move.Spoke)
		p.addParent(move.Hub)
	}
	for i := range scope.Exchanges {
		for _, f := range slices.Concat(scope.Exchanges[i].Spoke, scope.Exchanges[i].Hub) {
			p.addParent(f.Path)
		}
	}
	for _, path := range slices.Concat(scope.DropSpoke, scope.DropHub) {
		p.addParent(path)
	}
	for _, d := range scope.Defaults {
		p.addParent(d.Path)
	}
	for _, leaf := range slices.Concat(scope.OnlySpoke, scope.OnlyHub) {
		p.addParent(leaf.Path)
		if leaf.Shell || leaf.Known != nil {
			p.addPath(leaf.Path)
		}
	}
	for i := range scope.Shared {
		p.addPath(scope.Shared[i].Path)
	}
	for i := range scope.Collections {
		collection := &scope.Collections[i]
		for _, ofHub := range []bool{false, true} {
			opened := p.addPath(collection.At(ofHub))
			if collection.Object {
				opened.addScope(&collection.Scope)
				continue
			}
			if opened.each == nil {
				opened.each = &projection{}
			}
			opened.each.addScope(&collection.Scope)
			for _, x := range []*Exclusion{collection.ExcludeSpoke, collection.ExcludeHub} {
				if x != nil {
					opened.each.addParent(x.Without)
				}
			}
		}
	}
}

// merge makes the projection of one member of a map include that of all members: another rule, or
// another spoke, may name the member.
func (p *projection) merge() {
	for _, member := range p.members.entries {
		if p.each != nil {
			member.value.addAll(p.each)
		}
		member.value.merge()
	}
	if p.each != nil {
		p.each.merge()
	}
}

func (p *projection) addAll(other *projection) {
	for _, member := range other.members.entries {
		p.addPath(Path{member.text}).addAll(member.value)
	}
	if other.each != nil {
		if p.each == nil {
			p.each = &projection{}
		}
		p.each.addAll(other.each)
	}
}

// hint is the projection for trees.
func (p *projection) hint() *tree.Hint {
	if p == nil {
		return nil
	}
	h := &tree.Hint{Members: make(map[string]*tree.Hint, len(p.members.entries)), Each: p.each.hint()}
	for _, member := range p.members.entries {
		h.Members[member.text] = member.value.hint()
	}
	return h
}

// addParent opens the object that contains a field.
func (p *projection) addParent(path Path) { p.addPath(path[:max(len(path)-1, 0)]) }

func (p *projection) addPath(path Path) *projection {
	for _, name := range path {
		next := p.members.get(name)
		if next == nil {
			next = &projection{}
			p.members.set(name, next)
		}
		p = next
	}
	return p
}

// Valid returns an error if the text is not one JSON value. It reads every byte once and makes no
// nodes: the least work that a converter can do, and so the baseline of benchmarks.
func Valid(text []byte) error {
	p := parser{arena: new(arena), src: text}
	end, err := p.skip(skipSpace(text, 0))
	if err != nil {
		return err
	}
	return onlySpace(text, end)
}
