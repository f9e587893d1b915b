// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/internal/generate"
)

// FuzzGetPut converts an object and converts it back: it is unchanged. If rules drop a field that
// the schema requires, the object around it does not fit: it may be preserved instead
// (wantSomewhere).
func FuzzGetPut(f *testing.F) {
	fuzzWorlds(f, func(t *testing.T, w *world) {
		from, to := w.pair()
		w.roundTrip(t, w.object(from), from, to)
	}, cameBack)
}

const (
	cameBack       = "came back wholly"
	cameBackPartly = "came back but for what does not fit, which is preserved"
)

func (w *world) roundTrip(t testing.TB, object, from, to string) {
	t.Helper()
	there := convert(t, w.converter, object, to)
	back := convert(t, w.converter, there, from)
	want := w.surviving(t, object, from, to)
	if w.fits(from, object) && !w.fits(from, want) {
		w.count(cameBackPartly)
		w.wantSomewhere(t, withoutServerMetadata(t, want), back, from, object+"\nis at "+to+"\n"+there)
		return
	}
	w.count(cameBack)
	wantEqual(t, withDecodedAnnotations(t, want), withDecodedAnnotations(t, back), "%s\nis at %s\n%s", object, to, there)
}

// wantSomewhere compares an object with the wanted one, which does not fit: each missing field must
// be preserved of the version or, on the way through the hub, of the hub.
func (w *world) wantSomewhere(t testing.TB, want map[string]any, got, version, where string) {
	t.Helper()
	object := decode(t, got)
	own, ofHub := w.preservedOf(t, object, version), w.preservedOf(t, object, w.ruleset.Hub)
	is := withoutPreserved(withoutServerMetadata(t, got))
	for pointer, value := range leavesOf(withoutPreserved(want), "") {
		if same, found := valueAt(is, pointer); found && has(same, value) || value == nil || isEmpty(value) {
			continue
		}
		if len(ofHub) == 0 && !covered(own, pointer) {
			t.Fatalf("%s\nlacks %s when it comes back, and has not preserved it:\n%s\nwant\n%s", where, pointer, got, generate.Plain(want))
		}
	}
}

// preservedOf returns the preserved values of a version.
func (w *world) preservedOf(t testing.TB, object map[string]any, version string) map[string]any {
	t.Helper()
	annotations := annotationsOf(object)
	text, _ := annotations[conversion.AnnotationName(w.ruleset.CRD, version)].(string)
	preserved, _ := inflated(t, text).(map[string]any)
	return valuesIn(preserved)
}

// covered reports whether one of the pointers is the given one, a parent of it, or below it.
func covered(places map[string]any, pointer string) bool {
	for at := range places {
		if at == pointer || strings.HasPrefix(at, pointer+"/") || strings.HasPrefix(pointer, at+"/") {
			return true
		}
	}
	return false
}

// FuzzPutGet edits an object at the other version: converted back and forth, it still has the edit.
// Values that do not fit are preserved, as in FuzzGetPut.
func FuzzPutGet(f *testing.F) {
	fuzzWorlds(f, func(t *testing.T, w *world) {
		from, to := w.pair()
		there := convert(t, w.converter, w.object(from), to)
		w.editWins(t, w.withDefaults(t, w.edited(t, there, w.object(to)), to), to, from)
	}, cameBack)
}

// withDefaults fills in the defaults of a version, as the API server does with each write.
func (w *world) withDefaults(t testing.TB, text, version string) string {
	t.Helper()
	object := decode(t, text)
	metadata, hasMetadata := object["metadata"]
	defaulting.Default(object, w.schemas[version])
	if hasMetadata {
		object["metadata"] = metadata
	}
	return generate.Plain(object)
}

// editWins converts an edited object to another version and back.
func (w *world) editWins(t testing.TB, edited, version, other string) {
	t.Helper()
	back := convert(t, w.converter, edited, other)
	again := convert(t, w.converter, back, version)
	survives := w.surviving(t, edited, version, other)
	if w.fits(version, edited) && !w.fits(version, survives) {
		w.count(cameBackPartly)
		w.wantSomewhere(t, withoutServerMetadata(t, survives), again, version, edited+"\nis at "+other+"\n"+back)
		return
	}
	w.count(cameBack)
	want := withoutPreserved(withoutServerMetadata(t, survives))
	wantEqual(t, emptyAsNull(want), emptyAsNull(withoutPreserved(withoutServerMetadata(t, again))), "%s\nis at %s\n%s", edited, other, back)
}

// emptyAsNull replaces empty objects by nulls: server-side apply leaves a null in the place of an
// object that it has emptied, and the null becomes {} again if preserved data comes back into it.
func emptyAsNull(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name := range value {
			value[name] = emptyAsNull(value[name])
		}
		if len(value) == 0 {
			return nil
		}
	case []any:
		for i := range value {
			value[i] = emptyAsNull(value[i])
		}
	}
	return value
}

// edited returns an object with some fields of another object of the version, and its own metadata.
func (w *world) edited(t testing.TB, object, edit string) string {
	t.Helper()
	value := decode(t, object)
	metadata := value["metadata"]
	editor{w.Choices}.edit(value, decode(t, edit))
	value["metadata"] = metadata
	if w.MisfitEvery == 0 {
		_, version, _ := strings.Cut(value["apiVersion"].(string), "/")
		w.fit(version, value)
	}
	return string(w.Text(value))
}

type editor struct{ *generate.Choices }

// edit gives an object some of the fields of another object.
func (w editor) edit(object, edit map[string]any) {
	names := append(slices.Sorted(maps.Keys(object)), slices.Sorted(maps.Keys(edit))...)
	for _, name := range names {
		old, _ := object[name].(map[string]any)
		value, found := edit[name]
		next, isObject := value.(map[string]any)
		switch {
		case w.IntN(3) == 0:
		case old != nil && isObject && w.Often(4):
			w.edit(old, next)
		case found:
			object[name] = w.rearranged(object[name], value)
		case name != "apiVersion" && name != "kind":
			delete(object, name)
		}
	}
}

// rearranged returns an edited value. A list may contain old elements, reordered or edited.
func (w editor) rearranged(old, value any) any {
	before, _ := old.([]any)
	after, _ := value.([]any)
	if len(before) == 0 || w.IntN(2) == 0 {
		return value
	}
	list := generate.Shuffled(w.Choices, before)[w.IntN(2):]
	for i := range min(len(list), len(after)) {
		element, _ := list[i].(map[string]any)
		edit, _ := after[i].(map[string]any)
		if element != nil && edit != nil && w.Rarely(3) {
			w.edit(element, edit)
		}
	}
	return append(list, after[:w.IntN(len(after)+1)]...)
}

// FuzzStar checks that a conversion between two spokes equals the conversion through the hub.
func FuzzStar(f *testing.F) {
	fuzzWorlds(f, func(t *testing.T, w *world) {
		for _, pair := range [][2]string{{"v1", "v3"}, {"v3", "v1"}} {
			object := w.object(pair[0])
			atHub := convert(t, w.converter, object, "v2")
			want, got := convert(t, w.converter, atHub, pair[1]), convert(t, w.converter, object, pair[1])
			wantEqual(t, withDecodedAnnotations(t, want), withDecodedAnnotations(t, got), "%s\nis at the hub\n%s", object, atHub)
		}
	})
}
