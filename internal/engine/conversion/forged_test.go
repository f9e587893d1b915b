// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/internal/generate"
)

// FuzzForged writes arbitrary annotations for preserved data, as users can. The result must be an
// object that a client could have written at its version. Forged data may add missing fields, but
// live data must be unchanged there and back.
func FuzzForged(f *testing.F) {
	fuzzWorlds(f, func(t *testing.T, w *world) {
		from, to := w.pair()
		object := decode(t, w.object(from))
		metadata, _ := object["metadata"].(map[string]any)
		if metadata == nil {
			metadata = map[string]any{}
		}
		object["metadata"] = metadata
		delete(metadata, "annotations")
		live := generate.Plain(object)
		annotations := map[string]any{}
		w.forge(t, annotations, from, to)
		w.forge(t, annotations, to, from)
		metadata["annotations"] = annotations
		forged := string(w.Text(object))
		wantAccepted(t, forged, convert(t, w.converter, forged, to), to)
		w.liveStays(t, live, forged, from, to)
	}, oneByOne)
}

// liveStays converts an object with forged annotations there and back, and compares it with the
// same object without them.
//
// There, it has all live data, unless rules compute values from several others, which is counted as
// left out. Data that the annotations added is like an edit, from which a rule may compute another
// value: so on the way back, the object is compared with the one without forged data after that
// edit. A default is not live data, since a rule may have filled it in. If several values convert
// to the same value, any of them may have been preserved.
//
// On the way between two spokes, values that the hub does not allow pass it only if the result fits. If forged data
// does not fit, all of them stay preserved.
func (w *world) liveStays(t testing.TB, live, forged, version, other string) {
	t.Helper()
	there, honest := convert(t, w.converter, forged, other), convert(t, w.converter, live, other)
	where := forged + "\nis at " + other + "\n" + there + "\nwhere the object has"
	if w.count(w.independent()); w.oneToOne() {
		w.wantLive(t, withoutPreserved(withoutServerMetadata(t, honest)), withoutPreserved(withoutServerMetadata(t, there)), where)
	}
	back := convert(t, w.converter, there, version)
	want := convert(t, w.converter, w.withAllPreservedOf(t, there, honest), version)
	if w.holdsBack(t, honest, back, want) {
		w.count("left out: values that the hub does not allow, and that stay preserved")
		return
	}
	if w.excludes() && !haveSameLengths(decode(t, honest), decode(t, there)) {
		w.count("left out: lists with forged elements")
		return
	}
	w.wantLive(t, withoutPreserved(withoutServerMetadata(t, want)), withoutPreserved(withoutServerMetadata(t, back)), where)
}

// excludes reports whether a rule excludes elements.
func (w *world) excludes() bool {
	return slices.ContainsFunc(w.rules.Spokes, func(spoke v1alpha1.Spoke) bool {
		return slices.ContainsFunc(spoke.Rules, func(rule v1alpha1.Rule) bool { return rule.Exclude != nil })
	})
}

// haveSameLengths reports whether the lists that two values have in common have the same lengths.
func haveSameLengths(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		object, _ := b.(map[string]any)
		for name := range a {
			if other, both := object[name]; both && !haveSameLengths(a[name], other) {
				return false
			}
		}
	case []any:
		list, isList := b.([]any)
		if isList && len(a) != len(list) {
			return false
		}
		for i := range list {
			if isList && !haveSameLengths(a[i], list[i]) {
				return false
			}
		}
	}
	return true
}

// holdsBack reports whether an object still preserves a value of the hub that it preserved on the way, without
// forged data, and that the wanted object does not preserve any more.
func (w *world) holdsBack(t testing.TB, between, back, want string) bool {
	t.Helper()
	held, released := w.heldAtHub(t, back), w.heldAtHub(t, want)
	for pointer := range w.heldAtHub(t, between) {
		if held[pointer] && !released[pointer] {
			return true
		}
	}
	return false
}

// heldAtHub returns the pointers of the values that an object preserves of the hub.
func (w *world) heldAtHub(t testing.TB, object string) map[string]bool {
	t.Helper()
	held := map[string]bool{}
	entries, _ := conversion.Entries(textsOf(t, object), w.ruleset.CRD, w.ruleset.Hub)
	for _, e := range entries {
		held[e.Pointer] = true
	}
	return held
}

// wantLive compares all scalars of a value with a value that may have more members. A null may be
// an object, and vice versa: see emptyAsNull.
func (w *world) wantLive(t testing.TB, live, got any, where string) {
	t.Helper()
	if slices.ContainsFunc(w.Values, func(value any) bool { return reflect.DeepEqual(value, live) }) {
		return // a default
	}
	switch live := live.(type) {
	case map[string]any:
		object, _ := got.(map[string]any)
		for name, value := range live {
			w.wantLive(t, value, object[name], where+"."+name)
		}
	case []any:
		list, _ := got.([]any)
		if len(list) < len(live) {
			t.Fatalf("%s: %d elements, want %d", where, len(list), len(live))
		}
		for i, value := range live {
			if len(list) == len(live) { // a map may have a new member, which may be any element of a list
				w.wantLive(t, value, list[i], where+"[]")
			}
		}
	case nil:
		if _, isObject := got.(map[string]any); !isObject {
			wantEqual(t, live, got, "%s", where)
		}
	default:
		wantEqual(t, live, got, "%s", where)
	}
}

