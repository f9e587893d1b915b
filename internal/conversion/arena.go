// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

const (
	// bumpSize is how many values an arena gets at a time.
	bumpSize = 128
	// keptBumps and keptText bound what an arena holds between two conversions.
	keptBumps = 64
	keptText  = 1 << 20
)

// arena is the memory of one conversion. What is made in it lives until the
// conversion ends, and is all taken back immediately: the usual conversion allocates
// nothing.
type arena struct {
	nodes  bump[node]
	lists  bump[*node]
	places bump[pathContext]
	keyed  bump[keyed]
	// text is what was written newly. It is only appended to, so that slices of it stay.
	text []byte
	// ends are the brackets that close what a parser skips, the innermost last.
	ends []byte
}

// reset takes everything back, and reports whether the arena is small enough to
// be kept for another conversion.
func (a *arena) reset() bool {
	a.nodes.reset()
	a.lists.reset()
	a.places.reset()
	a.keyed.reset()
	a.text = a.text[:0]
	return len(a.nodes.chunks) <= keptBumps && len(a.lists.chunks) <= keptBumps && len(a.keyed.chunks) <= keptBumps && cap(a.text) <= keptText
}

// bump hands out values in order.
type bump[T any] struct {
	chunks [][]T
	// current is the chunk that values are taken of, used how many of it are, and
	// next the one behind it.
	current    []T
	used, next int
}

// one returns a zero value.
func (b *bump[T]) one() *T {
	if b.used == len(b.current) {
		b.turn(1)
	}
	b.used++
	return &b.current[b.used-1]
}

// take returns n zero values.
func (b *bump[T]) take(n int) []T {
	for n > len(b.current)-b.used {
		b.turn(n)
	}
	b.used += n
	return b.current[b.used-n : b.used : b.used]
}

// turn goes on to the next chunk, and makes one for n values where there is none.
func (b *bump[T]) turn(n int) {
	if b.next == len(b.chunks) {
		b.chunks = append(b.chunks, make([]T, max(n, bumpSize)))
	}
	b.current, b.used, b.next = b.chunks[b.next], 0, b.next+1
}

// reset takes all values back, and makes them zero: nothing that they led to is
// held any longer.
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

// since is what was appended to the text since it had a length.
func (a *arena) since(start int) []byte { return a.text[start:len(a.text):len(a.text)] }

func (a *arena) node() *node { return a.nodes.one() }

func (a *arena) newObject() *node {
	n := a.node()
	n.kind, n.open = object, true
	return n
}

// raw is a value that is nothing but its text.
func (a *arena) raw(text []byte) *node {
	n := a.node()
	n.kind, n.text = kindOf(text), text
	return n
}

// quote is a string value.
func (a *arena) quote(text []byte) *node {
	start := len(a.text)
	a.text = appendQuoted(a.text, text)
	return a.raw(a.since(start))
}

// enclose is a string value that needs no escapes.
func (a *arena) enclose(text []byte) *node {
	start := len(a.text)
	a.text = append(append(append(a.text, '"'), text...), '"')
	return a.raw(a.since(start))
}

// bytes is the text of a value as it is now.
func (a *arena) bytes(n *node) []byte {
	if !n.open {
		return n.text
	}
	start := len(a.text)
	a.text = n.append(a.text)
	return a.since(start)
}

// decode returns what a string value says.
func (a *arena) decode(quoted []byte) []byte {
	inner := quoted[1 : len(quoted)-1]
	if isPlain(inner) {
		return inner
	}
	start := len(a.text)
	a.text = appendUnquoted(a.text, inner)
	return a.since(start)
}

// put sets the value at a path of an object and makes the objects on the way.
func (a *arena) put(n *node, path segments, value *node) {
	parent, name := path.split()
	a.makeObject(n, parent).set(name, value)
}

// makeObject makes the object at a path, where there is none, and those on the
// way. A value of another kind that is in the way is replaced.
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
