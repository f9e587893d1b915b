// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"slices"
)

// MaxDepth limits nesting. It is the limit of encoding/json, and so of the API server.
const MaxDepth = 10_000

// invalid says where a text is not JSON, in bytes.
func invalid(offset int, reason string) error {
	return fmt.Errorf("invalid JSON at byte %d: %s", offset, reason)
}

// Read returns the value of a text that is one JSON value, RFC 8259. It refuses duplicate names in an object, because
// readers differ in which one they use. The nodes share the memory of the text, which must not change.
func (a *Arena) Read(text []byte) (*Node, error) { return a.ReadLevels(text, MaxDepth) }

// ReadLevels is Read for the outermost levels of objects; lists do not count. What is in them stays text until it is
// looked into, and is not searched for duplicate names.
func (a *Arena) ReadLevels(text []byte, levels int) (*Node, error) {
	n, end, err := a.ReadFirst(text, levels)
	if err == nil {
		err = End(text, end)
	}
	if err != nil {
		return nil, err
	}
	return n, nil
}

// ReadFirst is ReadLevels for the value at the beginning of a text. It returns the end of the value.
func (a *Arena) ReadFirst(text []byte, levels int) (n *Node, end int, err error) {
	r := &a.reader
	if r.arena != nil { // a text that is read while another one is
		r = &reader{}
	}
	defer r.release()
	r.arena, r.src = a, text
	n = a.node()
	end, err = r.value(n, skipSpace(text, 0), levels)
	return n, end, err
}

// End returns an error unless only white space follows a position of a text.
func End(text []byte, pos int) error {
	if pos = skipSpace(text, pos); pos < len(text) {
		return invalid(pos, "the end was expected")
	}
	return nil
}

// Skip returns the end of the value at a position of a text.
func Skip(text []byte, pos int) (end int, err error) {
	r := reader{src: text}
	return r.skip(skipSpace(text, pos))
}

// Walk calls each with what is in the object or list at a position of a text, and returns its end. It makes no nodes: each has
// the name of a member, none of an element, and the position of its value, and returns the end of that. There is
// nothing in any other value.
func Walk(text []byte, pos int, each func(name string, pos int) (end int, err error)) (end int, err error) {
	r := reader{src: text}
	pos = skipSpace(text, pos)
	opening := byteAt(text, pos)
	if opening != '{' && opening != '[' {
		return r.skip(pos)
	}
	closing := opening + 2
	pos, more, err := r.begin(pos, closing)
	for more && err == nil {
		var m Member
		if opening == '{' {
			pos, err = r.key(&m, pos)
		}
		if err == nil {
			pos, err = each(m.Name, pos)
		}
		if err == nil {
			pos, more, err = r.next(pos, closing)
		}
	}
	return pos, err
}

// open reads what is in a value. The text is valid. Each time that something in it is opened again, twice as many levels are
// read, so that no part of a text is read more often than its depth has digits.
func (n *Node) open() {
	a := n.unread
	n.unread = nil
	r := &a.reader
	if r.arena != nil {
		r = &reader{}
	}
	defer r.release()
	r.arena, r.src, r.opened = a, n.raw, n.opened+1
	if n.kind == Object {
		_, _ = r.object(n, 0, 1<<n.opened-1)
	} else {
		_, _ = r.list(n, 0, 1<<n.opened)
	}
}

// reader reads a text in one pass. Its functions take a start position and return the end: that stays in a register.
type reader struct {
	arena *Arena
	src   []byte
	depth int
	// opened is that of the nodes in the text, 0 for a text that was not read before.
	opened uint8
	// ends is the stack of closing brackets of a value that is not looked into.
	ends []byte
	// members and elems are stacks of those of lists and objects that are not complete.
	members []Member
	elems   []*Node
}

func (r *reader) release() {
	clear(r.members) // there are some only after an error
	clear(r.elems)
	r.arena, r.src, r.depth, r.opened, r.members, r.elems = nil, nil, 0, 0, r.members[:0], r.elems[:0]
}

func (r *reader) value(n *Node, pos, levels int) (end int, err error) {
	switch c := byteAt(r.src, pos); {
	case c == '"':
		n.kind = String
		end, err = r.textEnd(pos)
	case c == '{' && levels > 0:
		n.kind = Object
		end, err = r.object(n, pos, levels-1)
	case c == '[' && levels > 0:
		n.kind = List
		end, err = r.list(n, pos, levels)
	case c == '{', c == '[':
		n.kind, n.unread, n.opened = kindOf(c), r.arena, r.opened
		end, err = r.skipNested(pos)
	default:
		n.kind = kindOf(c)
		end, err = r.skip(pos)
	}
	n.raw = r.src[pos:end:end]
	return end, err
}

func tooDeep(pos int) error { return invalid(pos, fmt.Sprintf("nested deeper than %d", MaxDepth)) }

