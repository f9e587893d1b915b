// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// convert writes the images of x's values to y. It returns the values that would not convert back:
// alone if y has no image of them, besides otherwise.
func (t *transfer) convert(x any, y map[string]any, s *preserved, at string) (alone, besides *preserved) {
	values := t.values(x)
	image := t.restored(t.image(values, x, s, at), values, x, s, at)
	for i, value := range image {
		if value != none {
			put(y, t.to[i].Path, clone(value)) // entries may be merged into the value
		}
	}
	keep := newPreserved()
	switch {
	case !anyPresent(values):
		return keep, newPreserved() // direction.preserveMissing compares with the way back
	case !anyPresent(image) && t.returns(values, x, s, at):
		for _, f := range t.from {
			keep.returning = append(keep.returning, at+f.Path[:f.Anchor].pointer())
		}
		return keep, newPreserved()
	case anyPresent(image) && Equal(t.backward(image), values):
		return keep, newPreserved()
	}
	var images any
	if anyPresent(image) {
		images = pointers(t.to)
	}
	for i, value := range values {
		pointer := at + t.from[i].Path.pointer()
		_, isList := value.([]any)
		switch {
		case value == none:
		case t.order != nil && isList && anyPresent(image) && t.order(value) != none:
			keep.put(pointer, anOrder, t.order(value), images)
		default:
			keep.put(pointer, aValue, value, images)
		}
	}
	if anyPresent(image) {
		return newPreserved(), keep
	}
	for _, f := range t.from {
		keep.anchor(at, f.Path, aValue, f.Anchor)
	}
	return keep, newPreserved()
}

// taken returns the fields of y for which the values of x have no image.
func (t *transfer) taken(x any, s *preserved, at string) (fields []taken) {
	values := t.values(x)
	if !anyPresent(values) {
		return nil
	}
	for i, value := range t.restored(t.forward(values), values, x, s, at) {
		if value == none {
			fields = append(fields, taken{at + t.to[i].Path.pointer(), nil})
		}
	}
	return fields
}

// values returns the values of x.
func (t *transfer) values(x any) []any {
	values := make([]any, len(t.from))
	for i, f := range t.from {
		values[i] = find(x, f.Path)
	}
	return values
}

// image returns what the values convert to. If there are none, a rule may convert nothing to a value,
// in objects that exist, and unless a value of x is itself preserved.
func (t *transfer) image(values []any, x any, s *preserved, at string) []any {
	isPreserved := s != nil && s.leaving.blocksFilling(t.from, at)
	if !anyPresent(values) && (!t.whenMissing || !haveAnchors(x, t.to) || isPreserved) {
		return nothing(t.to)
	}
	return t.forward(values)
}

// returns reports whether the way back converts nothing to the values of x. It does not if a value of y
// stays preserved.
func (t *transfer) returns(values []any, x any, s *preserved, at string) bool {
	return t.whenMissing && haveAnchors(x, t.from) && !s.blocksFilling(t.to, at) && Equal(t.backward(nothing(t.to)), values)
}

// haveAnchors reports whether x has all objects at the anchors of fields.
func haveAnchors(x any, fields []field) bool {
	return !slices.ContainsFunc(fields, func(f field) bool { return !isObject(find(x, f.Path[:f.Anchor])) })
}

// nothing returns a missing value for each field.
func nothing(fields []field) []any { return slices.Repeat([]any{none}, len(fields)) }

// wasImage reports whether one of the fields of x was an image of the preserved value.
func (t *transfer) wasImage(images any) bool {
	list, _ := images.([]any)
	return slices.ContainsFunc(t.from, func(f field) bool { return slices.Contains(list, any(f.image)) })
}

// pointers returns the pointers of fields within their scope, with the names of their version.
func pointers(fields []field) any {
	list := []any{}
	for _, f := range fields {
		list = append(list, f.image)
	}
	return list
}

