// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package migration

import (
	"context"
	"encoding/json"
	"path"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/migration/migrationtest"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// rulesConverter converts like converter pods, by rules that may change.
type rulesConverter struct {
	atomic.Pointer[conversion.Converter]
}

func (s *rulesConverter) convert(object []byte, version string) ([]byte, error) {
	return s.Load().Convert(nil, object, version)
}

// use compiles the rules that follow from the current schemas, and converts by them from now on.
func (s *rulesConverter) use(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) (ruleset string) {
	t.Helper()
	compiled := compile.Compile(crd, &v1alpha1.DeclarativeConverter{Hub: "v1", Spokes: []v1alpha1.Spoke{{Version: "v1beta1"}}})
	if compiled.Ruleset == nil {
		t.Fatalf("the rules do not compile: %v", compiled.Errors)
	}
	text, err := compiled.Ruleset.Marshal()
	expect.NoError(t, err)
	converter, err := conversion.NewConverter(compiled.Ruleset)
	expect.NoError(t, err)
	s.Store(converter)
	return string(text)
}

// addNote adds the field to the schema of a version.
func (r *resource) addNote(t *testing.T, index int) {
	t.Helper()
	r.Change(t, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions[index].Schema.OpenAPIV3Schema.Properties["spec"].Properties["note"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	})
}

// holding returns the numbers of objects in etcd whose annotations preserve a note, and whose spec
// has one.
func (r *resource) holding(t *testing.T) (annotated, data int) {
	t.Helper()
	for _, stored := range r.Raw(t) {
		var object struct {
			Metadata metav1.ObjectMeta `json:"metadata"`
			Spec     map[string]string `json:"spec"`
		}
		expect.NoError(t, json.Unmarshal(stored.Value, &object))
		if strings.Contains(object.Metadata.Annotations[conversion.AnnotationName(r.CRD.Name, "v1beta1")], "precious") {
			annotated++
		}
		if object.Spec["note"] == "precious" {
			data++
		}
	}
	return annotated, data
}

// testRestore writes objects at v1beta1 while v1 lacks a field, and migrates them after v1 gets it.
// One object is refused at v1beta1.
func testRestore(t *testing.T, r *resource) {
	const notes = 40
	r.addNote(t, 0)
	server := &rulesConverter{}
	ruleset := server.use(t, r.CRD)
	r.convertThrough(t, server.convert)
	withNote := func(version string, i int) *unstructured.Unstructured {
		object := r.Object(version, i)
		object.Object["spec"] = map[string]any{"host": host, "note": "precious"}
		return object
	}
	expect.Eventually(t, "the API server converts", func() (bool, string) {
		one := withNote("v1beta1", 9999)
		expect.NoError(t, r.Client.Create(t.Context(), one))
		annotated, _ := r.holding(t)
		expect.NoError(t, r.Client.Delete(t.Context(), one))
		return annotated == 1, ""
	})
	for i := range notes {
		expect.NoError(t, r.Client.Create(t.Context(), withNote("v1beta1", r.Objects+i)))
	}
	if annotated, data := r.holding(t); annotated != notes || data != 0 {
		t.Fatalf("%d objects hold a note, %d have one: nothing is preserved", annotated, data)
	}

	first := r.engine(t, "before")
	first.Inventory = inventoryOf(t, ruleset)
	record := r.mustRun(t, first)
	if held := record.Preserved; !record.Complete() || record.Placed != 0 || held.Seen != record.Total || held.Objects != notes || held.Versions[0].Fields[0].Path != ".spec.note" {
		t.Fatalf("record is %+v, holdings %+v", record, record.Preserved)
	}

	r.addNote(t, 1)
	expect.Success(t, "v1 has the field", func(ctx context.Context) error {
		return r.Client.Create(ctx, withNote("v1", 9999), client.DryRunAll, client.FieldValidation("Strict"))
	})
	ruleset = server.use(t, r.CRD)
	refused := migrationtest.ObjectName(r.Objects + 1)
	r.RefuseUpdates(t, "v1beta1", `object.metadata.name != "`+refused+`"`, r.Objects+1)
	before := r.revisions(t)
	second := r.engine(t, "after")
	second.Inventory = inventoryOf(t, ruleset)
	record = r.mustRun(t, second)
	if !record.Complete() || record.Placed != notes-1 || record.Unplaced != 1 || record.Rewritten != notes-1 || record.Preserved.Objects != 1 {
		t.Errorf("record is %+v, holdings %+v", record, record.Preserved)
	}
	if len(record.Refused) != 1 || record.Refused[0].Object != "default/"+refused || !strings.Contains(record.Refused[0].Message, "is held back") {
		t.Errorf("refused are %+v", record.Refused)
	}
	if annotated, data := r.holding(t); annotated != 1 || data != notes-1 {
		t.Errorf("%d objects hold a note in etcd, %d have one", annotated, data)
	}
	after := r.revisions(t)
	for key, revision := range before {
		if path.Base(key) < migrationtest.ObjectName(r.Objects) && after[key] != revision {
			t.Errorf("%s holds nothing, and was written", key)
		}
	}

	third := r.engine(t, "again")
	third.Inventory = second.Inventory
	record = r.mustRun(t, third)
	if diff := cmp.Diff(after, r.revisions(t)); diff != "" || record.Rewritten != 0 || record.Placed != 0 || record.Unplaced != 1 {
		t.Errorf("the second run wrote: %+v", record)
	}
}
