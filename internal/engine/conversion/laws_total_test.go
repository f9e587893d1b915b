// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/internal/generate"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// FuzzTotality checks that every object is converted, even one that violates its schema, and that
// the API server accepts the result.
func FuzzTotality(f *testing.F) {
	fuzzWorlds(f, func(t *testing.T, w *world) {
		w.MisfitEvery = []int{0, 8, 30}[w.IntN(3)]
		from, to := w.pair()
		object := w.object(from)
		there := convert(t, w.converter, object, to)
		wantAccepted(t, object, there, to)
		edited := w.edited(t, there, w.object(to))
		wantAccepted(t, edited, convert(t, w.converter, edited, from), from)
	})
}

// wantAccepted checks an answer as the API server does:
// k8s.io/apiextensions-apiserver/pkg/apiserver/conversion, restoreObjectMeta.
func wantAccepted(t *testing.T, object, answer, version string) {
	t.Helper()
	before, after := decode(t, object), decode(t, answer)
	if after["apiVersion"] != "example.com/"+version || after["kind"] != "Widget" {
		t.Fatalf("%s is not of version %s", answer, version)
	}
	old, _ := before["metadata"].(map[string]any)
	metadata, isObject := after["metadata"].(map[string]any)
	if !isObject {
		t.Fatalf("%s has no metadata", answer)
	}
	for name, validate := range map[string]func(map[string]string, *field.Path) field.ErrorList{
		"labels": metavalidation.ValidateLabels, "annotations": apivalidation.ValidateAnnotations,
	} {
		value, found := metadata[name]
		if !found || value == nil {
			continue
		}
		texts := map[string]string{}
		for key, value := range value.(map[string]any) {
			text, isText := value.(string)
			if !isText {
				t.Fatalf("metadata.%s[%s] is no text in %s", name, key, answer)
			}
			texts[key] = text
		}
		if errs := validate(texts, field.NewPath("metadata", name)); len(errs) > 0 && !reflect.DeepEqual(old[name], value) {
			t.Fatalf("%s is\n%s: %v", object, answer, errs)
		}
	}
}

// FuzzDeterminism checks that an object always converts to the same bytes: in any converter, after
// any other conversion, and concurrently.
func FuzzDeterminism(f *testing.F) {
	fuzzWorlds(f, func(t *testing.T, w *world) {
		from, to := w.pair()
		object := w.object(from)
		want := convert(t, w.converter, object, to)
		another, err := conversion.NewConverter(w.ruleset)
		expect.NoError(t, err)
		convert(t, another, w.object(to), from)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				got, err := another.Convert([]byte("before"), []byte(object), to)
				if err != nil || string(got) != "before"+want {
					t.Errorf("%s is\n%s, and again\n%s, %v", object, want, got, err)
				}
			})
		}
		all.Wait()
	})
}

// withDecodedAnnotations is withoutServerMetadata with decoded preserved data.
func withDecodedAnnotations(t testing.TB, text string) map[string]any {
	t.Helper()
	object := withoutServerMetadata(t, text)
	metadata := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	for name, value := range annotations {
		if text, isText := value.(string); isText && strings.HasPrefix(name, conversion.PreservedPrefix) {
			annotations[name] = withoutFingerprints(inflated(t, text))
		}
	}
	return object
}

// FuzzSpelling checks that white space, the order of members, and unnecessary escapes make no
// difference.
func FuzzSpelling(f *testing.F) {
	fuzzWorlds(f, func(t *testing.T, w *world) {
		from, to := w.pair()
		value := decode(t, convert(t, w.converter, w.object(to), from))
		plain, odd := generate.Plain(value), string(w.Text(value))
		want, got := convert(t, w.converter, plain, to), convert(t, w.converter, odd, to)
		wantEqual(t, withDecodedAnnotations(t, want), withDecodedAnnotations(t, got), "%s\nis, written otherwise,\n%s", plain, odd)
	})
}