// restored returns the preserved values if they convert to the current values of x, and image
// otherwise. If x has no values, the anchors must exist, and the preserved values must not have had
// images that are gone now. If some do not fit, and the others do not convert to the values of x without
// them, all stay preserved.
func (t *transfer) restored(image, values []any, x any, s *preserved, at string) []any {
	image = t.arranged(image, s, at)
	old, whole := nothing(t.to), nothing(t.to)
	var entries []*entry
	there, imaged, misfits := anyPresent(values), false, false
	absent := t.wasAbsent(there, x, s, at)
	for i := range t.to {
		f := &t.to[i]
		e := s.find(at+f.Path.pointer(), aValue)
		if e == nil || !there && !isObject(find(x, f.Path[:f.Anchor])) {
			continue
		}
		whole[i], entries = e.value, append(entries, e)
		if !f.accepts(e.value, s) {
			e.state, misfits = refused, true
			absent = absent || !there
			continue
		}
		e.state, old[i] = done, clone(e.value)
		if t.wasImage(e.images) {
			imaged = true
			if !there && s.leaving.preservesAny(t.from, at) {
				e.state = deferred
			}
		}
	}
	if anyPresent(old) && (!there && !imaged || Equal(t.backward(old), values)) {
		return old
	}
	if misfits && there && anyPresent(old) && Equal(t.backward(whole), values) {
		for _, e := range entries {
			e.state = deferred
		}
		return image
	}
	if absent && (!there || Equal(t.backward(nothing(t.to)), values)) {
		return nothing(t.to)
	}
	if t.patch != nil && imaged && old[0] != none && image[0] != none {
		return []any{t.patch(image[0], old[0])}
	}
	return image
}

// wasAbsent reports whether it is preserved that y had none of the values.
func (t *transfer) wasAbsent(there bool, x any, s *preserved, at string) bool {
	first := t.to[0]
	e := s.find(at+first.Path.pointer(), anAbsence)
	if !t.whenMissing || e == nil || !there && !isObject(find(x, first.Path[:first.Anchor])) {
		return false
	}
	e.state = done
	return true
}

// arranged returns a list in its preserved order.
func (t *transfer) arranged(image []any, s *preserved, at string) []any {
	if t.arrange == nil {
		return image
	}
	if e := s.find(at+t.to[0].Path.pointer(), anOrder); e != nil {
		e.state = done
		image = []any{t.arrange(image[0], e.value)}
	}
	return image
}

// anyPresent reports whether there is any value.
func anyPresent(values []any) bool {
	return slices.ContainsFunc(values, func(value any) bool { return value != none })
}

// transfer is an exchange in one direction.
type transfer struct {
	from, to []field
	// forward computes the values at to from those at from, and backward the reverse. A missing
	// value is none.
	forward, backward func(values []any) []any
	// order returns the order of a list that is a map in y, none if that is not all that y lacks;
	// arrange restores it. patch gives a list or map of objects what the preserved one has beyond
	// the values of x.
	order   func(list any) any
	arrange func(list, order any) any
	patch   func(value, preserved any) any
	// whenMissing is set if forward and backward may give values for no values.
	whenMissing bool
}

// transfers returns both directions of an exchange, for objects with this metadata. For a fragment of an
// object, no rule converts nothing to a value.
func transfers(e *exchange, isWhole bool, metadata any) (toHub, toSpoke transfer) {
	same := func(values []any) []any { return values }
	toHub = transfer{from: e.Spoke, to: e.Hub, forward: same, backward: same}
	switch {
	case e.Format != nil:
		f := template{e.Format.Texts, e.Format.Integer}
		toHub.forward, toHub.backward = f.parse, f.print
	case e.Table != nil:
		toHub.forward, toHub.backward = single(translate(e.Table, 0, 1)), single(translate(e.Table, 1, 0))
	case e.Literals != nil:
		toHub.forward, toHub.backward = single(lookUp(e.Literals, 0, 1, e.Closed)), single(lookUp(e.Literals, 1, 0, e.Closed))
	case e.Wrap != nil && e.Wrap.Field != "":
		toHub.forward, toHub.backward = ordered(e.Wrap.Hub, single(wrapping(e.Wrap.Field).wrap), single(wrapping(e.Wrap.Field).unwrap))
	case e.Wrap != nil:
		toHub.forward, toHub.backward = ordered(e.Wrap.Hub, single(wrap), single(unwrap))
	case e.Cast != nil:
		write, read := casts(e, isWhole)
		toHub.forward, toHub.backward = ordered(e.Cast.Hub, single(write), single(read))
	case e.Common != nil:
		shared := single(func(value any) any {
			if e.Common.fits(value) {
				return value
			}
			return none
		})
		toHub.forward, toHub.backward = shared, shared
	case e.CEL != nil:
		toHub.whenMissing = e.CEL.WhenMissing
		always := isWhole && toHub.whenMissing
		toHub.forward, toHub.backward = evaluate(e.CEL.Spoke, e.CEL.Hub, e.CEL.Bounds, always, metadata), evaluate(e.CEL.Hub, e.CEL.Spoke, e.CEL.Bounds, always, metadata)
	}
	toSpoke = transfer{from: e.Hub, to: e.Spoke, forward: toHub.backward, backward: toHub.forward, whenMissing: toHub.whenMissing}
	if e.Wrap != nil && e.Wrap.Field != "" {
		toHub.patch, toSpoke.patch = ordered(e.Wrap.Hub, wrapping(e.Wrap.Field).patch, nil)
	}
	if e.Cast != nil && e.Cast.Document != "" {
		toHub.patch, toSpoke.patch = ordered(e.Cast.Hub, documentOf(e, isWhole).patch, nil)
	}
	if e.Index != nil {
		i := index{e.Index.Key, e.Index.Integer, e.Index.Value}
		list := transfer{forward: single(i.toMap), backward: single(i.toList), order: i.order}
		object := transfer{forward: single(i.toList), backward: single(i.toMap), arrange: i.arrange}
		if i.value != "" {
			object.patch = i.patch
		}
		toHub, toSpoke = ordered(e.Index.Hub, object, list)
		toHub.from, toHub.to, toSpoke.from, toSpoke.to = e.Spoke, e.Hub, e.Hub, e.Spoke
	}
	return toHub.restricted(), toSpoke.restricted()
}

