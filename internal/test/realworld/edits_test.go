// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realworld

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

// checkEdited edits a converted object, as somebody does who knows nothing of
// what is kept aside in it. Then that fits no longer, and must not win over what
// the object says: it must come back as it was edited.
func (r *run) checkEdited(t *testing.T, made *objects, object, other []byte, from, to string) {
	t.Helper()
	before := asMap(decode(object))
	edited := made.mix(before, asMap(decode(other)))
	for _, name := range []string{"apiVersion", "kind", "metadata"} {
		edited[name] = before[name]
	}
	text := encode(t, edited)
	there := converted(t, r.converter, text, to)
	back := converted(t, r.converter, there, from)
	if lost := compare(withoutKept(decode(text)), withoutKept(decode(back)), ""); len(lost) > 0 {
		t.Fatalf("an edit of %s is lost in %s, went and came: %v\nedited %s\nthere  %s\nback   %s", object, to, lost, text, there, back)
	}
}

// mix takes most fields of one object, and some of the other.
func (o *objects) mix(most, some map[string]any) map[string]any {
	mixed := maps.Clone(most)
	for _, name := range slices.Sorted(maps.Keys(some)) {
		value, chance := some[name], o.IntN(8)
		switch inner := asMap(value); {
		case inner != nil && asMap(most[name]) != nil:
			mixed[name] = o.mix(asMap(most[name]), inner)
		case chance < 2:
			mixed[name] = value
		case chance < 4:
			delete(mixed, name)
		}
	}
	return mixed
}

// withoutKept takes away what we keep for the way back, wherever that is left.
func withoutKept(object any) any {
	metadata := asMap(asMap(object)["metadata"])
	annotations := asMap(metadata["annotations"])
	maps.DeleteFunc(annotations, func(name string, _ any) bool { return strings.HasPrefix(name, conversion.KeptPrefix) })
	if annotations != nil && len(annotations) == 0 {
		delete(metadata, "annotations")
	}
	return object
}
