// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/huge"
)

// TestHugeObjects: a run needs memory for few objects.
func TestHugeObjects(t *testing.T) {
	server := huge.NewServer(t, nil)
	cluster, err := Connect(server.Config, &testSpec)
	expect.NoError(t, err)
	engine := newTestEngine(newFakeAPI(0), &fakeStore{})
	engine.PageSize, engine.Concurrency, engine.Preflight, engine.Verify = contract.DefaultPageSize, contract.DefaultConcurrency, contract.DefaultPreflight, v1alpha1.MigrationVerifyFull
	engine.Lister = cluster
	var tried atomic.Int32
	engine.Patcher = patchFunc(func(_ context.Context, patch Patch) (*metav1.PartialObjectMetadata, error) {
		if patch.DryRun {
			tried.Add(1)
		}
		number, err := strconv.Atoi(patch.Name[len("o-"):])
		after := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: patch.Namespace, Name: patch.Name, ResourceVersion: strconv.Itoa(number + 1), ManagedFields: patch.managedFields}}
		return after, err
	})
	record := mustRun(t, engine)
	expect.Equal(t, "counters", contract.Counters{Total: huge.Objects, Current: huge.Objects}, record.Counters)
	expect.Equal(t, "verified, complete", []any{huge.Objects, true}, []any{int(record.Verified), record.Complete()})
	expect.Equal(t, "tried", contract.DefaultPreflight, int(tried.Load()))
	server.WantFlat(t)
}
