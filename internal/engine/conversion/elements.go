// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"hash/maphash"
	"math/bits"
	"slices"
	"strconv"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
)

// allHaveKeys reports whether every element has all keys, and no two elements have the same. The
// API server validates that on writes, but stored objects may be older than the keys.
func (s *step) allHaveKeys(keys []name, list *node) bool {
	if len(keys) == 0 {
		return false
	}
	size := 8
	for element := list.first; element != nil; element = element.next {
		size += 2
	}
	// A hash table of elements that is at most half full.
	size = 1 << bits.Len(uint(size))
	table := s.lists.take(size)
	for element := list.first; element != nil; element = element.next {
		hash, all := s.hashKeys(keys, element)
		if !all {
			return false
		}
		pos := int(hash) & (size - 1)
		for ; table[pos] != nil; pos = (pos + 1) & (size - 1) {
			if s.sameKeys(keys, table[pos], element) {
				return false
			}
		}
		table[pos] = element
	}
	return true
}

var keySeed = maphash.MakeSeed()

// hashKeys returns the hash of an element's keys, and whether it has all of them.
func (s *step) hashKeys(keys []name, element *node) (hash uint64, all bool) {
	for i := range keys {
		value := element.get(&keys[i])
		if value == nil {
			return 0, false
		}
		text := value.text
		switch {
		case value.isText():
			text = s.decode(text)
		case value.kind != scalar:
			text = []byte(s.canonical(value))
		}
		hash = hash*31 + maphash.Bytes(keySeed, text)
	}
	return hash, true
}

func (s *step) sameKeys(keys []name, a, b *node) bool {
	for i := range keys {
		if !s.same(a.get(&keys[i]), b.get(&keys[i])) {
			return false
		}
	}
	return true
}

// convertUnkeyed converts elements without keys. An element that the target version cannot express
// is preserved as a whole. On the way back, a preserved element replaces the element that it
// converts to: the one at its index, or else the first one. If rules have changed since, no
// element may convert to it. Then what the current element lacks is merged into it, if that is
// still what the preserved one had become (unresolved.go).
func (s *step) convertUnkeyed(c *collection, list *node, pc *pathContext, excluding *excluding) {
	merging := len(s.merging)
	restored := s.preservedElementsOf(c, pc).match(s, list, pc)
	restore, sourceEntries := s.restore, s.sourceEntries
	s.restore, s.sourceEntries = nil, nil
	if excluding != nil {
		merged := s.mergedIndexes(merging)
		excluding.convert(s, list, func(element *node, index, targetIndex int) (known bool) {
			pc.index = targetIndex
			if i, is := merged[index]; is {
				s.merging[i].pointer, known = s.pointer(pc, ""), true
			}
			return s.convertUnkeyedElement(c, element, pc, index, restored) || known
		})
	} else {
		for element := list.first; element != nil; element, pc.index = element.next, pc.index+1 {
			s.convertUnkeyedElement(c, element, pc, pc.index, restored)
		}
	}
	s.restore, s.sourceEntries = restore, sourceEntries
}

// mergedIndexes returns the entries that are to be merged, since a number of them, by the indexes of their
// elements.
func (s *step) mergedIndexes(since int) map[int]int {
	merged := map[int]int{}
	for i := since; i < len(s.merging); i++ {
		if _, index, isElement := s.merging[i].inList(); isElement {
			merged[index] = i
		}
	}
	return merged
}

// convertUnkeyedElement converts the element that has the index in the source version, and that of pc in the
// target version. It reports whether the element was restored.
func (s *step) convertUnkeyedElement(c *collection, element *node, pc *pathContext, index int, restored [][]byte) bool {
	if index < len(restored) && restored[index] != nil {
		element.open, element.text = false, restored[index]
		element.kind, element.first, element.last = kindOf(element.text), nil, nil
		return true
	}
	original, before := element.text, len(s.preserving)
	if c.direction.dropAll(element) {
		original = s.bytes(element)
	}
	s.convertScope(c.direction, element, pc)
	if len(s.preserving) > before {
		s.preserving = append(s.preserving[:before], entry{pointer: s.pointer(pc, ""), value: original, images: s.digest(element, c.targetNames)})
	}
	return false
}

// dropAll removes the dropped fields from an element, before it is preserved as a whole for other
// reasons.
func (d *direction) dropAll(n *node) (dropped bool) {
	for i := range d.collections {
		c := &d.collections[i]
		held := n.find(c.path)
		switch {
		case held == nil:
		case c.isObject:
			dropped = c.direction.dropAll(held) || dropped
		default:
			for element := held.first; element != nil; element = element.next {
				dropped = c.direction.dropAll(element) || dropped
			}
		}
	}
	for _, path := range d.drops {
		dropped = n.detach(path) != nil || dropped
	}
	return dropped
}

