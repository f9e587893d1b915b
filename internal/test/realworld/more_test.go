// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realworld

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/conversion/shape"
	"github.com/conversion-operator/conversion-operator/internal/conversion/shape/strip"
)

// more converts the objects of a direction beyond those of the table. It is many times faster than for those:
// it edits no objects, and validates them as converter pods do.
type more struct {
	*run
	from, to             version
	convert, convertBack func(from, to any) error
	schema               *apiextensionsv1.JSONSchemaProps
	shape                *shape.Schema
	// same and lossless count the objects that both convert to the same object, and those that they convert to
	// different ones although the project's functions lose nothing of them.
	same, lossless int
	printed        time.Time
}

func (r *run) more(t *testing.T, of *apiextensionsv1.JSONSchemaProps, from, to version, convert, convertBack func(from, to any) error) *more {
	t.Helper()
	m := &more{run: r, from: from, to: to, convert: convert, convertBack: convertBack, schema: of, printed: time.Now()}
	text, err := strip.Of(m.schema)
	if err != nil {
		t.Fatal(err)
	}
	if m.shape, err = shape.Read(text); err != nil {
		t.Fatal(err)
	}
	return m
}

// next returns a valid random object, with many or few optional fields.
func (m *more) next(t *testing.T, made *objects, apiVersion, kind string) map[string]any {
	t.Helper()
	for range 1000 {
		made.rare = pick(made, []int{0, 2, 4, 8})
		object := made.object(apiVersion, kind, m.schema)
		fields := maps.Clone(object)
		for _, name := range []string{"apiVersion", "kind", "metadata"} {
			delete(fields, name)
		}
		if m.shape.Fits(json.RawMessage(encode(t, fields))) == nil {
			return object
		}
	}
	t.Fatalf("no valid object of %s in 1000", apiVersion)
	return nil
}

// check converts one object, there and back by the policy, and there by the project's functions.
func (m *more) check(t *testing.T, value map[string]any) {
	t.Helper()
	object := encode(t, value)
	ours := converted(t, m.converter, object, m.to.name)
	// Equal values are the same; others may be, such as the numbers of an enum, which are json.Number.
	if back := converted(t, m.converter, ours, m.from.name); !reflect.DeepEqual(generic(t, back), any(value)) {
		if lost := compare(decode(object), decode(back), ""); len(lost) > 0 {
			t.Fatalf("comes back otherwise, went and came: %v\nof   %s\nto   %s", lost, object, ours)
		}
	}
	target, mine := m.convertTyped(t, object, m.from, m.to, m.convert), m.to.new()
	read(t, ours, mine)
	if m.alike(target, mine) {
		m.same++
		return
	}
	theirs := encode(t, target)
	places := compare(m.plain(decode(theirs)), m.plain(decode(encode(t, mine))), "")
	if len(places) == 0 {
		m.same++
		return
	}
	m.note(m.to, places, object, ours)
	if len(m.losses(t, object, theirs, m.from, m.to, m.convertBack)) == 0 {
		m.lossless++
	}
}

// alike reports whether two objects of a Go type are the same but for what plain removes. Others may still be
// written alike.
func (p *project) alike(theirs, ours any) bool {
	left, isObject := theirs.(client.Object)
	right, areObjects := ours.(client.Object)
	if !isObject || !areObjects {
		return false
	}
	kind, annotations := left.GetObjectKind().GroupVersionKind(), left.GetAnnotations()
	defer func() {
		left.GetObjectKind().SetGroupVersionKind(kind)
		left.SetAnnotations(annotations)
	}()
	for _, object := range []client.Object{left, right} {
		object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		kept := maps.Clone(object.GetAnnotations())
		maps.DeleteFunc(kept, func(name, _ string) bool {
			return slices.Contains(p.keeps, name) || strings.HasPrefix(name, conversion.PreservedPrefix)
		})
		if len(kept) == 0 {
			kept = nil
		}
		object.SetAnnotations(kept)
	}
	return reflect.DeepEqual(left, right)
}

// print prints the progress each minute.
func (m *more) print(done int) {
	if time.Since(m.printed) > time.Minute {
		m.printed = time.Now()
		fmt.Fprintf(os.Stderr, "%s from %s: %d of %d objects\n", m.sample, m.from.name, done, *rounds)
	}
}
