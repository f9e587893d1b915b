// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package migration

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/migration/migrationtest"
	"github.com/conversion-operator/conversion-operator/internal/test/etcd"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// One object cannot be converted, and fails every list; the conversion of another one exceeds the
// size limit of etcd.
func testFaulty(t *testing.T, r *resource) {
	r.convertBy(t, func(object *unstructured.Unstructured) error {
		switch object.GetName() {
		case migrationtest.ObjectName(7):
			return errors.New("port is missing")
		case migrationtest.ObjectName(31):
			object.Object["spec"] = map[string]any{"host": strings.Repeat("x", 2<<20)}
		}
		return nil
	})
	engine := r.engine(t, "faulty")
	engine.PageSize, engine.Verify = 16, v1alpha1.MigrationVerifySample
	record := r.mustRun(t, engine)
	wantCounters(t, record, contract.Counters{Total: 60, Rewritten: 58, Failed: 2})
	r.WantStored(t, map[string]int{"v1": 58, "v1beta1": 2})
	got := map[string]v1alpha1.MigrationFailureReason{}
	for _, f := range record.Failures {
		got[f.Object] = f.Reason
	}
	want := map[string]v1alpha1.MigrationFailureReason{
		"default/" + migrationtest.ObjectName(7): v1alpha1.FailureConversionFailed, "default/" + migrationtest.ObjectName(31): v1alpha1.FailureTooLarge,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("failures (-want +got):\n%s\n%+v", diff, record.Failures)
	}
}

// Objects are written at the old version, as by an API server that lags behind, and cannot be
// converted at that moment. The watch cache of Kubernetes 1.32 then may continue without them, so
// that lists at the storage version lack them until it is filled again.
func testWatchCache(t *testing.T, r *resource) {
	var refuses atomic.Bool
	r.convertBy(t, func(*unstructured.Unstructured) error {
		if refuses.Load() {
			return errors.New("the converter is starting")
		}
		return nil
	})
	listed := func() int {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: migrationtest.Group, Version: "v1", Kind: r.CRD.Spec.Names.ListKind})
		if r.Client.List(t.Context(), list, client.Limit(500)) != nil {
			return -1
		}
		return len(list.Items)
	}
	expect.Eventually(t, "the watch cache is filled", func() (bool, string) { return listed() == 1, "" })
	original := r.Raw(t)[0]
	key := strings.TrimSuffix(string(original.Key), migrationtest.ObjectName(0))
	attempts := 40
	if testenv.AtLeast(t, r.Kubeconfig, "v1.33") {
		attempts = 3
	}
	for n := 1; n <= attempts && listed() == n; n++ {
		refuses.Store(true)
		r.Objects = n + 1
		value := strings.ReplaceAll(string(original.Value), migrationtest.ObjectName(0), migrationtest.ObjectName(n))
		expect.NoError(t, r.Etcd.Put(t.Context(), key+migrationtest.ObjectName(n), value))
		for range 5 {
			listed() // asks etcd how far its watch is
		}
		refuses.Store(false)
		expect.Eventually(t, "objects are listed", func() (bool, string) { return listed() >= 0, "the list fails" })
	}
	t.Logf("of %d objects, the watch cache has %d", r.Objects, listed())
	engine := r.engine(t, "uncached")
	patcher, refused := engine.Patcher, sync.Map{}
	engine.Patcher = patchFunc(func(ctx context.Context, patch Patch) (*metav1.PartialObjectMetadata, error) {
		if _, again := refused.LoadOrStore(patch.Name, true); !again {
			return nil, conflict(patch.Name) // so that each object is read again, by its name
		}
		return patcher.Patch(ctx, patch)
	})
	record := r.mustRun(t, engine)
	r.WantStored(t, map[string]int{"v1": r.Objects})
	if !record.Complete() {
		t.Errorf("record is %+v", record)
	}
}

// The converter is unavailable until the record says that the run waits. API servers before
// Kubernetes 1.37 can store objects that they have converted before without it, and drop
// managedFields: all objects must have managedFields in the end.
func testUnavailable(t *testing.T, r *resource) {
	var unavailable atomic.Bool
	r.convertBy(t, func(object *unstructured.Unstructured) error {
		if unavailable.Load() {
			panic(http.ErrAbortHandler)
		}
		return mark(object)
	})
	engine := r.engine(t, "unavailable")
	engine.Patcher = atPatch(engine.Patcher, 20, func() { unavailable.Store(true) })
	waited := ""
	engine.Observe = func(record contract.Record) {
		if record.Waiting != "" {
			waited = record.Waiting
			unavailable.Store(false)
		}
	}
	record := r.mustRun(t, engine)
	if !record.Complete() {
		t.Errorf("record is %+v", record)
	}
	wantError(t, errors.New(waited), "patches wait: ")
	r.WantStored(t, map[string]int{"v1": 60})
	for _, object := range r.Raw(t) {
		var stored metav1.PartialObjectMetadata
		expect.NoError(t, json.Unmarshal(object.Value, &stored))
		if len(stored.ManagedFields) != 1 || stored.ManagedFields[0].APIVersion != migrationtest.Group+"/v1beta1" || !strings.Contains(string(object.Value), `"converted"`) {
			t.Errorf("%s is stored as %s", object.Key, object.Value)
		}
	}
}

