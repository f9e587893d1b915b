// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package migration

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/test/etcd"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/release"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// One object cannot be converted, and fails every list; the conversion of another one exceeds the
// size limit of etcd.
func testFaulty(t *testing.T, r *resource) {
	r.convertBy(t, func(object *unstructured.Unstructured) error {
		switch object.GetName() {
		case objectName(7):
			return errors.New("port is missing")
		case objectName(31):
			object.Object["spec"] = map[string]any{"host": strings.Repeat("x", 2<<20)}
		}
		return nil
	})
	engine := r.engine(t, "faulty")
	engine.PageSize, engine.Verify, engine.OldVersions = 16, v1alpha1.MigrationVerifySample, []string{"v1beta1"}
	record := r.mustRun(t, "rewritten but two", engine)
	r.wantCounters(t, record, contract.Counters{Total: 60, Rewritten: 58, Failed: 2})
	r.wantStored(t, map[string]int{"v1": 58, "v1beta1": 2})
	got := map[string]v1alpha1.MigrationFailureReason{}
	for _, f := range record.Failures {
		got[f.Object] = f.Reason
	}
	want := map[string]v1alpha1.MigrationFailureReason{"default/" + objectName(7): v1alpha1.FailureConversionFailed, "default/" + objectName(31): v1alpha1.FailureTooLarge}
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
		list := r.list("v1")
		if r.client.List(t.Context(), list, client.Limit(500)) != nil {
			return -1
		}
		return len(list.Items)
	}
	expect.Eventually(t, "the watch cache is filled", func() (bool, string) { return listed() == 1, "" })
	original := r.raw(t)[0]
	key := strings.TrimSuffix(string(original.Key), objectName(0))
	attempts := 40
	if testenv.AtLeast(t, r.config, "v1.33") {
		attempts = 3
	}
	for n := 1; n <= attempts && listed() == n; n++ {
		refuses.Store(true)
		r.objects = n + 1
		value := strings.ReplaceAll(string(original.Value), objectName(0), objectName(n))
		expect.NoError(t, r.etcd.Put(t.Context(), key+objectName(n), value))
		for range 5 {
			listed() // asks etcd how far its watch is
		}
		refuses.Store(false)
		expect.Eventually(t, "objects are listed", func() (bool, string) { return listed() >= 0, "the list fails" })
	}
	t.Logf("of %d objects, the watch cache has %d", r.objects, listed())
	engine := r.engine(t, "uncached")
	engine.OldVersions = []string{"v1beta1"}
	record := r.mustRun(t, "all rewritten", engine)
	r.wantStored(t, map[string]int{"v1": r.objects})
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
			return errConverterUnavailable
		}
		return mark(object)
	})
	engine := r.engine(t, "unavailable")
	engine.OldVersions = []string{"v1beta1"}
	engine.Patcher = atPatch(engine.Patcher, 20, func() { unavailable.Store(true) })
	store := engine.Checkpoints
	waited := ""
	engine.Checkpoints = storeFunc{store, func(data map[string]string) {
		if record, err := contract.ParseRecord([]byte(data[contract.RecordKey])); err == nil && record.Waiting != "" {
			waited = record.Waiting
			unavailable.Store(false)
		}
	}}
	record := r.mustRun(t, "rewritten after a wait", engine)
	if !record.Complete() {
		t.Errorf("record is %+v", record)
	}
	wantError(t, errors.New(waited), "patches wait: ")
	r.wantStored(t, map[string]int{"v1": 60})
	for _, object := range r.raw(t) {
		var stored metav1.PartialObjectMetadata
		expect.NoError(t, json.Unmarshal(object.Value, &stored))
		if len(stored.ManagedFields) != 1 || stored.ManagedFields[0].APIVersion != testGroup+"/v1beta1" || !strings.Contains(string(object.Value), `"converted"`) {
			t.Errorf("%s is stored as %s", object.Key, object.Value)
		}
	}
}

// storeFunc calls a function with the data of every save.
type storeFunc struct {
	Checkpoints
	see func(data map[string]string)
}

func (s storeFunc) Save(ctx context.Context, data map[string]string) error {
	s.see(data)
	return s.Checkpoints.Save(ctx, data)
}

func testStatus(t *testing.T, r *resource) {
	expect.NoError(t, r.change(t.Context(), `[{"op": "add", "path": "/spec/versions/0/subresources", "value": {"status": {}}},
		{"op": "add", "path": "/spec/versions/1/subresources", "value": {"status": {}}}]`))
	r.repin(t)
	r.refuseUpdates(t, objectName(7), "*")
	r.byFallback(t, v1alpha1.MigrationFallbackStatus)
}

func testOldVersion(t *testing.T, r *resource) {
	r.refuseUpdates(t, objectName(7), "v1")
	r.byFallback(t, v1alpha1.MigrationFallbackStatus, v1alpha1.MigrationFallbackOldVersion)
}