// casts returns what writes a string from a value, and what reads the value in it.
func casts(e *exchange, isWhole bool) (write, read func(any) any) {
	switch c := e.Cast; {
	case c.Seconds:
		return printDuration(time.Second), readDuration(time.Second)
	case c.Milliseconds:
		return printDuration(time.Millisecond), readDuration(time.Millisecond)
	case c.Number:
		return printNumber, readNumber
	case c.Quantity != "":
		return printQuantity(c.Quantity), readQuantity(c.Quantity)
	case c.Boolean:
		return printBoolean, readBoolean
	case c.Timestamp:
		return printTimestamp, readTimestamp
	case c.Document != "":
		d := documentOf(e, isWhole)
		return d.print, d.read
	case c.Separator != "":
		return join(c.Separator), split(c.Separator)
	}
	return printInteger, readInteger
}

// restricted returns the transfer without values that the API server would refuse.
func (t transfer) restricted() transfer {
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

// allows reports whether the field can have a value: a label must be a valid label value, and an
// annotation a text.
func (f *field) allows(value any) bool {
	text, isText := value.(string)
	return (!f.Text || isText) && (!f.Label || len(validation.IsValidLabelValue(text)) == 0)
}

// accepts reports whether a preserved value may come back to the field.
func (f *field) accepts(value any, s *preserved) bool {
	return f.allows(value) && s.accepts(f.schema, value)
}

// ordered returns first the one that leads to the hub: makesHub if ofHub is set, makesSpoke
// otherwise.
func ordered[T any](ofHub bool, makesHub, makesSpoke T) (toHub, toSpoke T) {
	if ofHub {
		return makesHub, makesSpoke
	}
	return makesSpoke, makesHub
}

// single lifts a function of one value. It passes none and null through.
func single(f func(any) any) func([]any) []any {
	return func(values []any) []any {
		if values[0] == none || values[0] == nil {
			return values
		}
		return []any{f(values[0])}
	}
}

// removeEmptied removes an object from y if all values that it had in x are elsewhere in y. The
// object stays if preserved data, also of a third version, belongs into it.
func (o *sharedObject) removeEmptied(x any, y map[string]any, s, keep *preserved, at string) {
	pointer := at + o.path.pointer()
	now := find(y, o.path)
	if !isObject(now) || !hasNoMembers(now) || !o.holdsOnlyShared(find(x, o.path), o.path) || keep.preservesValueBelow(pointer) || keep.returnsIn(pointer) || s.othersPreserveBelow(pointer) {
		return
	}
	remove(y, o.path)
	if e := s.find(pointer, aValue); e != nil && hasNoMembers(e.value) {
		e.state = done
		put(y, o.path, clone(e.value))
	}
}

// holdsOnlyShared reports whether an object is not empty, and all of its values are elsewhere in y.
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
