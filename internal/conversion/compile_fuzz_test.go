// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/conversion/internal/generate"
)

// FuzzCompile: every leaf has one owner, and does what is said of it.
func FuzzCompile(f *testing.F) {
	fuzzWorlds(f, func(t *testing.T, w *world) {
		checkOwners(t, w.compiled, w.schemas)
		for _, leaf := range w.compiled.Leaves {
			w.checkLeaf(t, leaf)
		}
	}, "leaves")
}

// checkLeaf converts an object that has one field: it does what is said of it.
// What a rule computes is another matter.
func (w *world) checkLeaf(t *testing.T, leaf compile.LeafVerdict) {
	t.Helper()
	path, err := conversion.ParsePath(leaf.Path)
	if err != nil || path[0] == "metadata" || leaf.Rule != "" && leaf.Owner != compile.OwnerDropped {
		return
	}
	fields := generate.Plain(w.only(w.schemas[leaf.Version], path))
	other := w.plan.Hub
	if leaf.Version == other {
		other = leaf.Spoke
	}
	object := widget(leaf.Version, fields[1:len(fields)-1])
	there := convert(t, w.converter, object, other)
	kept := strings.Contains(there, conversion.AnnotationName(w.plan.CRD, leaf.Version))
	back := sameJSON(t, object, convert(t, w.converter, there, leaf.Version))
	copied := sameJSON(t, strings.Replace(object, "/"+leaf.Version, "/"+other, 1), there)
	if !w.fits(leaf.Version, object) && leaf.Owner != compile.OwnerDropped {
		w.count("left out: values that the field cannot have")
		if !back && !kept {
			t.Errorf("%s has a value that it cannot have, and\n%s\nis lost in\n%s", leaf, object, there)
		}
		return // it may be preserved, and is carried on then
	}
	w.count("leaves")
	if leaf.Odd {
		if !back {
			t.Errorf("%s has values that are preserved, and\n%s\ncomes back from\n%s\nas another", leaf, object, there)
		}
		return
	}
	if want := leaf.Owner; kept && want == compile.OwnerExact || !kept && want == compile.OwnerPreserved || back == (want == compile.OwnerDropped) || copied != (want == compile.OwnerExact) {
		t.Errorf("%s is said to be %s, and\n%s\nis\n%s", leaf, want, object, there)
	}
}

// fits reports whether an object, or a fragment of one, is such as its schema allows.
func (w *world) fits(version, object string) bool {
	return w.converter.FitsWhole(version, object)
}

// only is an object that has one field, and what it takes to have it. The field is
// not null, which may have no place on the other side where all other values do.
func (w *world) only(s *schema.Structural, path conversion.Path) any {
	if len(path) == 0 {
		strict := *s
		strict.Nullable = false
		for {
			if value := w.Value(&strict); value != nil {
				return value
			}
		}
	}
	switch next := step(s, path[0]); {
	case next == nil && path[0] == conversion.Each:
		return map[string]any{"unheardOf": "x"}
	case next == nil:
		return map[string]any{path[0]: "x"}
	case s.Items != nil:
		return []any{w.only(next, path[1:])}
	case path[0] == conversion.Each:
		return map[string]any{"unheardOf": w.only(next, path[1:])}
	default:
		return map[string]any{path[0]: w.only(next, path[1:])}
	}
}