func kindOf(first byte) Kind {
	switch first {
	case '{':
		return Object
	case '[':
		return List
	case '"':
		return String
	case 'n':
		return Null
	case 't', 'f':
		return Bool
	}
	return Number
}

func (r *reader) object(n *Node, pos, levels int) (end int, err error) {
	start, sorted, last := len(r.members), true, ""
	pos, more, err := r.begin(pos, '}')
	for more && err == nil {
		m := Member{Value: r.arena.node()}
		if pos, err = r.key(&m, pos); err != nil {
			return pos, err
		}
		if pos, err = r.value(m.Value, pos, levels); err != nil {
			return pos, err
		}
		// API servers write names in order, and then there are no duplicates.
		sorted, last = sorted && (len(r.members) == start || last < m.Name), m.Name
		r.members = append(r.members, m)
		pos, more, err = r.next(pos, '}')
	}
	if err != nil {
		return pos, err
	}
	n.members = r.arena.takeMembers(len(r.members) - start)
	copy(n.members, r.members[start:])
	clear(r.members[start:])
	r.members = r.members[:start]
	if !sorted && r.opened == 0 {
		if name, twice := duplicate(n.members); twice {
			return pos, invalid(pos, fmt.Sprintf("the name %.200q is there twice", name))
		}
	}
	return pos, nil
}

// duplicate returns a name that is there twice.
func duplicate(members []Member) (name string, twice bool) {
	if len(members) <= manyMembers {
		for i := range members {
			for j := range i {
				if members[i].Name == members[j].Name {
					return members[i].Name, true
				}
			}
		}
		return "", false
	}
	names := make([]string, len(members))
	for i := range members {
		names[i] = members[i].Name
	}
	slices.Sort(names)
	for i := 1; i < len(names); i++ {
		if names[i] == names[i-1] {
			return names[i], true
		}
	}
	return "", false
}

// key reads the name of a member, and the colon after it.
func (r *reader) key(m *Member, pos int) (int, error) {
	end, err := r.nameEnd(pos)
	if err != nil {
		return end, err
	}
	m.key = r.src[pos:end:end]
	m.Name = unquoted(m.key)
	return r.colonEnd(end)
}

// keyEnd is key without the name.
func (r *reader) keyEnd(pos int) (int, error) {
	end, err := r.nameEnd(pos)
	if err != nil {
		return end, err
	}
	return r.colonEnd(end)
}

func (r *reader) nameEnd(pos int) (int, error) {
	if byteAt(r.src, pos) != '"' {
		return pos, invalid(pos, "a name was expected")
	}
	return r.textEnd(pos)
}

// colonEnd reads a colon with the white space around it. Mostly there is none.
func (r *reader) colonEnd(pos int) (int, error) {
	if next := pos + 1; next < len(r.src) && r.src[pos] == ':' && r.src[next] > ' ' {
		return next, nil
	}
	if pos = skipSpace(r.src, pos); byteAt(r.src, pos) != ':' {
		return pos, invalid(pos, "a colon was expected")
	}
	return skipSpace(r.src, pos+1), nil
}

func (r *reader) list(n *Node, pos, levels int) (end int, err error) {
	start := len(r.elems)
	pos, more, err := r.begin(pos, ']')
	for more && err == nil {
		element := r.arena.node()
		if pos, err = r.value(element, pos, levels); err != nil {
			return pos, err
		}
		r.elems = append(r.elems, element)
		pos, more, err = r.next(pos, ']')
	}
	if err != nil {
		return pos, err
	}
	n.elems = append(r.arena.Room(len(r.elems)-start), r.elems[start:]...)
	clear(r.elems[start:])
	r.elems = r.elems[:start]
	return pos, nil
}

// begin enters a bracket and reports whether it has content.
func (r *reader) begin(pos int, end byte) (inside int, more bool, err error) {
	if r.depth++; r.depth > MaxDepth {
		return pos, false, tooDeep(pos)
	}
	if pos = skipSpace(r.src, pos+1); byteAt(r.src, pos) == end {
		r.depth--
		return pos + 1, false, nil
	}
	return pos, true, nil
}

// next moves to the next element, or leaves the bracket.
func (r *reader) next(pos int, end byte) (behind int, more bool, err error) {
	pos = skipSpace(r.src, pos)
	switch byteAt(r.src, pos) {
	case ',':
		return skipSpace(r.src, pos+1), true, nil
	case end:
		r.depth--
		return pos + 1, false, nil
	}
	return pos, false, invalid(pos, "a comma or an end was expected")
}

// byteAt returns the byte at a position, and 0 after the end, which is valid nowhere in JSON.
func byteAt(src []byte, pos int) byte {
	if pos < len(src) {
		return src[pos]
	}
	return 0
}

func skipSpace(src []byte, pos int) int {
	for pos < len(src) && src[pos] <= ' ' && (src[pos] == ' ' || src[pos] == '\n' || src[pos] == '\r' || src[pos] == '\t') {
		pos++
	}
	return pos
}
