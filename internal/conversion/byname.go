// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import "slices"

// byName is what belongs to the members of an object. The zero one has nothing.
type byName[T any] struct {
	entries []belonging[T]
	// index is where the entries are that are many: of a few, it is faster to
	// compare the names one by one.
	index map[string]int
}

type belonging[T any] struct {
	name
	value T
}

// fewNames is the most entries that are compared one by one.
const fewNames = 12

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
}

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
