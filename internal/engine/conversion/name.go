// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"encoding/binary"
	"slices"
)

// fingerprint summarises a name in one word.
type fingerprint uint64

// name is the name of a member, prepared for lookups and writing.
type name struct {
	text string
	// quoted is the text as a JSON string.
	quoted []byte
	// fingerprint is that of the quoted text.
	fingerprint fingerprint
}

func newName(text string) name {
	quoted := appendQuoted(nil, text)
	return name{text, quoted, fingerprintOf(quoted)}
}

// Names that every object has.
var (
	nameAPIVersion  = newName("apiVersion")
	nameKind        = newName("kind")
	nameMetadata    = newName("metadata")
	nameName        = newName("name")
	nameNamespace   = newName("namespace")
	nameUID         = newName("uid")
	nameAnnotations = newName("annotations")
)

// fingerprintLen is the length of a quoted name up to which fingerprint and length identify it.
const fingerprintLen = 8

// fingerprintOf combines the beginning, the end and the length of a name. Most names differ in it.
// Its upper half sorts like the names.
func fingerprintOf(quoted []byte) fingerprint {
	const half, bits = fingerprintLen / 2, 8
	length := len(quoted)
	if length < half {
		return fingerprint(quoted[1]) << ((2*half - 2) * bits)
	}
	begin, end := binary.BigEndian.Uint32(quoted), binary.LittleEndian.Uint32(quoted[length-half:])
	return fingerprint(begin)<<(half*bits) | fingerprint(end) ^ fingerprint(length)
}

// before reports whether the beginning of a name sorts before that of another name.
func (f fingerprint) before(other fingerprint) bool { return f>>32 < other>>32 }

// segments is a Path, prepared for lookups.
type segments []name

func (p Path) segments() segments {
	prepared := make(segments, len(p))
	for i, text := range p {
		prepared[i] = newName(text)
	}
	return prepared
}

// path returns the Path.
func (s segments) path() Path {
	path := make(Path, len(s))
	for i := range s {
		path[i] = s[i].text
	}
	return path
}

// split returns the path of the parent object and the name of the field.
func (s segments) split() (parent segments, last *name) { return s[:len(s)-1], &s[len(s)-1] }

// hasPrefix reports whether s begins with prefix.
func (s segments) hasPrefix(prefix segments) bool {
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

// byName maps the names of members to values. The zero value is empty.
type byName[T any] struct {
	entries []namedValue[T]
	// index has the positions of many entries. For a few, comparing fingerprints is faster.
	index map[string]int
	// spots is a perfect hash table for a few entries with different fingerprints: the upper bits
	// of fingerprint times factor are the index of a spot, which has the position of the entry.
	spots  []byte
	factor fingerprint
}

type namedValue[T any] struct {
	name
	value T
}

const (
	// fewNames is the maximum number of entries without an index.
	fewNames = 12
	// spotBits leaves most spots free, so that a factor is found soon.
	spotBits = 6
)

// set adds or replaces the value of a name.
func (b *byName[T]) set(text string, value T) {
	if pos := b.position(text); pos >= 0 {
		b.entries[pos].value = value
		return
	}
	b.entries = append(b.entries, namedValue[T]{newName(text), value})
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

// spread searches a factor that gives each fingerprint its own spot. There is none if two
// fingerprints are the same.
func (b *byName[T]) spread() {
	const tries = 100
	b.spots = nil
	if len(b.entries) < 2 || b.index != nil {
		return
	}
	for try := range fingerprint(tries) {
		// Multiples of the golden ratio are in no order.
		if b.factor = (2*try + 1) * 0x9e3779b97f4a7c15; b.fits() {
			return
		}
	}
	b.spots = nil
}

// fits fills in the spots, and returns false if two entries share one. Free spots have the
// position of the first entry, whose fingerprint differs.
func (b *byName[T]) fits() bool {
	b.spots = make([]byte, 1<<spotBits)
	var taken [1 << spotBits]bool
	for i := range b.entries {
		spot := b.spotOf(b.entries[i].fingerprint)
		if taken[spot] {
			return false
		}
		taken[spot], b.spots[spot] = true, byte(i)
	}
	return true
}

func (b *byName[T]) spotOf(f fingerprint) fingerprint { return f * b.factor >> (64 - spotBits) }

// position returns the position of a name's entry, -1 if there is none.
func (b *byName[T]) position(text string) int {
	if b.index != nil {
		pos, found := b.index[text]
		if !found {
			return -1
		}
		return pos
	}
	return slices.IndexFunc(b.entries, func(e namedValue[T]) bool { return e.text == text })
}

// lookup returns the value for a member's name, the zero value if there is none.
func (b *byName[T]) lookup(m *node) (value T) {
	if b.spots != nil {
		if e := &b.entries[b.spots[b.spotOf(m.fingerprint)]]; m.named(&e.name) {
			return e.value
		}
		return value
	}
	if b.index != nil {
		return b.lookupIndexed(m)
	}
	for i := range b.entries {
		if m.named(&b.entries[i].name) {
			return b.entries[i].value
		}
	}
	return value
}

// lookupIndexed is lookup for many entries.
func (b *byName[T]) lookupIndexed(m *node) (value T) {
	pos, found := b.index[string(m.key[1:len(m.key)-1])]
	if m.escaped {
		pos, found = b.index[m.decodedName()]
	}
	if found {
		value = b.entries[pos].value
	}
	return value
}

// get returns the value for a name, the zero value if there is none.
func (b *byName[T]) get(text string) (value T) {
	if pos := b.position(text); pos >= 0 {
		value = b.entries[pos].value
	}
	return value
}

// setOf returns the set of the names, nil for nil.
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
