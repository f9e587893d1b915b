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
		kept := map[string]any{}
		for range 1 + w.IntN(6) {
			kept[w.pointer(t, to)] = w.Anything(2)
		}
		metadata, _ := object["metadata"].(map[string]any)
		if metadata == nil {
			metadata = map[string]any{}
		}
		object["metadata"], metadata["annotations"] = metadata, map[string]any{KeptPrefix + to: generate.Plain(kept)}
		forged := string(w.Text(object))
		wantAccepted(t, forged, convert(t, w.converter, forged, to), to)
		w.asReference(t, forged, to)
		w.editWins(t, forged, from, to)
	})
}

// pointer is a place in an object of a version, or near one.
func (w *world) pointer(t *testing.T, version string) string {
	t.Helper()
	pointers := pointersOf(decode(t, w.object(version)), "")
	pointer := generate.One(w.Choices, pointers...)
	switch w.IntN(8) {
	case 0:
		pointer = pointer[:strings.LastIndex("/"+pointer, "/")]
	case 1:
		pointer += "/" + generate.One(w.Choices, "", "a", "0", "-1", "00", "99", `[name="a"]`, "~1")
	case 2:
		pointer = "!" + pointer
	}
	return pointer
}

func pointersOf(value any, at string) []string {
	pointers := []string{at}
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			pointers = append(pointers, pointersOf(value[name], at+"/"+escapePointer(name))...)
		}
	case []any:
		for i, element := range value {
			key := generate.Plain(i)
			if object, isObject := element.(map[string]any); isObject && object["name"] != nil {
				key = "[name=" + escapePointer(generate.Plain(object["name"])) + "]"
			}
			pointers = append(pointers, pointersOf(element, at+"/"+key)...)
		}
	}
	return pointers
}
