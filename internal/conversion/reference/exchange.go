// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
)

// convert writes to y what the values of x are there. What would not convert
// back is preserved: alone where y has nothing of it, besides y's values otherwise.
func (t *trade) convert(x any, y map[string]any, s *preserved, at string) (alone, besides *preserved) {
	values := make([]any, len(t.from))
	for i, f := range t.from {
		values[i] = find(x, f.Path)
	}
	image := t.restored(t.forward(values), values, x, s, at)
	for i, value := range image {
		if value != none {
			put(y, t.to[i].Path, clone(value)) // entries may be merged into it
		}
	}
	if Equal(t.backward(image), values) {
		return newPreserved(), newPreserved()
	}
	keep := newPreserved()
	var images any
	if some(image) {
		images = pointers(t.to)
	}
	for i, value := range values {
		pointer := at + t.from[i].Path.pointer()
		_, isList := value.([]any)
		switch {
		case value == none:
		case t.order != nil && isList && some(image):
			keep.put(pointer, anOrder, t.order(value), images)
		default:
			keep.put(pointer, aValue, value, images)
		}
	}
	if some(image) {
		return newPreserved(), keep
	}
	for _, f := range t.from {
		keep.anchor(at, f.Path, aValue, f.Anchor)
	}
	return keep, newPreserved()
}

// taken are the fields without an image of the values of x.
func (t *trade) taken(x any, s *preserved, at string) (fields []taken) {
	values := make([]any, len(t.from))
	for i, f := range t.from {
		values[i] = find(x, f.Path)
	}
	if !some(values) {
		return nil
	}
	for i, value := range t.restored(t.forward(values), values, x, s, at) {
		if value == none {
			fields = append(fields, taken{at + t.to[i].Path.pointer(), nil})
		}
	}
	return fields
}

// isImage reports whether one of the fields of x was an image of a value.
func (t *trade) isImage(images any) bool {
	list, _ := images.([]any)
	return slices.ContainsFunc(t.from, func(f field) bool { return slices.Contains(list, any(f.Path.pointer())) })
}

// pointers are those of fields in their scope.
func pointers(fields []field) any {
	list := []any{}
	for _, f := range fields {
		list = append(list, f.Path.pointer())
	}
	return list
}

// restored is what is preserved, if that converts to the values that are there now,
// and image otherwise. If none are there, the objects above it must be, and the
// values must have had no images that are gone now.
func (t *trade) restored(image, values []any, x any, s *preserved, at string) []any {
	image = t.arranged(image, s, at)
	old := slices.Repeat([]any{none}, len(t.to))
	there, imaged := some(values), false
	for i := range t.to {
		f := &t.to[i]
		e := s.find(at+f.Path.pointer(), aValue)
		switch {
		case e == nil, t.arrange != nil && legacyOrder(e.value) != nil, !there && !isObject(find(x, f.Path[:f.Anchor])):
			continue
		case !f.accepts(e.value, s):
			e.fate = refused
			continue
		}
		e.fate, old[i] = done, clone(e.value)
		if t.isImage(e.images) {
			imaged = true
			if !there && slices.ContainsFunc(t.from, func(f field) bool { return s.leaving.has(at + f.Path.pointer()) }) {
				e.fate = deferred
			}
		}
	}
	if some(old) && (!there && !imaged || Equal(t.backward(old), values)) {
		return old
	}
	return image
}

// arranged is a list in the order that is preserved of it. In format 1 that is
// where a value would be.
func (t *trade) arranged(image []any, s *preserved, at string) []any {
	if t.arrange == nil {
		return image
	}
	pointer := at + t.to[0].Path.pointer()
	if e := s.find(pointer, aValue); e != nil && legacyOrder(e.value) != nil {
		e.fate = done
		image = []any{t.arrange(image[0], legacyOrder(e.value))}
	}
	if e := s.find(pointer, anOrder); e != nil {
		e.fate = done
		image = []any{t.arrange(image[0], e.value)}
	}
	return image
}

// legacyOrder is an order of format 1, or nil: an object that no list can be taken for.
func legacyOrder(value any) any {
	list, isList := find(value, path{"order"}).([]any)
	if !isList || len(value.(map[string]any)) != 1 {
		return nil
	}
	return list
}

// some reports whether there is any value.
func some(values []any) bool {
	return slices.ContainsFunc(values, func(value any) bool { return value != none })
}

// trade is an exchange in one direction.
type trade struct {
	from, to []field
	// forward computes the values at to from those at from, and backward those at
	// from. A value that is missing is none.
	forward, backward func(values []any) []any
	// order is that of a list that is a map in y, and arrange brings it back.
	order   func(list any) any
	arrange func(list, order any) any
}

