// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
)

// outcome is what rules do to the object of one observation.
type outcome struct {
	*observation
	// right and wrong are the values of each rule, and an example.
	right, wrong map[*hypothesis]string
	differ       map[spot]difference
	equivalent   map[spot]difference
}

type difference struct {
	owner         *hypothesis
	mine, theirs  string
	wasThereFirst bool
}

func compare(o *observation, ours entries, owners map[*field]*hypothesis, pairs *pairs) *outcome {
	found := &outcome{o, map[*hypothesis]string{}, map[*hypothesis]string{}, map[spot]difference{}, map[spot]difference{}}
	inside := map[*hypothesis]string{}
	places := maps.Clone(ours)
	maps.Copy(places, o.out)
	for _, at := range sortedSpots(maps.Keys(places)) {
		mine, predicted := ours[at]
		theirs, observed := o.out[at]
		h := ownerOf(at.field, owners)
		// The other version has nothing that says false or 0, so a client or a converter wrote it.
		isWritten := o.isPair() && !predicted && owners[at.field] == nil && pairs.partner[at.field] == nil && (theirs == "false" || theirs == "0")
		switch {
		case predicted && observed && sameValue(mine, theirs):
			for h := h; h != nil && !o.isNothing(at.field, mine); h = outerOf(h, owners) {
				found.right[h] += mine
			}
		case o.isPair() && !predicted && ours.areFilled(at, theirs): // objects that were read have the defaults of the schema
		case !isWritten && (!predicted || o.isNothing(at.field, mine)) && (!observed || o.isNothing(at.field, theirs)), predicted && observed && sameNotation(mine, theirs):
			found.equivalent[at] = difference{h, mine, theirs, false}
		default:
			example := fmt.Sprintf("%s is %s, not %s", at.field, orNone(theirs), orNone(mine))
			base, there := o.base[at]
			switch {
			case h == nil, !predicted && observed && base == theirs, isBeside(at.field, h, pairs): // what the converter always writes refutes no rule
			case isInside(at.field, h):
				inside[h] = example
			default:
				found.wrong[h] = example
			}
			found.differ[at] = difference{h, mine, theirs, there == observed && base == theirs}
		}
	}
	for h, example := range inside {
		if found.right[h] == "" {
			found.wrong[h] = example
		}
	}
	return found
}

// join judges a pair, of which either object may have been converted from the other, and reports whether the rules give
// one of them exactly. What they do not give in the other direction may have been preserved. So each rule has to be right
// in one direction, wherever it applies. It counts once.
func (o *outcome) join(other *outcome) (exact bool) {
	exact = len(o.differ) == 0 || len(other.differ) == 0
	for h := range maps.Clone(o.wrong) {
		if other.wrong[h] == "" {
			o.forget(h)
		}
		delete(other.wrong, h)
	}
	for h := range maps.Clone(other.wrong) {
		other.forget(h)
	}
	maps.DeleteFunc(other.right, func(h *hypothesis, _ string) bool { return o.right[h]+o.wrong[h] != "" })
	if exact {
		o.differ, other.differ = nil, nil
	}
	return exact
}

// forget removes what a rule gives.
func (o *outcome) forget(h *hypothesis) {
	delete(o.wrong, h)
	delete(o.right, h)
	maps.DeleteFunc(o.differ, func(_ spot, d difference) bool { return d.owner == h })
}

func (t *trial) record(o *outcome) {
	for h, example := range o.wrong {
		t.verdicts[h].wrong++
		t.verdicts[h].example = example
	}
	for h, text := range o.right {
		if o.wrong[h] == "" {
			t.verdicts[h].confirmed++
			t.verdicts[h].values[text] = true
		}
	}
	for _, at := range sortedSpots(maps.Keys(o.equivalent)) {
		d := o.equivalent[at]
		note(t.equivalent, spotOf{o.toHub, at.field}, d.mine, d.theirs)
	}
	for _, at := range sortedSpots(maps.Keys(o.differ)) {
		d := o.differ[at]
		note(t.differ, spotOf{o.toHub, at.field}, d.mine, d.theirs)
		if o.changed == nil || d.wasThereFirst {
			continue
		}
		if t.unexplained[o.changed] == nil {
			t.unexplained[o.changed] = map[*field]bool{}
		}
		t.unexplained[o.changed][at.field] = true
	}
}

// isInside reports whether a field is in an object, list or map that a rule moves: a difference in it does
// not refute the move if something else in it is right.
func isInside(f *field, h *hypothesis) bool {
	return h.rule.Move != nil && f != h.spoke[0] && f != h.hub[0]
}

// isBeside reports whether only one version has a field in an object, list or map that a rule gives another name: the rule
// says nothing about it.
func isBeside(f *field, h *hypothesis, pairs *pairs) bool {
	return isInside(f, h) && pairs.renamed[h.spoke[0]] == h.hub[0] && pairs.partner[f] == nil
}

// ownersOf returns the rule of each field that rules name.
func ownersOf(rules []*hypothesis) map[*field]*hypothesis {
	owners := map[*field]*hypothesis{}
	for _, h := range rules {
		for _, f := range slices.Concat(h.spoke, h.hub) {
			owners[f] = h
		}
	}
	return owners
}

// ownerOf returns the innermost rule around a field.
func ownerOf(f *field, owners map[*field]*hypothesis) *hypothesis {
	for at := f; at != nil; at = at.parent {
		if h := owners[at]; h != nil {
			return h
		}
	}
	return nil
}

// outerOf returns the rule that moves the object, list or map around the fields of a rule, nil if there is none.
func outerOf(h *hypothesis, owners map[*field]*hypothesis) *hypothesis {
	return ownerOf(slices.Concat(h.spoke, h.hub)[0].parent, owners)
}

func note(into map[spotOf]*Difference, at spotOf, mine, theirs string) {
	d := into[at]
	if d == nil {
		d = &Difference{Path: at.field.String(), Draft: orNone(mine), Observed: orNone(theirs), always: mine == ""}
		into[at] = d
	}
	d.always = d.always && mine == "" && d.Observed == orNone(theirs)
	d.Count++
}

func orNone(text string) string {
	if text == "" {
		return "nothing"
	}
	if len(text) > 100 {
		text = strings.ToValidUTF8(text[:100], "") + "…"
	}
	return text
}

// sameNotation reports whether two values are the same number, duration or quantity in other notations: converters
// in Go read a value and write it again.
func sameNotation(a, b string) bool {
	left, errLeft := preserved.Decode([]byte(a))
	right, errRight := preserved.Decode([]byte(b))
	return errLeft == nil && errRight == nil && alikeInNotation(left, right)
}

func alikeInNotation(a, b any) bool {
	switch left := a.(type) {
	case map[string]any:
		right, isObject := b.(map[string]any)
		return isObject && maps.EqualFunc(left, right, alikeInNotation)
	case []any:
		right, isList := b.([]any)
		return isList && slices.EqualFunc(left, right, alikeInNotation)
	}
	for _, form := range formsOf(string(preserved.Encode(a))) {
		for _, other := range formsOf(string(preserved.Encode(b))) {
			if form.text == other.text && (form.as == other.as || form.as == "" || other.as == "") {
				return true
			}
		}
	}
	return false
}

// sameValue reports whether two texts are the same JSON value, also if converters write it in another way.
func sameValue(a, b string) bool {
	if a == b {
		return true
	}
	left, errLeft := preserved.Decode([]byte(a))
	right, errRight := preserved.Decode([]byte(b))
	return errLeft == nil && errRight == nil && string(preserved.Encode(left)) == string(preserved.Encode(right))
}