// preservedElements are the preserved elements of one list.
type preservedElements struct {
	all []preservedElement
	// byConverted has the numbers of the elements by what they convert to, sorted by index.
	byConverted map[string][]int
}

type preservedElement struct {
	*entry
	index int
	taken bool
}

func (s *step) preservedElementsOf(c *collection, pc *pathContext) *preservedElements {
	if len(s.restore) == 0 {
		return nil
	}
	pc.index = 0
	prefix := bytes.TrimSuffix(s.pointer(pc, ""), []byte("0"))
	l := &preservedElements{byConverted: map[string][]int{}}
	below := s.restore.withPrefix(prefix)
	for i := range below {
		digits := string(below[i].pointer[len(prefix):])
		index, err := strconv.Atoi(digits)
		if err == nil && index >= 0 && strconv.Itoa(index) == digits && below[i].kind == valueEntry {
			l.all = append(l.all, preservedElement{entry: &below[i], index: index})
		}
	}
	slices.SortFunc(l.all, func(a, b preservedElement) int { return a.index - b.index })
	for i := range l.all {
		e := l.all[i].entry
		element, err := s.parse(e.value, c.projection)
		switch {
		case err != nil || !s.fitsElement(c.direction.shape, element, e.value):
			e.state = refused
			l.all[i].taken = true
		default:
			e.state = consumed
			converted := s.convertElement(c.direction.reverse, element)
			l.byConverted[converted] = append(l.byConverted[converted], i)
		}
	}
	return l
}

// fitsElement reports whether the schema allows the element. Required fields may be missing,
// because rules may drop them.
func (s *step) fitsElement(schema *shape.Schema, element *node, value []byte) bool {
	if schema == nil || element.kind != object {
		return s.fitsShape(schema, value)
	}
	members, err := s.parse(value, openMembers)
	if err != nil {
		return false
	}
	for m := members.first; m != nil; m = m.next {
		if field := schema.Field(m.decodedName()); field == nil || !s.fitsShape(field, m.text) {
			return false
		}
	}
	return true
}

// convertElement returns the canonical text of an element after a conversion in direction d, with
// nothing restored.
func (s *step) convertElement(d *direction, element *node) string {
	other := s.newNested()
	defer other.release()
	other.convertScope(d, element, nil)
	return s.canonical(element)
}

// match returns, for each element, the preserved element that replaces it, or nil. Elements at
// their old index come first, even if the current rules convert them differently: an equal element
// at another index must not take their place.
func (l *preservedElements) match(s *step, list *node, pc *pathContext) [][]byte {
	if l == nil || len(l.all) == 0 {
		return nil
	}
	var matched [][]byte
	var texts []string
	for element := list.first; element != nil; element = element.next {
		text := s.canonical(element)
		matched, texts = append(matched, l.takeAt(text, len(texts))), append(texts, text)
	}
	unchanged := l.takeUnchanged(s, pc.collection.sourceNames, matched, texts)
	for i, text := range texts {
		if matched[i] == nil && unchanged[i] < 0 {
			matched[i] = l.takeFirst(text)
		}
	}
	l.noteMerges(s, matched, unchanged, texts, pc)
	return matched
}

// takeUnchanged takes the preserved elements whose result under the previous rules is still at
// their index. For each element it returns the number of the preserved one, or -1. A preserved one that does
// not fit stays preserved: it was not edited.
func (l *preservedElements) takeUnchanged(s *step, names *naming, matched [][]byte, texts []string) []int {
	found := slices.Repeat([]int{-1}, len(texts))
	for i := range l.all {
		element := &l.all[i]
		misfit := element.state == refused
		if element.taken && !misfit || element.index >= len(texts) || matched[element.index] != nil {
			continue
		}
		switch unchanged := bytes.Equal(element.images, s.digestOfText(texts[element.index], names)); {
		case unchanged && misfit:
			element.state = deferred
		case unchanged:
			found[element.index], element.taken = i, true
		}
	}
	return found
}

// takeAt takes the preserved element that converts to the text and was at the index.
func (l *preservedElements) takeAt(text string, index int) []byte {
	candidates := l.byConverted[text]
	pos, found := slices.BinarySearchFunc(candidates, index, func(i, index int) int { return l.all[i].index - index })
	if !found || l.all[candidates[pos]].taken {
		return nil
	}
	l.all[candidates[pos]].taken = true
	return l.all[candidates[pos]].value
}