// trades are both directions of an exchange.
func trades(e *exchange) (toHub, toSpoke trade) {
	same := func(values []any) []any { return values }
	toHub = trade{from: e.Spoke, to: e.Hub, forward: same, backward: same}
	switch {
	case e.Format != nil:
		f := template{e.Format.Texts, e.Format.Integer}
		toHub.forward, toHub.backward = f.parse, f.print
	case e.Table != nil:
		toHub.forward, toHub.backward = single(translate(e.Table, 0, 1)), single(translate(e.Table, 1, 0))
	case e.Wrap != nil:
		toHub.forward, toHub.backward = ordered(e.Wrap.Hub, single(wrap), single(unwrap))
	case e.Cast != nil && e.Cast.Seconds:
		toHub.forward, toHub.backward = ordered(e.Cast.Hub, single(printSeconds), single(readSeconds))
	case e.Common != nil:
		shared := single(func(value any) any {
			if e.Common.fits(value) {
				return value
			}
			return none
		})
		toHub.forward, toHub.backward = shared, shared
	case e.CEL != nil:
		toHub.forward, toHub.backward = evaluate(e.CEL.Spoke, e.CEL.Hub), evaluate(e.CEL.Hub, e.CEL.Spoke)
	case e.Cast != nil:
		toHub.forward, toHub.backward = ordered(e.Cast.Hub, single(printInteger), single(readInteger))
	}
	toSpoke = trade{from: e.Hub, to: e.Spoke, forward: toHub.backward, backward: toHub.forward}
	if e.Index != nil {
		i := index{e.Index.Key, e.Index.Integer}
		list := trade{forward: single(i.toMap), backward: single(i.toList), order: i.order}
		object := trade{forward: single(i.toList), backward: single(i.toMap), arrange: i.arrange}
		toHub, toSpoke = ordered(e.Index.Hub, object, list)
		toHub.from, toHub.to, toSpoke.from, toSpoke.to = e.Spoke, e.Hub, e.Hub, e.Spoke
	}
	return toHub.legal(), toSpoke.legal()
}

// legal is the trade with no values that the API server would refuse.
func (t trade) legal() trade {
	forward, backward := t.forward, t.backward
	t.forward = func(values []any) []any { return allowed(t.to, forward(values)) }
	t.backward = func(values []any) []any { return allowed(t.from, backward(values)) }
	return t
}

func allowed(fields []field, values []any) []any {
	values = slices.Clone(values)
	for i := range values {
		if values[i] != none && (!fields[i].allows(values[i]) || fields[i].NotNull && values[i] == nil) {
			values[i] = none
		}
	}
	return values
}

// allows reports whether there can be a value: a label is a short text, and an
// annotation any text.
func (f *field) allows(value any) bool {
	text, isText := value.(string)
	return (!f.Text || isText) && (!f.Label || len(validation.IsValidLabelValue(text)) == 0)
}

// accepts reports whether a value that is preserved may be that of the field.
func (f *field) accepts(value any, s *preserved) bool {
	return f.allows(value) && s.accepts(f.schema, value)
}

// ordered returns what leads to the hub, where makesHub leads to what the flag
// says that the hub has, and then the other one.
func ordered[T any](ofHub bool, makesHub, makesSpoke T) (toHub, toSpoke T) {
	if ofHub {
		return makesHub, makesSpoke
	}
	return makesSpoke, makesHub
}

// single is a function of one value. No value gives none, and a null a null.
func single(f func(any) any) func([]any) []any {
	return func(values []any) []any {
		if values[0] == none || values[0] == nil {
			return values
		}
		return []any{f(values[0])}
	}
}

// tidy takes an object away that was there in x for values alone that are
// elsewhere in y. One that holds the place of a value that is preserved stays, be it
// of a third version.
func (o *sharedObject) tidy(x any, y map[string]any, s, keep *preserved, at string) {
	pointer := at + o.path.pointer()
	now := find(y, o.path)
	if !isObject(now) || !bare(now) || !o.holdsOnlyShared(find(x, o.path), o.path) || keep.under(pointer) || s.holds(pointer) {
		return
	}
	remove(y, o.path)
	if e := s.find(pointer, aValue); e != nil && bare(e.value) {
		e.fate = done
		put(y, o.path, clone(e.value))
	}
}

// holdsOnlyShared reports whether an object has something, and only what has its place
// elsewhere in y.
func (o *sharedObject) holdsOnlyShared(value any, at path) bool {
	object, _ := value.(map[string]any)
	for name := range object {
		member := append(slices.Clip(at), name)
		leaves := slices.ContainsFunc(o.out, func(p path) bool { return slices.Equal(p, member) })
		holds := slices.ContainsFunc(o.out, func(p path) bool { return p.has(member) })
		if !leaves && (!holds || !o.holdsOnlyShared(object[name], member)) {
			return false
		}
	}
	return len(object) > 0
}
