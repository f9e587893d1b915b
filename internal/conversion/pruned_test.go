// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"encoding/json"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/conversion/internal/generate"
	"github.com/conversion-operator/conversion-operator/internal/conversion/reference"
)

// FuzzPruned: what the API server takes away from an answer comes back all the same,
// and an answer has no value of a type that its schema refuses. What does not fit is
// preserved, as in FuzzGetPut. Left out are nulls on a way through a hub whose default
// they would get: the hub takes them, and the other spoke does not.
func FuzzPruned(f *testing.F) {
	fuzzWorlds(f, func(t *testing.T, w *world) {
		from, to := w.pair()
		object := w.asServed(t, w.object(from), from)
		there := w.asServed(t, convert(t, w.converter, object, to), to)
		sound := mistyped(decode(t, object), w.schemas[from], true) == ""
		if at := mistyped(decode(t, there), w.schemas[to], true); sound && at != "" {
			t.Fatalf("%s\nis at %s\n%s\nwhich is refused at %s", object, to, there, at)
		}
		back := convert(t, w.converter, there, from)
		want, got := w.asServed(t, w.surviving(t, object, from, to), from), w.asServed(t, back, from)
		switch {
		case w.fits(from, object) && !w.fits(from, want):
			w.count(inPart)
			w.wantSomewhere(t, essence(t, want), got, from, object+"\nis at "+to+"\n"+there)
		case from != w.ruleset.Hub && to != w.ruleset.Hub && !reference.Equal(essence(t, want), essence(t, got)) &&
			reference.Equal(withoutNullMembers(essence(t, want)), withoutNullMembers(essence(t, got))):
			w.count("left out: nulls through a hub with a default")
		default:
			w.count(wholly)
			wantEqual(t, essence(t, want), essence(t, got), "%s\nis at %s\n%s", object, to, there)
		}
	}, wholly)
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

// asServed is an object as the API server makes it of the answer to a conversion:
// without fields that the schema does not name, and without nulls that it does not allow.
func (w *world) asServed(t testing.TB, text, version string) string {
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

// mistyped is where a value is not of the type that its schema says, and empty where
// all are.
func mistyped(value any, s *schema.Structural, root bool) string {
	if s == nil || value == nil {
		return ""
	}
	ok := s.Type == "" && !s.XIntOrString
	switch value := value.(type) {
	case string:
		ok = ok || s.Type == "string" || s.XIntOrString
	case json.Number:
		ok = ok || s.Type == "number" || (s.Type == "integer" || s.XIntOrString) && conversion.IsIntegral([]byte(value))
	case bool:
		ok = ok || s.Type == "boolean"
	case []any:
		ok = ok || s.Type == "array"
		for _, element := range value {
			if at := mistyped(element, s.Items, false); at != "" {
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
				if at := mistyped(member, of, false); at != "" {
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