// takeFirst takes the first preserved element that converts to the text and is not taken.
func (l *preservedElements) takeFirst(text string) []byte {
	for candidates := l.byConverted[text]; len(candidates) > 0; {
		first := &l.all[candidates[0]]
		candidates = candidates[1:]
		l.byConverted[text] = candidates
		if !first.taken {
			first.taken = true
			return first.value
		}
	}
	return nil
}

// noteMerges records merges of preserved elements into the elements that are still their result
// under the previous rules.
func (l *preservedElements) noteMerges(s *step, matched [][]byte, unchanged []int, texts []string, pc *pathContext) {
	byDigest := map[string][]int{}
	for i := range l.all {
		if element := &l.all[i]; !element.taken {
			byDigest[string(element.images)] = append(byDigest[string(element.images)], i)
		}
	}
	for index, text := range texts {
		i := unchanged[index]
		if len(byDigest) > 0 && matched[index] == nil && i < 0 {
			digest := string(s.digestOfText(text, pc.collection.sourceNames))
			if candidates := byDigest[digest]; len(candidates) > 0 {
				i, byDigest[digest] = candidates[0], candidates[1:]
			}
		}
		if i >= 0 {
			pc.index = index
			l.noteMerge(s, i, text, pc)
		}
	}
	pc.index = 0
}

// noteMerge records that a preserved element is to be merged into the current one.
func (l *preservedElements) noteMerge(s *step, i int, text string, pc *pathContext) {
	e := entry{pointer: s.pointer(pc, ""), value: l.all[i].value, images: l.all[i].images}
	if s.isUnedited(pc.collection, e.value, text) {
		e.state = unedited
	}
	s.merging = append(s.merging, e)
}

// isUnedited reports whether an element has everything that the preserved one converts to, except
// what rules fill in, which merged values replace, and whether anything else in it was merged into
// it and has no counterpart in the other version. Then the preserved one replaces it. An element that
// lacks what rules fill in must also convert to a part of the preserved one, so that it comes back.
func (s *step) isUnedited(c *collection, preserved []byte, text string) bool {
	element, errElement := s.parse(preserved, c.projection)
	live, errLive := s.parse([]byte(text), openAll)
	if errElement != nil || errLive != nil || element.kind == scalar || live.kind != element.kind {
		return false
	}
	became := s.convertElement(c.direction.reverse, element)
	if s.convertText(c, became) != s.convertText(c, text) {
		return false
	}
	if s.isPart(became, live) {
		return true
	}
	whole, err := s.parse(preserved, openAll)
	return err == nil && s.isPart(s.convertUnfilled(c.direction.reverse, preserved, c.projection), live) &&
		s.isPart(s.convertUnfilled(c.direction, []byte(text), c.projection), whole)
}

// isPart reports whether the text of an element is a part of another one.
func (s *step) isPart(text string, whole *node) bool {
	element, err := s.parse([]byte(text), openAll)
	return err == nil && element.isPartOf(whole)
}

// convertUnfilled converts an element in direction d without the values that rules fill in, and returns
// the canonical text.
func (s *step) convertUnfilled(d *direction, text []byte, projection *projection) string {
	element, err := s.parse(text, projection)
	if err != nil {
		return ""
	}
	other := s.newNested()
	defer other.release()
	other.complete = false
	other.convertScope(d, element, nil)
	return s.canonical(element)
}

// convertText converts the text of an element, with nothing restored, and returns the canonical
// text.
func (s *step) convertText(c *collection, text string) string {
	element, err := s.parse([]byte(text), c.projection)
	if err != nil {
		return ""
	}
	return s.convertElement(c.direction, element)
}

// digest identifies the current content of an element, with these names: a JSON string with the first 16 hexadecimal
// digits of the SHA-256 of its canonical text.
func (s *step) digest(element *node, names *naming) []byte {
	return s.digestOfText(s.canonical(element), names)
}

// digestOfText is digest for the canonical text of an element.
func (s *step) digestOfText(text string, names *naming) []byte {
	if names != nil {
		if renamed, err := s.renamedText([]byte(text), names); err == nil {
			text = s.canonical(s.raw(renamed))
		}
	}
	return digestOf(text)
}

func digestOf(canonical string) []byte {
	sum := sha256.Sum256([]byte(canonical))
	const digits = 16
	return []byte(`"` + hex.EncodeToString(sum[:])[:digits] + `"`)
}
