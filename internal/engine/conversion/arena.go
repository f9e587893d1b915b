// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import "github.com/conversion-operator/conversion-operator/internal/engine/tree"

const (
	// bumpSize is the number of values that an arena allocates at once.
	bumpSize = 128
	// keptBumps and keptText limit the memory that an arena keeps between two conversions.
	keptBumps = 32
	keptText  = 256 << 10
)

// arena is the memory of one conversion. Everything in it lives until the end of the conversion,
// and is then reused at once: the usual conversion allocates nothing.
type arena struct {
	// meter counts work and memory. It is nil if nothing limits them.
	meter *meter

	nodes        bump[node]
	lists        bump[*node]
	pathContexts bump[pathContext]
	keyed        bump[keyed]
	// text is all newly written text. It only grows, so slices of it stay valid.
	text []byte
	// ends are the closing brackets of the values that a parser is in, the innermost last.
	ends []byte
}

// reset frees everything. It returns false if the arena is too large to keep for another
// conversion.
func (a *arena) reset() bool {
	a.nodes.reset()
	a.lists.reset()
	a.pathContexts.reset()
	a.keyed.reset()
	a.text = a.text[:0]
	return len(a.nodes.chunks) <= keptBumps && len(a.lists.chunks) <= keptBumps && len(a.pathContexts.chunks) <= keptBumps && len(a.keyed.chunks) <= keptBumps && cap(a.text) <= keptText
}

// bump allocates values one after the other.
type bump[T any] struct {
	chunks [][]T
	// current is the chunk from which values are taken, used the number of its values in use, and
	// next the index of the following chunk.
	current    []T
	used, next int
}

// one returns a zero value.
func (b *bump[T]) one() *T {
	if b.used == len(b.current) {
		b.nextChunk(1)
	}
	b.used++
	return &b.current[b.used-1]
}

// take returns n zero values.
func (b *bump[T]) take(n int) []T {
	for n > len(b.current)-b.used {
		b.nextChunk(n)
	}
	b.used += n
	return b.current[b.used-n : b.used : b.used]
}

// nextChunk moves to the next chunk. If there is none, it allocates one with room for n values.
func (b *bump[T]) nextChunk(n int) {
	if b.next == len(b.chunks) {
		b.chunks = append(b.chunks, make([]T, max(n, bumpSize)))
	}
	b.current, b.used, b.next = b.chunks[b.next], 0, b.next+1
}

// reset frees and zeroes all values, so that they keep nothing else alive.
func (b *bump[T]) reset() {
	if b.next == 0 {
		return
	}
	for _, full := range b.chunks[:b.next-1] {
		clear(full)
	}
	clear(b.current[:b.used])
	b.used, b.next, b.current = 0, 1, b.chunks[0]
}

// textFrom returns the text from start on.
func (a *arena) textFrom(start int) []byte { return a.text[start:len(a.text):len(a.text)] }

func (a *arena) node() *node {
	if a.nodes.used == len(a.nodes.current) {
		a.nodes.nextChunk(1)
		a.meter.take(bumpSize * valueBytes)
	}
	a.nodes.used++
	return &a.nodes.current[a.nodes.used-1]
}

func (a *arena) newObject() *node {
	n := a.node()
	n.kind, n.open = object, true
	return n
}

func (a *arena) newList() *node {
	n := a.node()
	n.kind, n.open = array, true
	return n
}

// raw returns a value with this JSON text.
func (a *arena) raw(text []byte) *node {
	n := a.node()
	n.kind, n.text = kindOf(text), text
	a.meter.take(len(text))
	return n
}

// quote returns a string value.
func (a *arena) quote(text []byte) *node {
	start := len(a.text)
	a.text = appendQuoted(a.text, text)
	return a.raw(a.textFrom(start))
}

// enclose returns a string value for a text that needs no escapes.
func (a *arena) enclose(text []byte) *node {
	start := len(a.text)
	a.text = append(append(append(a.text, '"'), text...), '"')
	return a.raw(a.textFrom(start))
}

// bytes returns the current JSON text of a value.
func (a *arena) bytes(n *node) []byte {
	if !n.open {
		return n.text
	}
	start := len(a.text)
	a.text = n.append(a.text)
	return a.textFrom(start)
}

// decode returns the text of a string value.
func (a *arena) decode(quoted []byte) []byte {
	inner := quoted[1 : len(quoted)-1]
	if isPlain(inner) {
		return inner
	}
	a.meter.take(len(inner))
	start := len(a.text)
	a.text = tree.Unquote(a.text, inner)
	return a.textFrom(start)
}

// put sets the value at a path of an object, and creates missing parent objects.
func (a *arena) put(n *node, path segments, value *node) {
	parent, name := path.split()
	a.makeObject(n, parent).set(name, value)
}

// makeObject returns the object at a path. It creates missing objects, and replaces values of
// other kinds on the way.
func (a *arena) makeObject(n *node, path segments) *node {
	for i := range path {
		next := n.get(&path[i])
		if next == nil || !next.isObject() {
			next = a.newObject()
			n.set(&path[i], next)
		}
		n = next
	}
	return n
}
