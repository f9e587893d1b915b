// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
)

// An edit at another version changes only what is computed from the edited field. What that is, shows
// the same edit of the object without its preserved data: a field that differs only with the preserved
// data was discarded.

const (
	// editsPerField is how often each kind of edit of a field is judged, for each two versions. So the
	// time for many objects is that of round trips.
	editsPerField = 10
	// triesPerField is how often it is tried, because schemas refuse some edits.
	triesPerField = 40
	// addsPerField is how often it is tried to add a field that an object lacks: schemas have many.
	addsPerField = 2
)

// editKey is a kind of edit. Its path has [*] for elements and for members of maps.
type editKey struct{ from, to, path, what string }

// editCount is how often a kind of edit was tried, and judged.
type editCount struct{ tried, judged int }

// edited is an object at a version, with its conversion, for the edits of that.
type edited struct {
	t        testObject
	from, to string
	// atRest are the fields that come back changed without any edit.
	atRest paths
	// bare returns the object as it comes back if nothing is preserved.
	bare func() (any, bool)
	// restless returns the fields that are not read as they are written, without any edit.
	restless func() paths
	// problems returns the number of problems that the schema has with the conversion.
	problems func() int
}

// tryEdits changes a converted object in many ways, one after the other, and records what of the
// original is gone or changed afterwards, although it is not computed from what was changed.
func (c *Checker) tryEdits(ctx context.Context, t testObject, from, to string, converted, returned value) {
	if c.converter == nil || t.canary {
		return
	}
	at := c.versions[to]
	e := edited{
		t: t, from: from, to: to, atRest: c.pathsAtRest(t, returned),
		bare:     sync.OnceValues(func() (any, bool) { return c.convertBare(c.resource().Without(converted.tree), from) }),
		problems: sync.OnceValue(func() int { return len(at.validate(ctx, converted)) }),
	}
	e.restless = sync.OnceValue(func() paths {
		return pathsOf(c.changedByStoring(e, converted.tree, c.resource().Without(converted.tree))...)
	})
	c.tryDefaults(e, converted)
	edits(converted.tree, at.filled, at.structural, func(edit edit) bool {
		key := editKey{from, to, edit.pattern, edit.what}
		count := c.edits[key]
		if count.judged >= editsPerField || count.tried >= triesPerField || edit.what == editAdd && count.tried >= addsPerField || ctx.Err() != nil {
			return true
		}
		judged := c.tryEdit(ctx, e, edit)
		if count.tried++; judged {
			count.judged++
			c.report.Edits++
		}
		c.edits[key] = count
		return judged
	})
}

// tryDefaults fills in the defaults of the schema, as an API server does with each write. These
// are no edits.
func (c *Checker) tryDefaults(e edited, converted value) {
	filled, err := c.versions[e.to].fill(converted.tree)
	if err != nil || len(Differences(converted.tree, filled.tree)) == 0 {
		return
	}
	c.report.Edits++
	returned, ok := c.convertBare(filled.tree, e.from)
	if !ok {
		return
	}
	for _, d := range Differences(c.resource().Without(e.t.start.tree), returned) {
		if d.Before != "" && !e.differsAtRest(d) {
			c.recordEdit(DefaultDiscards, e, d, "changed a label, and the API server filled in the defaults of "+e.to)
		}
	}
}

// differsAtRest reports whether a rule drops the field, or it is lost, without an edit.
func (e *edited) differsAtRest(d Difference) bool {
	return e.atRest.cover(withoutIndexes(d.Path))
}

// tryEdit reports whether the edit is one that a client can make, and whose result can be judged.
func (c *Checker) tryEdit(ctx context.Context, e edited, edit edit) bool {
	changed, err := c.versions[e.to].fill(edit.make())
	if err != nil || len(c.versions[e.to].validate(ctx, changed)) > e.problems() {
		return false
	}
	returned, ok := c.convertBare(changed.tree, e.from)
	bare, bareOK := c.convertBare(c.resource().Without(changed.tree), e.from)
	before, beforeOK := e.bare()
	if !ok || !bareOK || !beforeOK {
		return false // the schema or the size of the object forbids the edit
	}
	start := c.resource().Without(e.t.start.tree)
	expected, ok := withMoved(start, before, bare)
	bareExpected, bareOK := withMoved(before, before, bare)
	if !ok || !bareOK {
		return false
	}
	computed := pathsOf(Differences(bareExpected, bare)...)
	var discarded []Difference
	for _, d := range Differences(expected, returned) {
		if !e.differsAtRest(d) && !computed.cover(d.Path) {
			discarded = append(discarded, d)
		}
	}
	for _, d := range c.compatible(e, changed, expected, returned, discarded) {
		c.recordEdit(EditDiscards, e, d, edit.text)
	}
	c.readAgain(e, changed, edit)
	return true
}