// forge adds the annotation of a version to an object of another version.
func (w *world) forge(t *testing.T, annotations map[string]any, from, to string) {
	t.Helper()
	text := string(w.Text(w.forgedAnnotation(t, from, to)))
	if w.Rarely(4) {
		text = deflated(text)
	}
	annotations[conversion.AnnotationName(w.ruleset.CRD, to)] = text
}

// forgedAnnotation returns an annotation of a version.
func (w *world) forgedAnnotation(t *testing.T, from, to string) map[string]any {
	t.Helper()
	fields, orders, excluded, images, absent := map[string]any{}, map[string]any{}, map[string]any{}, map[string]any{}, []any{}
	values := w.forged(t, from, to)
	pointers := slices.Sorted(maps.Keys(values))
	for _, pointer := range pointers {
		switch place, isAbsent := strings.CutPrefix(pointer, "!"); {
		case isAbsent:
			absent = append(absent, place)
		case w.Rarely(6):
			orders[pointer] = values[pointer]
		case w.excludes() && (w.Rarely(10) || conversion.IsIndex([]byte(pointer[strings.LastIndex(pointer, "/")+1:])) && w.IntN(2) == 0):
			excluded[pointer] = values[pointer]
		default:
			fields[pointer] = values[pointer]
		}
		if w.IntN(2) == 0 {
			images[pointer] = w.forgedImages(pointers)
		}
	}
	preserved := map[string]any{"format": json.Number(conversion.PreservedFormat), "fields": fields, "orders": orders, "absent": absent, "images": images}
	if len(excluded) > 0 {
		preserved["excluded"] = excluded
	}
	if w.Rarely(8) {
		preserved[generate.One(w.Choices, slices.Sorted(maps.Keys(preserved))...)] = w.Anything(2)
	}
	return preserved
}

// forgedImages returns images of fields, or of an element without keys.
func (w *world) forgedImages(pointers []string) any {
	pointer := strings.TrimPrefix(generate.One(w.Choices, pointers...), "!")
	switch w.IntN(3) {
	case 0:
		return w.Anything(1)
	case 1:
		return []any{pointer}
	}
	return strings.Trim(digest("{}"), `"`)
}

// forged returns the values of an annotation by their pointers: real preserved data, values of other
// fields, and invalid values and pointers. A pointer with a ! is an absence.
func (w *world) forged(t *testing.T, from, to string) map[string]any {
	t.Helper()
	source := w.object(to)
	forged := map[string]any{}
	annotations := annotationsOf(decode(t, convert(t, w.converter, source, from)))
	if text, isText := annotations[conversion.AnnotationName(w.ruleset.CRD, to)].(string); isText && w.Often(3) {
		preserved, _ := inflated(t, text).(map[string]any)
		for _, member := range []string{"fields", "orders", "excluded"} {
			values, _ := preserved[member].(map[string]any)
			maps.Copy(forged, values)
		}
	}
	places := placesOf(decode(t, source), "")
	pointers := slices.Sorted(maps.Keys(places))
	for range 1 + w.IntN(6) {
		pointer := generate.One(w.Choices, pointers...)
		value := places[pointer]
		if w.Rarely(3) {
			value = w.Anything(2)
		}
		forged[w.bent(pointer)] = value
	}
	return forged
}

// bent returns a pointer, or one near it.
func (w *world) bent(pointer string) string {
	switch w.IntN(8) {
	case 0:
		return pointer[:strings.LastIndex("/"+pointer, "/")]
	case 1:
		return pointer + "/" + generate.One(w.Choices, "", "a", "0", "-1", "00", "99", `[name="a"]`, "~1")
	case 2:
		return "!" + pointer
	}
	return pointer
}

// placesOf returns all values in a value by their pointers.
func placesOf(value any, at string) map[string]any {
	places := map[string]any{at: value}
	switch value := value.(type) {
	case map[string]any:
		for name := range value {
			maps.Copy(places, placesOf(value[name], at+"/"+conversion.EscapePointer(name)))
		}
	case []any:
		for i, element := range value {
			key := generate.Plain(i)
			if object, isObject := element.(map[string]any); isObject && object["name"] != nil {
				key = "[name=" + conversion.EscapePointer(generate.Plain(object["name"])) + "]"
			}
			maps.Copy(places, placesOf(element, at+"/"+key))
		}
	}
	return places
}
