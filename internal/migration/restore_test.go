// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package migration

import (
	"context"
	"encoding/json"
	"net/http"
	"path"
	"strings"
	"sync/atomic"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// rulesConverter converts like converter pods, by rules that may change.
type rulesConverter struct {
	by atomic.Pointer[conversion.Converter]
}

func (s *rulesConverter) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var review apiextensionsv1.ConversionReview
	if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, raw := range review.Request.Objects {
		out, err := s.by.Load().Convert(nil, raw.Raw, path.Base(review.Request.DesiredAPIVersion))
		if err != nil {
			review.Response.Result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
			review.Response.ConvertedObjects = nil
			break
		}
		review.Response.ConvertedObjects = append(review.Response.ConvertedObjects, runtime.RawExtension{Raw: out})
	}
	review.Request = nil
	_ = json.NewEncoder(w).Encode(review)
}

// ruleset compiles the current rules: only those that follow from the schemas.
func (r *resource) ruleset(t *testing.T) []byte {
	t.Helper()
	crd := r.definition()
	expect.NoError(t, r.client.Get(t.Context(), client.ObjectKeyFromObject(crd), crd))
	compiled := compile.Compile(crd, &v1alpha1.DeclarativeConverter{Hub: "v1", Spokes: []v1alpha1.Spoke{{Version: "v1beta1"}}})
	if compiled.Ruleset == nil {
		t.Fatalf("the rules do not compile: %v", compiled.Errors)
	}
	text, err := compiled.Ruleset.Marshal()
	expect.NoError(t, err)
	return text
}

func (s *rulesConverter) use(t *testing.T, ruleset []byte) {
	t.Helper()
	plan, err := conversion.Load(ruleset)
	expect.NoError(t, err)
	converter, err := conversion.NewConverter(plan)
	expect.NoError(t, err)
	s.by.Store(converter)
}

// note adds the field to the schema of a version.
func (r *resource) note(t *testing.T, index string) {
	t.Helper()
	expect.NoError(t, r.change(t.Context(), `[{"op": "add", "path": "/spec/versions/`+index+`/schema/openAPIV3Schema/properties/spec/properties/note", "value": {"type": "string"}}]`))
}

// holding returns the numbers of objects in etcd whose annotations preserve a note, and whose spec
// has one.
func (r *resource) holding(t *testing.T) (annotated, data int) {
	t.Helper()
	for _, stored := range r.raw(t) {
		var object struct {
			Metadata metav1.ObjectMeta `json:"metadata"`
			Spec     map[string]string `json:"spec"`
		}
		expect.NoError(t, json.Unmarshal(stored.Value, &object))
		if strings.Contains(object.Metadata.Annotations[conversion.AnnotationName(r.pin.Name, "v1beta1")], "precious") {
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
	r.note(t, "0")
	server := &rulesConverter{}
	server.use(t, r.ruleset(t))
	r.convertThrough(t, server)
	for i := range notes {
		object := r.object("v1beta1", r.objects+i)
		object.Object["spec"] = map[string]any{"host": host, "note": "precious"}
		expect.NoError(t, r.client.Create(t.Context(), object))
	}
	if annotated, data := r.holding(t); annotated != notes || data != 0 {
		t.Fatalf("%d objects hold a note, %d have one: nothing is preserved", annotated, data)
	}

	first := r.engine(t, "before")
	first.OldVersions, first.Inventory = []string{"v1beta1"}, inventoryOf(t, string(r.ruleset(t)))
	record := r.mustRun(t, "counted", first)
	if held := record.Preserved; !record.Complete() || record.Placed != 0 || held.Seen != record.Total || held.Objects != notes || held.Versions[0].Fields[0].Path != ".spec.note" {
		t.Fatalf("record is %+v, holdings %+v", record, record.Preserved)
	}

	r.note(t, "1")
	waitFor(t, "v1 has the field", func(ctx context.Context) (bool, error) {
		object := r.object("v1", 9999)
		object.Object["spec"] = map[string]any{"note": "precious"}
		err := r.client.Create(ctx, object, client.DryRunAll, client.FieldValidation("Strict"))
		return err == nil, nil
	})
	ruleset := r.ruleset(t)
	server.use(t, ruleset)
	r.repin(t)
	r.refuseUpdates(t, objectName(r.objects+1), "v1beta1")
	before := r.revisions(t)
	second := r.engine(t, "after")
	second.OldVersions, second.Inventory = []string{"v1beta1"}, inventoryOf(t, string(ruleset))
	record = r.mustRun(t, "placed", second)
	if !record.Complete() || record.Placed != notes-1 || record.Unplaced != 1 || record.Rewritten != notes-1 || record.Preserved.Objects != 1 {
		t.Errorf("record is %+v, holdings %+v", record, record.Preserved)
	}
	if len(record.Refused) != 1 || record.Refused[0].Object != "default/"+objectName(r.objects+1) || !strings.Contains(record.Refused[0].Message, "is held back") {
		t.Errorf("refused are %+v", record.Refused)
	}
	if annotated, data := r.holding(t); annotated != 1 || data != notes-1 {
		t.Errorf("%d objects hold a note in etcd, %d have one", annotated, data)
	}
	for i := range r.objects {
		if name := objectName(i); r.revisions(t)[name] != before[name] {
			t.Fatalf("%s holds nothing, and was written", name)
		}
	}

	revision := r.revision(t)
	third := r.engine(t, "again")
	third.OldVersions, third.Inventory = second.OldVersions, second.Inventory
	record = r.mustRun(t, "found current", third)
	if r.revision(t) != revision || record.Rewritten != 0 || record.Placed != 0 || record.Unplaced != 1 {
		t.Errorf("the second run wrote: %+v", record)
	}
}

// convertThrough makes the API server convert by a server, and waits until it does.
func (r *resource) convertThrough(t *testing.T, handler http.Handler) {
	t.Helper()
	r.switchConversion(t, handler)
	probe := r.object("v1beta1", 9999)
	probe.Object["spec"] = map[string]any{"note": "precious"}
	waitFor(t, "the API server converts", func(ctx context.Context) (bool, error) {
		one := probe.DeepCopy()
		if err := r.client.Create(ctx, one); err != nil {
			return false, err
		}
		annotated, _ := r.holding(t)
		return annotated == 1, r.client.Delete(ctx, one)
	})
}