// readAgain records what a client does not read as it has written it, because of preserved data.
func (c *Checker) readAgain(e edited, changed value, edit edit) {
	written := c.resource().Without(changed.tree)
	undone := c.changedByStoring(e, changed.tree, written)
	if len(undone) == 0 {
		return
	}
	bare := pathsOf(c.changedByStoring(e, written, written)...)
	for _, d := range undone {
		if !bare.cover(d.Path) && !e.restless().cover(d.Path) {
			c.recordEdit(EditUndone, e, d, edit.text)
		}
	}
}

// changedByStoring returns in what an object differs from what was written once it has been stored at the first version,
// and is read.
func (c *Checker) changedByStoring(e edited, object, written any) []Difference {
	stored, err := c.converter.Convert(nil, preserved.Encode(object), e.from)
	if err != nil {
		return nil
	}
	read, ok := c.convertFilled(stored, e.to)
	if !ok {
		return nil
	}
	return Differences(written, read)
}

// compatible returns those of the differences that could have come back: without them, the object is the
// same at the other version. Others contradict the edit there.
func (c *Checker) compatible(e edited, changed value, expected, returned any, found []Difference) (kept []Difference) {
	shown := func(of ...Difference) []Difference {
		tree := withBefore("", expected, returned, pathsOf(of...))
		there, ok := c.convertFilled(preserved.Encode(tree), e.to)
		if !ok {
			return nil
		}
		return Differences(there, c.resource().Without(changed.tree))
	}
	if len(found) == 0 {
		return nil
	}
	without := map[Difference]bool{}
	for _, d := range shown() {
		without[d] = true
	}
	contradicts := func(of ...Difference) bool {
		return slices.ContainsFunc(shown(of...), func(d Difference) bool { return !without[d] })
	}
	if !contradicts(found...) {
		return found
	}
	return slices.DeleteFunc(slices.Clone(found), func(d Difference) bool { return contradicts(d) })
}

// withBefore returns after with the values that before has at some of the paths where they differ.
func withBefore(path string, before, after any, at paths) any {
	if at[path] {
		return before
	}
	switch after := after.(type) {
	case map[string]any:
		if before, ok := before.(map[string]any); ok {
			return membersBefore(path, before, after, at)
		}
	case []any:
		if before, ok := before.([]any); ok {
			return elementsBefore(path, before, after, at)
		}
	}
	return after
}

func membersBefore(path string, before, after map[string]any, at paths) any {
	members := maps.Clone(after)
	for name := range after {
		if _, was := before[name]; !was && at[path+conversion.Path{name}.String()] {
			delete(members, name)
		}
	}
	for name, was := range before {
		below := path + conversion.Path{name}.String()
		is, stays := after[name]
		switch {
		case stays:
			members[name] = withBefore(below, was, is, at)
		case at[below]:
			members[name] = was
		}
	}
	return members
}

func elementsBefore(path string, before, after []any, at paths) any {
	elements := slices.Clone(after)
	for i := range max(len(before), len(after)) {
		below := path + "[" + strconv.Itoa(i) + "]"
		chosen := at[below]
		switch {
		case i < len(before) && i < len(after):
			elements[i] = withBefore(below, before[i], after[i], at)
		case i < len(before) && chosen:
			elements = append(elements, before[i])
		case i >= len(before) && chosen:
			return elements[:i]
		}
	}
	return elements
}

func (c *Checker) recordEdit(kind Kind, e edited, d Difference, text string) {
	c.tally.record(kind, e.from, e.to, Example{Object: e.t.name, Path: d.Path, Before: shorten(d.Before), After: shorten(d.After), Edit: text})
}

