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

// checkEdited edits a converted object like a client that does not know preserved data. Preserved
// data that no longer fits must not override the edit. Edits that the API server rejects do not
// count.
func (r *run) checkEdited(t *testing.T, made *objects, schema *checked, object, other []byte, from, to string) {
	t.Helper()
	text := made.edit(t, schema, asMap(decode(object)), asMap(decode(other)))
	if text == nil {
		return
	}
	r.edits++
	there := converted(t, r.converter, text, to)
	back := converted(t, r.converter, there, from)
	if lost := compare(withoutPreserved(decode(text)), withoutPreserved(decode(back)), ""); len(lost) > 0 {
		t.Fatalf("an edit of %s is lost in %s, went and came: %v\nedited %s\nthere  %s\nback   %s", object, to, lost, text, there, back)
	}
}

// edit returns a valid mix of two objects, with the metadata of the first, or nil if 100 mixes are
// invalid.
func (o *objects) edit(t *testing.T, schema *checked, object, other map[string]any) []byte {
	t.Helper()
	for range 100 {
		edited := o.mix(object, other)
		for _, name := range []string{"apiVersion", "kind", "metadata"} {
			edited[name] = object[name]
		}
		if text := encode(t, edited); len(schema.validate(t, text)) == 0 {
			return text
		}
	}
	return nil
}

// mix returns most fields of one object and some of the other.
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

// withoutPreserved removes preserved data.
func withoutPreserved(object any) any {
	metadata := asMap(asMap(object)["metadata"])
	annotations := asMap(metadata["annotations"])
	maps.DeleteFunc(annotations, func(name string, _ any) bool { return strings.HasPrefix(name, conversion.PreservedPrefix) })
	if annotations != nil && len(annotations) == 0 {
		delete(metadata, "annotations")
	}
	return object
}
