// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/conversion/internal/generate"
)

// FuzzForged: what is kept aside is an annotation that users can write. Whatever
// it says, the object is one that somebody could have written at its version: at
// the other version it is what it is without the annotation.
func FuzzForged(f *testing.F) {
	fuzzWorlds(f, func(t *testing.T, w *world) {
		from, to := w.pair()
		object := decode(t, w.object(from))
		kept := w.forged(t, from, to)
		metadata, _ := object["metadata"].(map[string]any)
		if metadata == nil {
			metadata = map[string]any{}
		}
		object["metadata"], metadata["annotations"] = metadata, map[string]any{
			KeptPrefix + to: string(w.Text(kept)), KeptPrefix + from: string(w.Text(w.forged(t, to, from))),
		}
		forged := string(w.Text(object))
		wantAccepted(t, forged, convert(t, w.converter, forged, to), to)
		w.asReference(t, forged, to)
		w.editWins(t, forged, from, to)
	})
}

// forged is what could be kept of a version: what really is, values that stand
// elsewhere in an object, and values and places that cannot be.
func (w *world) forged(t *testing.T, from, to string) map[string]any {
	t.Helper()
	source := w.object(to)
	kept := map[string]any{}
	annotations, _ := lookUp(decode(t, convert(t, w.converter, source, from)), Path{"metadata", "annotations"}).(map[string]any)
	if text, isText := annotations[KeptPrefix+to].(string); isText && w.Often(3) {
		kept = decode(t, text)
	}
	places := placesOf(decode(t, source), "")
	pointers := slices.Sorted(maps.Keys(places))
	for range 1 + w.IntN(6) {
		pointer := generate.One(w.Choices, pointers...)
		value := places[pointer]
		if w.Rarely(3) {
			value = w.Anything(2)
		}
		kept[w.bent(pointer)] = value
	}
	return kept
}

// bent is a place, or near one.
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

// placesOf are all values in a value, by their places.
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