// FuzzCompile checks that every leaf field has one owner, and that conversions match its verdict.
func FuzzCompile(f *testing.F) {
	fuzzWorlds(f, func(t *testing.T, w *world) {
		checkOwners(t, w.compiled, w.schemas)
		for _, leaf := range w.compiled.Leaves {
			w.checkLeaf(t, leaf)
		}
	}, "leaves")
}

// checkLeaf converts an object with one field, and compares the result with the verdict. It skips
// fields that rules compute.
func (w *world) checkLeaf(t *testing.T, leaf compile.FieldVerdict) {
	t.Helper()
	path, err := conversion.ParsePath(leaf.Path)
	if err != nil || path[0] == "metadata" || leaf.Rule != "" && leaf.Owner != compile.OwnerDropped || w.isRead(path) {
		return
	}
	fields := generate.Plain(w.only(w.schemas[leaf.Version], path))
	other := w.ruleset.Hub
	if leaf.Version == other {
		other = leaf.Spoke
	}
	object := widget(leaf.Version, fields[1:len(fields)-1])
	if w.namesKey(leaf.Version, path, object) {
		return
	}
	there := convert(t, w.converter, object, other)
	preserved := strings.Contains(there, conversion.AnnotationName(w.ruleset.CRD, leaf.Version))
	back := sameJSON(t, object, convert(t, w.converter, there, leaf.Version))
	copied := sameJSON(t, strings.Replace(object, "/"+leaf.Version, "/"+other, 1), there)
	if !w.fits(leaf.Version, object) && leaf.Owner != compile.OwnerDropped {
		w.count("left out: values that the field cannot have")
		if !back && !preserved {
			t.Errorf("%s has a value that it cannot have, and\n%s\nis lost in\n%s", leaf, object, there)
		}
		return // it may be preserved, and then remains in the annotation
	}
	w.count("leaves")
	if leaf.PartlyPreserved {
		if !back {
			t.Errorf("%s has values that are preserved, and\n%s\ncomes back from\n%s\nas another", leaf, object, there)
		}
		return
	}
	if want := leaf.Owner; preserved && want == compile.OwnerExact || !preserved && want == compile.OwnerPreserved || back == (want == compile.OwnerDropped) || copied != (want == compile.OwnerExact) {
		t.Errorf("%s is said to be %s, and\n%s\nis\n%s", leaf, want, object, there)
	}
}

// namesKey reports whether an object has a key, in the map of a leaf field, that is a leaf field of its own.
func (w *world) namesKey(version string, of conversion.Path, object string) bool {
	a := tree.NewArena()
	defer a.Free()
	root, err := a.Read([]byte(object))
	return err == nil && slices.ContainsFunc(w.compiled.Leaves, func(key compile.FieldVerdict) bool {
		path, _ := conversion.ParsePath(key.Path)
		return key.Version == version && len(path) > len(of) && path.HasPrefix(of) && root.At(path) != nil
	})
}

// isRead reports whether an expression reads a field, or a part of it: other fields are computed from it, too.
func (w *world) isRead(path conversion.Path) bool {
	for i := range w.rules.Spokes {
		for j := range w.rules.Spokes[i].Rules {
			rule := &w.rules.Spokes[i].Rules[j]
			spoke, hub := rule.Paths()
			if rule.CEL != nil && slices.ContainsFunc(slices.Concat(spoke, hub), func(read v1alpha1.Path) bool {
				of, err := conversion.ParsePath(string(read))
				return err == nil && of.Meets(path)
			}) {
				return true
			}
		}
	}
	return false
}

// fits reports whether an object or a fragment fits its schema.
func (w *world) fits(version, object string) bool {
	return w.converter.FitsWhole(version, object)
}

// only returns an object with one field, and the objects and lists around it. The field is not
// null, because the other side may preserve a null and copy all other values.
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
