// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/internal/generate"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserve"
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
// left out. All of it comes back, unless the annotations added data there: that is an edit like any
// other, from which rules may compute other values, and FuzzChange has its laws. A default is not
// live data, since a rule may have filled it in.
func (w *world) liveStays(t testing.TB, live, forged, version, other string) {
	t.Helper()
	there, honest := convert(t, w.converter, forged, other), convert(t, w.converter, live, other)
	where := forged + "\nis at " + other + "\n" + there + "\nwhere the object has"
	wantThere, gotThere := withoutPreserved(withoutServerMetadata(t, honest)), withoutPreserved(withoutServerMetadata(t, there))
	if w.count(w.independent()); w.oneToOne() {
		w.wantLive(t, wantThere, gotThere, w.schemas[other], where)
	}
	if !reflect.DeepEqual(wantThere, gotThere) {
		w.count("left out: the way back of objects to which forged data added values")
		return
	}
	back, want := convert(t, w.converter, there, version), convert(t, w.converter, honest, version)
	w.wantLive(t, withoutPreserved(withoutServerMetadata(t, want)), withoutPreserved(withoutServerMetadata(t, back)), w.schemas[version], where)
}

// wantLive compares all scalars of a value with a value that may have more members. A null may be
// an object, and vice versa: see emptyAsNull. It may also be a default, which an API server fills in
// for a null that the schema does not allow.
func (w *world) wantLive(t testing.TB, live, got any, s *schema.Structural, where string) {
	t.Helper()
	if slices.ContainsFunc(w.Values, func(value any) bool { return reflect.DeepEqual(value, live) }) {
		return // a default
	}
	switch live := live.(type) {
	case map[string]any:
		object, _ := got.(map[string]any)
		for name, value := range live {
			w.wantLive(t, value, object[name], step(s, name), where+"."+name)
		}
	case []any:
		list, _ := got.([]any)
		if len(list) < len(live) {
			t.Fatalf("%s: %d elements, want %d", where, len(list), len(live))
		}
		for i, value := range live {
			if len(list) == len(live) { // a map may have a new member, which may be any element of a list
				w.wantLive(t, value, list[i], step(s, conversion.Each), where+"[]")
			}
		}
	case nil:
		if _, isObject := got.(map[string]any); !isObject && (s == nil || s.Default.Object == nil || !reflect.DeepEqual(got, s.Default.Object)) {
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
	values, hidden, orders, replaced, absent := map[string]any{}, map[string]any{}, map[string]any{}, map[string]any{}, map[string]any{}
	forged := w.forged(t, from, to)
	for _, pointer := range slices.Sorted(maps.Keys(forged)) {
		place, isAbsent := strings.CutPrefix(pointer, "!")
		last := strings.LastIndex("/"+place, "/")
		switch {
		case isAbsent:
			absent[place] = generate.One(w.Choices, "", "00000000", conversion.Digest([]byte("{}"))[:8])
		case w.Rarely(6):
			orders[pointer] = forged[pointer]
		case isIndex(place[last:]) && w.IntN(2) == 0:
			values[place[:last]+"["+place[last:]+"]"] = forged[pointer]
		case w.IntN(2) == 0:
			hidden[pointer] = forged[pointer]
		default:
			values[pointer] = forged[pointer]
		}
		if w.Rarely(3) {
			replaced[place] = generate.One(w.Choices, "00000000", conversion.Digest([]byte("{}"))[:8])
		}
	}
	preserved := map[string]any{
		"format": json.Number(strconv.Itoa(preserve.Format)), "values": values, "hidden": hidden, "orders": orders, "absent": absent, "replaced": replaced,
	}
	if w.Rarely(8) {
		preserved[generate.One(w.Choices, slices.Sorted(maps.Keys(preserved))...)] = w.Anything(2)
	}
	return preserved
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
		for _, member := range []string{"values", "hidden", "orders"} {
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
			maps.Copy(places, placesOf(value[name], at+"/"+escapePointer(name)))
		}
	case []any:
		for i, element := range value {
			key := generate.Plain(i)
			if object, isObject := element.(map[string]any); isObject && object["name"] != nil {
				key = "[name=" + escapePointer(generate.Plain(object["name"])) + "]"
			}
			maps.Copy(places, placesOf(element, at+"/"+key))
		}
	}
	return places
}
