// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package migration

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/migration/migrationtest"
	"github.com/conversion-operator/conversion-operator/internal/operator/tracing"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// propagationDelay covers the time in which an API server still encodes at the old version although it
// shows the new one.
const propagationDelay = 2 * time.Second

// The runs of several tests wait at the same time.
func TestMain(m *testing.M) {
	testenv.Parallel(6)
	os.Exit(m.Run())
}

// resource is a resource whose objects have secrets.
type resource struct{ *migrationtest.Resource }

// newStored creates a resource whose storage version is still v1beta1.
func newStored(t *testing.T, server *testenv.Server, plural string, objects int) *resource {
	t.Helper()
	return &resource{migrationtest.New(t, server, plural, objects, func(_ int, object *unstructured.Unstructured) {
		object.Object["spec"] = map[string]any{"host": host}
		object.SetAnnotations(map[string]string{
			conversion.AnnotationName(plural+"."+migrationtest.Group, "v1alpha1"): `{"format":3,"rules":"","hidden":{"/spec/note":"` + preservedValue + `"}}`,
		})
	})}
}

// spec specifies a run of the current definition.
func (r *resource) spec(run string) *contract.Spec {
	return &contract.Spec{
		FormatVersion: contract.SpecFormat, Run: run, Pin: contract.Pin{Name: r.CRD.Name, UID: r.CRD.UID, Generation: r.CRD.Generation},
		Resource:  metav1.GroupVersionResource{Group: migrationtest.Group, Version: "v1", Resource: r.Plural()},
		Namespace: metav1.NamespaceDefault, RecordConfigMap: r.Plural() + "-" + run, PropagationDelay: metav1.Duration{Duration: propagationDelay},
		Concurrency: contract.DefaultConcurrency, PageSize: contract.DefaultPageSize, Preflight: contract.DefaultPreflight,
		Pace: v1alpha1.MigrationGentle, Verify: v1alpha1.MigrationVerifyFull, OldVersions: []string{"v1beta1"},
	}
}

// engine returns an engine of a run, whose checkpoint is kept.
func (r *resource) engine(t *testing.T, run string) *Engine {
	t.Helper()
	spec := r.spec(run)
	checkpoint := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: spec.Namespace, Name: spec.RecordConfigMap}}
	if err := r.Client.Create(t.Context(), checkpoint); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	engine, err := NewEngine(t.Context(), r.Kubeconfig, spec, tracing.Tracer{}, NewMetrics(r.CRD.Name, "test"))
	expect.NoError(t, err)
	return engine
}

// mustRun runs the engine to its end.
func (r *resource) mustRun(t *testing.T, engine *Engine) contract.Record {
	t.Helper()
	record, err := engine.Run(logTo(t))
	expect.NoError(t, err)
	return record
}

// revisions returns the revision of the last write to each object.
func (r *resource) revisions(t *testing.T) map[string]int64 {
	t.Helper()
	revisions := map[string]int64{}
	for _, object := range r.Raw(t) {
		revisions[string(object.Key)] = object.ModRevision
	}
	return revisions
}

func wantCounters(t *testing.T, record contract.Record, want contract.Counters) {
	t.Helper()
	expect.Equal(t, "counters", want, record.Counters)
}

// atPatch calls do before the nth patch. Later patches wait for it.
func atPatch(p Patcher, n int, do func()) Patcher {
	var mu sync.Mutex
	count := 0
	once := func() {
		mu.Lock()
		defer mu.Unlock()
		if count++; count == n {
			do()
		}
	}
	return patchFunc(func(ctx context.Context, patch Patch) (*metav1.PartialObjectMetadata, error) {
		if !patch.DryRun {
			once()
		}
		return p.Patch(ctx, patch)
	})
}
