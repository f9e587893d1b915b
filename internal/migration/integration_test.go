// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package migration

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/migration/migrationtest"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// TestIntegration shows what depends on a real API server and its etcd. TestMigrate in internal/cli/cmd shows
// more: refused objects, and runs without a right or without a connection.
func TestIntegration(t *testing.T) {
	server := testenv.For(t, testenv.Options{})
	t.Run("runs", func(t *testing.T) {
		for plural, test := range map[string]struct {
			objects int
			run     func(*testing.T, *resource)
		}{
			"faulties":     {60, testFaulty},
			"unavailables": {60, testUnavailable},
			"statuses":     {30, testStatus},
			"busies":       {200, testWriters},
			"rewounds":     {120, testRestoredEtcd},
			"labelleds":    {60, testLabelledCheckpoint},
			"holders":      {20, testRestore},
			"uncacheds":    {1, testWatchCache},
			"resumeds":     {120, testResumed},
			"droppeds":     {120, testConversionDropped},
		} {
			t.Run(plural, func(t *testing.T) {
				t.Parallel()
				r := newStored(t, server, plural, test.objects)
				r.Change(t, migrationtest.StoreV1)
				test.run(t, r)
			})
		}
		t.Run("auditeds", func(t *testing.T) {
			t.Parallel()
			testLag(t, server)
		})
	})
	t.Run("logs and records contain no object data", func(t *testing.T) { testNothingLeaks(t, server) })
}

// The pod is killed in the middle of a page, etcd compacts the snapshot of the list, and another
// pod continues.
func testResumed(t *testing.T, r *resource) {
	ctx, kill := context.WithCancel(logTo(t))
	defer kill()
	engine := r.engine(t, "resumed")
	engine.PageSize = 20
	engine.Patcher = atPatch(engine.Patcher, 50, kill)
	if _, err := engine.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("error is %v", err)
	}
	if stored := r.Stored(t); stored["v1"] < 40 || stored["v1beta1"] == 0 {
		t.Fatalf("the first pod left %v", stored)
	}
	_, revision, err := r.Etcd.List(t.Context(), "/registry/"+migrationtest.Group)
	expect.NoError(t, err)
	if err := r.Etcd.Compact(t.Context(), revision); err != nil && !strings.Contains(err.Error(), "has been compacted") {
		t.Fatal(err)
	}
	engine = r.engine(t, "resumed")
	engine.PageSize = 20
	record := r.mustRun(t, engine)
	r.WantStored(t, map[string]int{"v1": r.Objects})
	if !record.Complete() || record.Total != 120 || record.Current > 20 {
		t.Errorf("record is %+v", record)
	}
	expect.Equal(t, "pages", 7, record.Checkpoint.Pages) // the first one of the second pod is smaller
}

// The conversion is removed during the second page, for example because the definition is replaced by one
// without it: objects that are rewritten afterwards would not be converted.
func testConversionDropped(t *testing.T, r *resource) {
	r.convertBy(t, mark)
	engine := r.engine(t, "pinned")
	engine.PageSize = 20
	engine.Patcher = atPatch(engine.Patcher, 30, func() {
		r.Change(t, func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
		})
	})
	before := r.revisions(t)
	record := r.mustRun(t, engine)
	if record.State != contract.StateAborted || record.Complete() || record.Failed != 0 || record.Checkpoint.Pages > 2 {
		t.Errorf("record is %+v", record)
	}
	wantError(t, errors.New(record.Message), fmt.Sprintf(
		"CustomResourceDefinition %s changed during the run (generation %d, was %d): nothing more was rewritten", engine.Pin.Name, engine.Pin.Generation+1, engine.Pin.Generation))
	for _, object := range r.Raw(t) {
		key := string(object.Key)
		if path.Base(key) >= migrationtest.ObjectName(40) && (object.ModRevision != before[key] || !strings.Contains(string(object.Value), `"`+host+`"`)) {
			t.Errorf("%s was written at revision %d: %s", key, object.ModRevision, object.Value)
		}
	}
}
