// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
)

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
func (f *field) accepts(value any, s *kept) bool {
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