// A refused object is accepted through its status, with no change but its version.
func testStatus(t *testing.T, r *resource) {
	r.Change(t, func(crd *apiextensionsv1.CustomResourceDefinition) {
		for i := range crd.Spec.Versions {
			crd.Spec.Versions[i].Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
		}
	})
	r.RefuseUpdates(t, "*", `object.metadata.name != "`+migrationtest.ObjectName(7)+`"`, 7)
	engine := r.engine(t, "fallback")
	engine.Fallback = []v1alpha1.MigrationFallback{v1alpha1.MigrationFallbackStatus}
	record := r.mustRun(t, engine)
	wantCounters(t, record, contract.Counters{Total: 30, Rewritten: 30, ByFallback: 1})
	r.WantStored(t, map[string]int{"v1": 30})
	if len(record.Predicted) != 1 || record.Verified != 30 {
		t.Errorf("record is %+v", record)
	}
	object := r.Object("v1", 7)
	expect.NoError(t, r.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	expect.Equal[any](t, "spec", map[string]any{"host": host}, object.Object["spec"])
}

// Several clients update, delete and create objects at both versions, from before the run until
// after it.
func testWriters(t *testing.T, r *resource) {
	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for writer := range uint64(3) {
		writers.Go(func() { r.writeUntil(ctx, t, rand.New(rand.NewPCG(writer, 1))) })
	}
	engine := r.engine(t, "busy")
	engine.PageSize = 100
	record := r.mustRun(t, engine)
	stop()
	writers.Wait()
	if !record.Complete() || record.Repeats != 0 {
		t.Errorf("record is %+v", record)
	}
	if old := r.Stored(t)["v1beta1"]; old != 0 {
		t.Errorf("%d objects are stored at v1beta1", old)
	}
}

func (r *resource) writeUntil(ctx context.Context, t *testing.T, random *rand.Rand) {
	for ctx.Err() == nil {
		version := []string{"v1", "v1beta1"}[random.IntN(2)]
		index := random.IntN(r.Objects)
		object := r.Object(version, index)
		var err error
		switch random.IntN(4) {
		case 0:
			if err = r.Client.Delete(ctx, object); err == nil {
				err = r.Client.Create(ctx, r.Object(version, index))
			}
		default:
			patch := []byte(`{"metadata": {"labels": {"written": "` + strconv.FormatUint(random.Uint64(), 36) + `"}}}`)
			err = r.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
		}
		if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) {
			t.Error(err)
			return
		}
	}
}

// Objects and the checkpoint go back to an earlier state while a pod runs, as if etcd was restored
// from a snapshot. The pod ends instead of recording what it remembers, and the next one continues
// from the checkpoint.
func testRestoredEtcd(t *testing.T, r *resource) {
	var snapshot []etcd.Entry
	engine := r.engine(t, "restored")
	engine.PageSize, engine.Verify = 20, v1alpha1.MigrationVerifySample
	engine.Patcher = atPatch(engine.Patcher, 50, func() {
		checkpoint, _, err := r.Etcd.List(t.Context(), "/registry/configmaps/default/"+r.Plural()+"-restored")
		if err != nil || len(checkpoint) != 1 {
			t.Errorf("%d checkpoints, error %v", len(checkpoint), err)
		}
		snapshot = append(r.Raw(t), checkpoint...)
	})
	engine.Patcher = atPatch(engine.Patcher, 90, func() {
		for _, entry := range snapshot {
			if err := r.Etcd.Put(t.Context(), string(entry.Key), string(entry.Value)); err != nil {
				t.Error(err)
			}
		}
	})
	_, err := engine.Run(logTo(t))
	wantError(t, err, "etcd was restored; the next pod continues")
	record := r.mustRun(t, r.engine(t, "restored"))
	r.WantStored(t, map[string]int{"v1": r.Objects})
	if !record.Complete() || record.Repeats != 0 {
		t.Errorf("record is %+v", record)
	}
}

// Another client labels the checkpoint while a pod runs: it saves its record nevertheless.
func testLabelledCheckpoint(t *testing.T, r *resource) {
	engine := r.engine(t, "labelled")
	engine.PageSize = 20
	engine.Patcher = atPatch(engine.Patcher, 30, func() {
		checkpoint := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: r.Plural() + "-labelled"}}
		if err := r.Client.Patch(t.Context(), checkpoint, client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"labels": {"seen": "yes"}}}`))); err != nil {
			t.Error(err)
		}
	})
	if record := r.mustRun(t, engine); !record.Complete() {
		t.Errorf("record is %+v", record)
	}
}