// byFallback expects one object to be rewritten by a fallback, with no change but its version.
func (r *resource) byFallback(t *testing.T, fallback ...v1alpha1.MigrationFallback) {
	t.Helper()
	engine := r.engine(t, "fallback")
	engine.Fallback, engine.OldVersions = fallback, []string{"v1beta1"}
	record := r.mustRun(t, "rewritten", engine)
	r.wantCounters(t, record, contract.Counters{Total: 30, Rewritten: 30, ByFallback: 1})
	r.wantStored(t, map[string]int{"v1": 30})
	if len(record.Predicted) != 1 || record.Verified != 30 {
		t.Errorf("record is %+v", record)
	}
	object := r.object("v1", 7)
	expect.NoError(t, r.client.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	if diff := cmp.Diff(map[string]any{"host": host}, object.Object["spec"]); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
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
	record := r.mustRun(t, "rewritten among writers", engine)
	stop()
	writers.Wait()
	if !record.Complete() || record.Repeats != 0 {
		t.Errorf("record is %+v", record)
	}
	if old := r.stored(t)["v1beta1"]; old != 0 {
		t.Errorf("%d objects are stored at v1beta1", old)
	}
}

func (r *resource) writeUntil(ctx context.Context, t *testing.T, random *rand.Rand) {
	for ctx.Err() == nil {
		version := []string{"v1", "v1beta1"}[random.IntN(2)]
		index := random.IntN(r.objects)
		object := r.object(version, index)
		var err error
		switch random.IntN(4) {
		case 0:
			if err = r.client.Delete(ctx, object); err == nil {
				err = r.client.Create(ctx, r.object(version, index))
			}
		default:
			patch := []byte(`{"metadata": {"labels": {"written": "` + strconv.FormatUint(random.Uint64(), 36) + `"}}}`)
			err = r.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
		}
		if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) {
			t.Error(err)
			return
		}
	}
}

// Every pod is killed in its second page, and etcd then compacts all snapshots.
func testChaos(t *testing.T, r *resource) {
	release.Only(t, "TestIntegration")
	pods := 0
	for ; pods < 20; pods++ {
		ctx, kill := context.WithCancel(logTo(t))
		engine := r.engine(t, "chaos")
		engine.PageSize, engine.Preflight = 100, 0
		engine.Patcher = atPatch(engine.Patcher, 150, kill)
		record, err := engine.Run(ctx)
		kill()
		if err == nil {
			if !record.Complete() || record.Total != 600 || record.Checkpoint.Pages != 6 {
				t.Errorf("record is %+v", record)
			}
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		r.compact(t)
	}
	if pods < 4 {
		t.Errorf("%d pods were killed, want one in every page", pods)
	}
	r.wantStored(t, map[string]int{"v1": 600})
	checkpoint := &corev1.ConfigMap{}
	expect.NoError(t, r.client.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: r.plural + "-chaos"}, checkpoint))
	if _, err := contract.ParseRecord([]byte(checkpoint.Data[contract.RecordKey])); err != nil {
		t.Error(err)
	}
}

// Objects and the checkpoint go back to an earlier state while a pod runs, as if etcd was restored
// from a snapshot. The pod ends instead of recording what it remembers, and the next one continues
// from the checkpoint.
func testRestoredEtcd(t *testing.T, r *resource) {
	var snapshot []etcd.Entry
	engine := r.engine(t, "restored")
	engine.PageSize, engine.Verify = 100, v1alpha1.MigrationVerifySample
	engine.Patcher = atPatch(engine.Patcher, 250, func() {
		checkpoint, _, err := r.etcd.List(t.Context(), "/registry/configmaps/default/"+r.plural+"-restored")
		if err != nil || len(checkpoint) != 1 {
			t.Errorf("%d checkpoints, error %v", len(checkpoint), err)
		}
		snapshot = append(r.raw(t), checkpoint...)
	})
	engine.Patcher = atPatch(engine.Patcher, 450, func() {
		for _, entry := range snapshot {
			if err := r.etcd.Put(t.Context(), string(entry.Key), string(entry.Value)); err != nil {
				t.Error(err)
			}
		}
	})
	_, err := engine.Run(logTo(t))
	wantError(t, err, "etcd was restored; the next pod continues")

	record := r.mustRun(t, "continued", r.engine(t, "restored"))
	r.wantStored(t, map[string]int{"v1": r.objects})
	if !record.Complete() || record.Repeats != 0 {
		t.Errorf("record is %+v", record)
	}
}

// Another client labels the checkpoint while a pod runs: it saves its record nevertheless.
func testLabelledCheckpoint(t *testing.T, r *resource) {
	engine := r.engine(t, "labelled")
	engine.PageSize = 20
	engine.Patcher = atPatch(engine.Patcher, 30, func() {
		checkpoint := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: r.plural + "-labelled"}}
		if err := r.client.Patch(t.Context(), checkpoint, client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"labels": {"seen": "yes"}}}`))); err != nil {
			t.Error(err)
		}
	})
	if record := r.mustRun(t, "rewritten", engine); !record.Complete() {
		t.Errorf("record is %+v", record)
	}
}
