// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/internal/generate"
)

// FuzzPruned checks that values which the API server prunes from an answer come back, and that an
// answer has no value of a wrong type. Values that do not fit are preserved, as in FuzzGetPut. It
// ignores nulls on the way through a hub that would replace them by a default: the hub accepts
// them, and the other spoke does not.
func FuzzPruned(f *testing.F) {
	fuzzWorlds(f, func(t *testing.T, w *world) {
		from, to := w.pair()
		object := w.asStored(t, w.object(from), from)
		there := w.asStored(t, convert(t, w.converter, object, to), to)
		sound := wrongType(decode(t, object), w.schemas[from], true) == ""
		if at := wrongType(decode(t, there), w.schemas[to], true); sound && at != "" {
			t.Fatalf("%s\nis at %s\n%s\nwhich is refused at %s", object, to, there, at)
		}
		back := convert(t, w.converter, there, from)
		want, got := w.asStored(t, w.surviving(t, object, from, to), from), w.asStored(t, back, from)
		switch {
		case w.fits(from, object) && !w.fits(from, want):
			w.count(cameBackPartly)
			w.wantSomewhere(t, withoutServerMetadata(t, want), got, from, object+"\nis at "+to+"\n"+there)
		case from != w.ruleset.Hub && to != w.ruleset.Hub && !reflect.DeepEqual(withoutServerMetadata(t, want), withoutServerMetadata(t, got)) &&
			reflect.DeepEqual(withoutNullMembers(withoutServerMetadata(t, want)), withoutNullMembers(withoutServerMetadata(t, got))):
			w.count("left out: nulls through a hub with a default")
		default:
			w.count(cameBack)
			wantEqual(t, withoutServerMetadata(t, want), withoutServerMetadata(t, got), "%s\nis at %s\n%s", object, to, there)
		}
	}, cameBack)
}

// withoutNullMembers is a value without the members that are null.
func withoutNullMembers(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name := range value {
			if value[name] = withoutNullMembers(value[name]); value[name] == nil {
				delete(value, name)
			}
		}
	case []any:
		for i := range value {
			value[i] = withoutNullMembers(value[i])
		}
	}
	return value
}

// asStored returns an object as the API server stores the answer to a conversion: without fields
// that the schema does not name, and without nulls that it does not allow.
func (w *world) asStored(t testing.TB, text, version string) string {
	t.Helper()
	object, s := decode(t, text), w.schemas[version]
	metadata, hasMetadata := object["metadata"]
	pruning.Prune(object, s, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, s)
	if hasMetadata {
		object["metadata"] = metadata
	}
	return generate.Plain(object)
}

// wrongType returns the path of a value that does not have the type of its schema, empty if all
// have it.
func wrongType(value any, s *schema.Structural, root bool) string {
	if s == nil || value == nil {
		return ""
	}
	ok := s.Type == "" && !s.XIntOrString
	switch value := value.(type) {
	case string:
		ok = ok || s.Type == "string" || s.XIntOrString
	case json.Number:
		ok = ok || s.Type == "number" || (s.Type == "integer" || s.XIntOrString) && !strings.ContainsAny(string(value), ".eE")
	case bool:
		ok = ok || s.Type == "boolean"
	case []any:
		ok = ok || s.Type == "array"
		for _, element := range value {
			if at := wrongType(element, s.Items, false); at != "" {
				return "[]" + at
			}
		}
	case map[string]any:
		ok = ok || s.Type == "object"
		for name, member := range value {
			if root && conversion.IsEnvelope(name) || s.XEmbeddedResource && conversion.IsEnvelope(name) {
				continue
			}
			if of := step(s, name); of != nil {
				if at := wrongType(member, of, false); at != "" {
					return "." + name + at
				}
			}
		}
	}
	if !ok {
		return " "
	}
	return ""
}
