// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"slices"

	"github.com/conversion-operator/conversion-operator/internal/engine/preserve"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// Spokes may share a field that the hub lacks. A value that one of them has preserved is the value of all: the next one to
// which the object is converted takes it, and one that has a value of its own discards it.

// sharedField is a field of a spoke that another spoke has, too, and the hub lacks. The path is where the hub would have it.
type sharedField struct {
	path    Path
	sibling *version
}

// sharedFields returns those of a scope, to which at leads in the hub.
func (c *Converter) sharedFields(s *Scope, at Path) (all []sharedField) {
	for i := range s.OnlySpoke {
		leaf := &s.OnlySpoke[i]
		for _, sibling := range leaf.Siblings {
			if other := c.version(sibling); other != nil {
				all = append(all, sharedField{slices.Concat(at, leaf.Path), other})
			}
		}
	}
	for i := range s.Collections {
		collection := &s.Collections[i]
		all = append(all, c.sharedFields(&collection.Scope, collection.Inside(true, at))...)
	}
	return all
}

// moved returns the address in one version for that in another one, and whether it leads to the field or below it.
func (f sharedField) moved(at preserve.Address, from, to *version) (moved preserve.Address, is bool) {
	inHub, known := from.rules.counterpart(at, true)
	if !known || !inHub.IsBelow(f.path, Each) {
		return nil, false
	}
	return to.rules.counterpart(inHub, false)
}

// counterpart returns where what is at an address of the spoke is in the hub, or the reverse, as far as rules move the lists,
// maps and objects around it. It is not known if rules move something else there, or to another form.
func (s *Scope) counterpart(at preserve.Address, toHub bool) (moved preserve.Address, known bool) {
	var around *Collection // the innermost one: another may be for an object around it
	for i := range s.Collections {
		c := &s.Collections[i]
		if from := c.At(!toHub); at.IsBelow(from, Each) && (around == nil || len(from) > len(around.At(!toHub))) {
			around = c
		}
	}
	if around != nil {
		if around.SpokeForm != around.HubForm {
			return nil, false
		}
		moved = preserve.AddressOf(around.At(toHub))
		rest := at[len(around.At(!toHub)):]
		if !around.IsOne() && len(rest) > 0 {
			moved, rest = append(moved, rest[0].Rename(around.Scope.keyName(toHub))), rest[1:]
		}
		inside, known := around.Scope.counterpart(rest, toHub)
		return append(moved, inside...), known
	}
	isTaken := slices.ContainsFunc(s.Collections, func(c Collection) bool { return at.IsBelow(c.At(toHub), Each) })
	return at, !isTaken
}

// IsTaken reports whether rules move something else to a path that a field has in the spoke.
func (s *Scope) IsTaken(path Path) bool {
	return slices.ContainsFunc(s.Collections, func(c Collection) bool { return path.HasPrefix(c.Hub) && !path.HasPrefix(c.Spoke) })
}

// keyName returns the function from names of keys to those that a rule moves them to.
func (s *Scope) keyName(toHub bool) func(string) string {
	return func(name string) string {
		for _, move := range s.Moves {
			if from, to := ends(toHub, move.Spoke, move.Hub); len(from) == 1 && len(to) == 1 && from[0] == name {
				return to[0]
			}
		}
		return name
	}
}

// hasValueAt reports whether entries have a value at an address.
func hasValueAt(entries []preserve.Entry, at preserve.Address) bool {
	return slices.ContainsFunc(entries, func(e preserve.Entry) bool { return e.Kind == preserve.Value && e.At.Is(at) })
}

// adopt moves the entries of fields that a spoke shares with other spokes to that spoke. Its own entries win.
func (r *conversionRun) adopt(to *version) {
	own := r.data[to.index]
	for _, field := range to.shared {
		of := r.data[field.sibling.index]
		var rest []preserve.Entry
		for _, e := range of.Entries {
			part, left := r.partOf(e, field, field.sibling)
			at, is := field.moved(part.At, field.sibling, to)
			if !is || e.Kind != preserve.Value {
				rest = append(rest, e)
				continue
			}
			part.At = at
			own.Entries = r.withPart(own.Entries, part)
			if left.Value != nil {
				rest = append(rest, left)
			}
		}
		of.Entries = rest
		r.data[field.sibling.index] = of
	}
	r.data[to.index] = own
}

// withPart adds the value of a shared field to entries that have none: to that of an object around it, which may require the
// field, if there is one.
func (r *conversionRun) withPart(entries []preserve.Entry, part preserve.Entry) []preserve.Entry {
	for i, e := range entries {
		inside, is := part.At.Inside(e.At)
		switch {
		case e.Kind != preserve.Value || !is:
			continue
		case len(inside) > 0 && e.Value.Is(tree.Object) && e.Value.At(inside) == nil:
			entries = slices.Clone(entries)
			entries[i].Value = r.WithAt(e.Value, inside, part.Value)
		}
		return entries
	}
	return append(slices.Clip(entries), part)
}

// partOf returns the part of an entry that is the value of a shared field, and the rest of it: nothing, unless the entry
// is of an object around the field.
func (r *conversionRun) partOf(e preserve.Entry, field sharedField, from *version) (part, left preserve.Entry) {
	around, known := from.rules.counterpart(e.At, true)
	if !known || e.Kind != preserve.Value || len(around) >= len(field.path) || !around.IsBelow(field.path[:len(around)], Each) || slices.Contains(field.path[len(around):], Each) {
		return e, preserve.Entry{}
	}
	inside := field.path[len(around):]
	value := e.Value.At(inside)
	if value == nil {
		return e, preserve.Entry{}
	}
	part, left = e, e
	part.At, part.Value = append(slices.Clip(e.At), preserve.AddressOf(inside)...), value
	left.Value = r.WithAt(e.Value, inside, nil)
	return part, left
}

// discardShared removes the entries of other spokes for fields that a spoke shares with them, and of which it has just
// preserved a value.
func (r *conversionRun) discardShared(from *version) {
	for _, field := range from.shared {
		of := r.data[field.sibling.index]
		of.Entries = slices.DeleteFunc(slices.Clone(of.Entries), func(e preserve.Entry) bool {
			at, is := field.moved(e.At, field.sibling, from)
			return is && e.Kind == preserve.Value && hasValueAt(r.data[from.index].Entries, at)
		})
		r.data[field.sibling.index] = of
	}
}

// moveToSiblings moves an entry that is removed from a version to the first other version that shares the field, unless one
// of them already has a value: that one wins. It returns the version whose data has changed, nil if none has.
func (v *version) moveToSiblings(data preservedData, e preserve.Entry) *version {
	if e.Kind != preserve.Value {
		return nil
	}
	var first *version
	var place preserve.Address
	for _, field := range v.shared {
		at, is := field.moved(e.At, v, field.sibling)
		switch {
		case !is:
		case hasValueAt(data[field.sibling.index].Entries, at):
			return nil
		case first == nil:
			first, place = field.sibling, at
		}
	}
	if first != nil {
		of := data[first.index]
		e.At = place
		of.Entries = append(slices.Clip(of.Entries), e)
		data[first.index] = of
	}
	return first
}