// convertBare converts an edited object, and returns the result without preserved data.
func (c *Checker) convertBare(tree any, to string) (any, bool) {
	return c.convertText(preserved.Encode(tree), to)
}

// convertFilled is convertText with the defaults of the version.
func (c *Checker) convertFilled(text []byte, to string) (any, bool) {
	bare, ok := c.convertText(text, to)
	if !ok {
		return nil, false
	}
	x, err := c.versions[to].fill(bare)
	return x.tree, err == nil
}

func (c *Checker) convertText(text []byte, to string) (any, bool) {
	converted, err := c.converter.Convert(nil, text, to)
	if err != nil {
		return nil, false
	}
	x, _, err := c.versions[to].accept(converted)
	return c.resource().Without(x.tree), err == nil
}

// paths are those of fields.
type paths map[string]bool

func pathsOf(found ...Difference) paths {
	all := paths{}
	for _, d := range found {
		all[d.Path] = true
	}
	return all
}

// cover reports whether a path is one of them, or goes on below one.
func (p paths) cover(path string) bool {
	for i := range path {
		if (path[i] == '.' || path[i] == '[') && p[path[:i]] {
			return true
		}
	}
	return p[path]
}

// withMoved returns x with the element inserted or removed that was inserted in or removed from
// before, where the result is after. It fails if the elements of x are others.
func withMoved(x, before, after any) (any, bool) {
	switch before := before.(type) {
	case map[string]any:
		return membersMoved(x, before, after)
	case []any:
		elements, isList := x.([]any)
		later, wasList := after.([]any)
		switch {
		case !isList || !wasList:
			return x, true
		case len(elements) != len(before) && len(later) == len(before)-1:
			return withoutElement(elements, before[firstOther(before, later)])
		case len(elements) != len(before):
			return x, len(later) == len(before)
		case len(later) == len(before):
			return elementsMoved(elements, before, later)
		case len(later) == len(before)-1:
			i := firstOther(before, later)
			return slices.Delete(slices.Clone(elements), i, i+1), len(Differences(slices.Delete(slices.Clone(before), i, i+1), later)) == 0
		case len(later) == len(before)+1:
			i := firstOther(later, before)
			return slices.Insert(slices.Clone(elements), i, later[i]), len(Differences(slices.Delete(slices.Clone(later), i, i+1), before)) == 0
		}
		return x, false
	}
	return x, true
}

// withoutElement returns a list without its only element that is equal to another one.
func withoutElement(list []any, element any) (any, bool) {
	left := slices.DeleteFunc(slices.Clone(list), func(of any) bool { return len(Differences(of, element)) == 0 })
	return left, len(left) == len(list)-1
}

func membersMoved(x any, before map[string]any, after any) (any, bool) {
	members, isObject := x.(map[string]any)
	later, wasObject := after.(map[string]any)
	if !isObject || !wasObject {
		return x, true
	}
	moved := maps.Clone(members)
	for name, was := range before {
		member, has := members[name]
		is, stays := later[name]
		if !has || !stays {
			continue
		}
		var ok bool
		if moved[name], ok = withMoved(member, was, is); !ok {
			return x, false
		}
	}
	for name, is := range later {
		list, isList := is.([]any)
		if _, was := before[name]; was || !isList {
			continue
		}
		elements, _ := members[name].([]any)
		moved[name] = append(slices.Clone(elements), list...)
	}
	return moved, true
}

func elementsMoved(elements, before, after []any) (any, bool) {
	moved := slices.Clone(elements)
	for i := range elements {
		var ok bool
		if moved[i], ok = withMoved(elements[i], before[i], after[i]); !ok {
			return elements, false
		}
	}
	return moved, true
}

// firstOther returns the index of the first element of a list that a shorter one does not have there.
func firstOther(longer, shorter []any) int {
	for i := range shorter {
		if len(Differences(longer[i], shorter[i])) > 0 {
			return i
		}
	}
	return len(shorter)
}

// pathsAtRest are the fields that come back changed without any edit, with [*] for elements.
func (c *Checker) pathsAtRest(t testObject, returned value) paths {
	all := paths{}
	for _, d := range c.compare(t, returned) {
		all[withoutIndexes(d.Path)] = true
	}
	return all
}
