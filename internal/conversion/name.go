// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"encoding/binary"
	"slices"
)

// mark is a part of a name.
type mark uint64

// name is the name of a member, prepared for being found and written.
type name struct {
	text string
	// quoted is the text as a JSON string.
	quoted []byte
	// mark is that of the quoted text.
	mark mark
}

func newName(text string) name {
	quoted := appendQuoted(nil, text)
	return name{text, quoted, markOf(quoted)}
}

// The names that every object has.
var (
	nameAPIVersion  = newName("apiVersion")
	nameKind        = newName("kind")
	nameMetadata    = newName("metadata")
	nameName        = newName("name")
	nameNamespace   = newName("namespace")
	nameUID         = newName("uid")
	nameAnnotations = newName("annotations")
)

// marked is how long a quoted name may be for its mark and its length to tell it
// apart from any other.
const marked = 8

// markOf tells most names apart at a glance, by how they begin, how they end and
// how long they are, and orders them by how they begin.
func markOf(quoted []byte) mark {
	const half, bits = marked / 2, 8
	length := len(quoted)
	if length < half {
		return mark(quoted[1]) << ((2*half - 2) * bits)
	}
	begin, end := binary.BigEndian.Uint32(quoted), binary.LittleEndian.Uint32(quoted[length-half:])
	return mark(begin)<<(half*bits) | mark(end) ^ mark(length)
}

// before reports whether a name begins with less than another.
func (m mark) before(other mark) bool { return m>>32 < other>>32 }

// segments is a Path, prepared for being followed.
type segments []name

func (p Path) segments() segments {
	prepared := make(segments, len(p))
	for i, text := range p {
		prepared[i] = newName(text)
	}
	return prepared
}

// names are the path.
func (s segments) names() Path {
	path := make(Path, len(s))
	for i := range s {
		path[i] = s[i].text
	}
	return path
}

// split is the path of the object that holds a field, and the field's name.
func (s segments) split() (parent segments, last *name) { return s[:len(s)-1], &s[len(s)-1] }

// has is that of Path.
func (s segments) has(prefix segments) bool {
	if len(s) < len(prefix) {
		return false
	}
	for i := range prefix {
		if s[i].text != prefix[i].text {
			return false
		}
	}
	return true
}

// byName is what belongs to the members of an object. The zero one has nothing.
type byName[T any] struct {
	entries []belonging[T]
	// index is where the entries are that are many: of a few, it is faster to
	// compare marks.
	index map[string]int
	// spots has the entries of a few names whose marks tell them apart, each where
	// its mark times the factor leads to.
	spots  []byte
	factor mark
}

type belonging[T any] struct {
	name
	value T
}

const (
	// fewNames is the most entries that have no index.
	fewNames = 12
	// spotBits leave most spots free, so that a factor is soon found.
	spotBits = 6
)

// set gives a name a value, in the place of the one that it had.
func (b *byName[T]) set(text string, value T) {
	if at := b.position(text); at >= 0 {
		b.entries[at].value = value
		return
	}
	b.entries = append(b.entries, belonging[T]{newName(text), value})
	switch count := len(b.entries); {
	case count == fewNames+1:
		b.index = map[string]int{}
		for i := range b.entries {
			b.index[b.entries[i].text] = i
		}
	case count > fewNames:
		b.index[text] = count - 1
	}
	b.spread()
}

// spread looks for a factor that leads each mark to a spot of its own. There is
// none where two marks are the same.
func (b *byName[T]) spread() {
	const tries = 100
	b.spots = nil
	if len(b.entries) < 2 || b.index != nil {
		return
	}
	for try := range mark(tries) {
		// The golden ratio, from which factors are in no order.
		if b.factor = (2*try + 1) * 0x9e3779b97f4a7c15; b.fits() {
			return
		}
	}
	b.spots = nil
}

// fits gives every entry its spot, and reports whether none is taken. At a free
// one is the first entry, whose mark is another.
func (b *byName[T]) fits() bool {
	b.spots = make([]byte, 1<<spotBits)
	var taken [1 << spotBits]bool
	for i := range b.entries {
		spot := b.spotOf(b.entries[i].mark)
		if taken[spot] {
			return false
		}
		taken[spot], b.spots[spot] = true, byte(i)
	}
	return true
}

func (b *byName[T]) spotOf(m mark) mark { return m * b.factor >> (64 - spotBits) }

// position is where the entry of a name is, and negative where there is none.
func (b *byName[T]) position(text string) int {
	if b.index != nil {
		at, found := b.index[text]
		if !found {
			return -1
		}
		return at
	}
	return slices.IndexFunc(b.entries, func(e belonging[T]) bool { return e.text == text })
}

// of is the value of a member's name, and zero where it has none.
func (b *byName[T]) of(m *node) (value T) {
	if b.spots != nil {
		if e := &b.entries[b.spots[b.spotOf(m.mark)]]; m.named(&e.name) {
			return e.value
		}
		return value
	}
	if b.index != nil {
		return b.among(m)
	}
	for i := range b.entries {
		if m.named(&b.entries[i].name) {
			return b.entries[i].value
		}
	}
	return value
}

// among is of for many entries.
func (b *byName[T]) among(m *node) (value T) {
	at, found := b.index[string(m.key[1:len(m.key)-1])]
	if m.escaped {
		at, found = b.index[m.label()]
	}
	if found {
		value = b.entries[at].value
	}
	return value
}

// get is the value of a name, and zero where it has none.
func (b *byName[T]) get(text string) (value T) {
	if at := b.position(text); at >= 0 {
		value = b.entries[at].value
	}
	return value
}

// setOf is nil for nil.
func setOf(names []string) *byName[bool] {
	if names == nil {
		return nil
	}
	set := &byName[bool]{}
	for _, text := range names {
		set.set(text, true)
	}
	return set
}
