// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/incompressible"
)

const (
	// holdsNote is a value of v1beta1 that has a place at v1 by placing, and
	// holdsOwn one that has none.
	holdsNote  = `{"format":2,"fields":{"/spec/note":"precious"}}`
	holdsOwn   = `{"format":2,"fields":{"/spec/own":1}}`
	annotation = "conversion-operator.io/v1beta1.crontabs.example.com"

	testRuleset = `{"format":3,"crd":"crontabs.example.com","group":"example.com","kind":"CronTab","hub":"v1","versions":["v1","v1beta1"],` +
		`"spokes":[{"version":"v1beta1","root":{"onlySpoke":[{"path":["spec","own"],"anchor":1}]}}]}`
)

// holders returns an engine and four objects: two preserve a value that has a field now, and one
// preserves a value that has none.
func holders(t *testing.T) (*fakeAPI, *fakeStore, *Engine) {
	t.Helper()
	api, store := newFakeAPI(0), &fakeStore{}
	for i, value := range []string{"", holdsNote, holdsOwn, holdsNote} {
		api.write(objectKey(i), "v1")
		if value != "" {
			api.preserve(objectKey(i), annotation, value)
		}
	}
	api.restores, api.onPath = true, func(Patch) error { return nil }
	engine := newTestEngine(api, store)
	engine.OldVersions, engine.PageSize = []string{"v1beta1"}, 3
	engine.Inventory = inventoryOf(t, testRuleset)
	return api, store, engine
}

func inventoryOf(t *testing.T, ruleset string) *Inventory {
	t.Helper()
	inventory, err := NewInventory([]byte(ruleset), "v1")
	expect.NoError(t, err)
	return inventory
}

func TestRestore(t *testing.T) {
	api, _, engine := holders(t)
	record, err := engine.Run(t.Context())
	expect.NoError(t, err)
	if diff := cmp.Diff(contract.Counters{Total: 4, Rewritten: 2, Current: 2}, record.Counters); diff != "" {
		t.Errorf("counters (-want +got):\n%s", diff)
	}
	want := &conversion.Holdings{Seen: 4, Objects: 1, Bytes: int64(len(holdsOwn)), Largest: "ns/a002", LargestBytes: int64(len(holdsOwn)), Versions: []conversion.VersionHoldings{
		{Version: "v1beta1", Objects: 1, Bytes: int64(len(holdsOwn)), Fields: []conversion.FieldHoldings{{Path: ".spec.own", Objects: 1}}},
	}}
	if diff := cmp.Diff(want, record.Preserved); diff != "" {
		t.Errorf("preserved (-want +got):\n%s", diff)
	}
	if record.Placed != 2 || record.Unplaced != 0 || record.Ruleset != conversion.HashOf([]byte(testRuleset)) {
		t.Errorf("record is %+v", record)
	}
	revision := api.revision
	repeated := newTestEngine(api, &fakeStore{})
	repeated.OldVersions, repeated.Inventory = engine.OldVersions, engine.Inventory
	second, err := repeated.Run(t.Context())
	expect.NoError(t, err)
	if api.revision != revision || second.Rewritten != 0 || second.Placed != 0 {
		t.Errorf("the second run wrote: %+v", second)
	}
}

// TestStorageVersionWriteRestoresNothing checks that a write that only changes the storage version
// is not counted as a restore.
func TestStorageVersionWriteRestoresNothing(t *testing.T) {
	api, _, engine := holders(t)
	api.restores = false
	api.write(objectKey(1), "v1beta1")
	record, err := engine.Run(t.Context())
	expect.NoError(t, err)
	if !record.Complete() || record.Rewritten != 1 || record.Placed != 0 || record.Preserved.Objects != 3 {
		t.Errorf("record is %+v", record)
	}
}

// TestRestoreRefused checks that an object is migrated even if a write at the version of its value
// is refused.
func TestRestoreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*fakeAPI, *Engine)
		reason v1alpha1.MigrationFailureReason
	}{
		"by the schema": {func(api *fakeAPI, _ *Engine) {
			api.onPath = func(patch Patch) error {
				if patch.Name == "a001" {
					return apierrors.NewInvalid(schema.GroupKind{Kind: "CronTab"}, patch.Name, nil)
				}
				return nil
			}
		}, v1alpha1.FailureInvalid},
		"no such endpoint": {func(api *fakeAPI, _ *Engine) {
			api.onPath = func(patch Patch) error {
				if patch.Name == "a001" {
					return apierrors.NewNotFound(testResource.GroupResource(), "")
				}
				return nil
			}
		}, v1alpha1.FailureNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			api, _, engine := holders(t)
			test.change(api, engine)
			api.write(objectKey(1), "v1beta1")
			record, err := engine.Run(t.Context())
			expect.NoError(t, err)
			if !record.Complete() || record.Rewritten != 2 || record.Placed != 1 || record.Unplaced != 1 || len(record.Refused) != 1 || len(api.oldKeys()) != 0 {
				t.Fatalf("record is %+v", record)
			}
			if r := record.Refused[0]; r.Object != "ns/a001" || r.Reason != test.reason || r.Version != "v1beta1" {
				t.Errorf("refused is %+v", r)
			}
			if record.Preserved.Objects != 2 {
				t.Errorf("preserved is %+v", record.Preserved)
			}
		})
	}
}

func TestRestoreAtUnservedVersion(t *testing.T) {
	_, _, engine := holders(t)
	engine.OldVersions = nil
	record, err := engine.Run(t.Context())
	expect.NoError(t, err)
	if record.Unplaced != 2 || record.Refused[0].Reason != v1alpha1.FailureNotServed || !record.Complete() || record.Preserved.Objects != 3 {
		t.Errorf("record is %+v", record)
	}
}

// TestRestoreOfStorageVersion checks that values of the storage version are restored by a write at
// another version.
func TestRestoreOfStorageVersion(t *testing.T) {
	api, _, engine := holders(t)
	api.preserve(objectKey(0), "conversion-operator.io/v1.crontabs.example.com", holdsNote)
	record, err := engine.Run(t.Context())
	expect.NoError(t, err)
	if record.Placed != 3 || record.Unplaced != 0 {
		t.Errorf("record is %+v", record)
	}
}

func TestRestoreOfDeletedObject(t *testing.T) {
	api, _, engine := holders(t)
	api.onPath = func(patch Patch) error {
		if patch.Name == "a001" {
			api.remove("ns/a001")
		}
		return nil
	}
	record, err := engine.Run(t.Context())
	expect.NoError(t, err)
	if record.Gone != 1 || !record.Complete() || record.Preserved.Seen != 3 {
		t.Errorf("record is %+v, holdings %+v", record, record.Preserved)
	}
}

// TestRestoreIsVerified checks the objects again without further writes at other versions.
func TestRestoreIsVerified(t *testing.T) {
	api, _, engine := holders(t)
	api.restores = false // the values violate the schema
	engine.Verify = v1alpha1.MigrationVerifyFull
	paths := 0
	api.onPath = func(Patch) error { paths++; return nil }
	record, err := engine.Run(t.Context())
	expect.NoError(t, err)
	if paths != 2 || record.Verified != 4 || record.Preserved.Objects != 3 || record.Placed != 0 || record.Unplaced != 2 {
		t.Errorf("%d writes at another version, record is %+v", paths, record)
	}
	if r := record.Refused[0]; r.Reason != v1alpha1.FailureDoesNotFit || r.Object != "ns/a001" || !strings.Contains(r.Message, "at v1beta1: the value of .spec.note stays in the annotation conversion-operator.io/v1beta1.crontabs.example.com: ") {
		t.Errorf("refused is %+v", r)
	}
}

// TestCountAfterRestart checks that each object is counted once, whenever the pod is killed.
func TestCountAfterRestart(t *testing.T) {
	for kill := range 12 {
		_, store, engine := holders(t)
		ctx, cancel := context.WithCancel(t.Context())
		store.afterSave = func(string) {
			if kill--; kill == 0 {
				cancel()
			}
		}
		_, err := engine.Run(ctx)
		cancel()
		if err != nil {
			engine.Inventory = inventoryOf(t, testRuleset)
			_, err = engine.Run(t.Context())
			expect.NoError(t, err)
		}
		records := store.records(t)
		if last := records[len(records)-1]; last.Preserved == nil || last.Preserved.Seen != 4 || last.Preserved.Objects != 1 {
			t.Errorf("holdings are %+v", last.Preserved)
		}
	}
}

// TestCountByOneRuleset checks that a run that began without rules counts nothing.
func TestCountByOneRuleset(t *testing.T) {
	_, store, engine := holders(t)
	engine.Inventory = nil
	ctx, cancel := context.WithCancel(t.Context())
	saves := 0
	store.afterSave = func(string) {
		if saves++; saves == 3 {
			cancel()
		}
	}
	_, err := engine.Run(ctx)
	wantError(t, err, context.Canceled.Error())
	engine.Inventory = inventoryOf(t, testRuleset)
	record, err := engine.Run(t.Context())
	expect.NoError(t, err)
	if record.Ruleset != "" || record.Preserved != nil || !record.Complete() {
		t.Errorf("record is %+v", record)
	}
}

// TestCountOfRetry checks that a retry continues the count of the previous run.
func TestCountOfRetry(t *testing.T) {
	api, store, engine := holders(t)
	api.onPatch = func(key string) error {
		if key == "ns/a002" {
			return apierrors.NewInvalid(schema.GroupKind{Kind: "CronTab"}, "a002", nil)
		}
		return nil
	}
	first, err := engine.Run(t.Context())
	expect.NoError(t, err)
	if first.Failed != 1 || first.Preserved.Seen != 3 || first.Preserved.Objects != 0 {
		t.Fatalf("record is %+v", first)
	}
	api.onPatch = nil
	retry := newTestEngine(api, &fakeStore{})
	expect.NoError(t, retry.Clock.Sleep(t.Context(), time.Hour))
	retry.Spec.Run, retry.PreviousRun, retry.OldVersions, retry.Inventory = "run-2", store, engine.OldVersions, inventoryOf(t, testRuleset)
	record, err := retry.Run(t.Context())
	expect.NoError(t, err)
	if from := record.CountedFrom(); !from.Equal(first.StartTime) || !from.Before(record.StartTime) {
		t.Errorf("the count is from %v, and the runs began at %v and %v", from, first.StartTime, record.StartTime)
	}
	if record.RetryOf != "run-1" || record.Preserved.Seen != 4 || record.Preserved.Objects != 1 || record.Placed != 2 {
		t.Errorf("record is %+v, holdings %+v", record, record.Preserved)
	}
}

type rulesets map[string]string

func (r rulesets) Ruleset(_ context.Context, configMap, hash string) ([]byte, error) {
	return []byte(r[configMap+"/"+hash]), nil
}

func TestReadInventory(t *testing.T) {
	stored := rulesets{"rulesets/good": testRuleset, "rulesets/bad": "{"}
	for name, want := range map[string]bool{"good": true, "bad": false, "gone": false} {
		spec := &contract.Spec{Ruleset: name, RulesetConfigMap: "rulesets", Resource: metav1.GroupVersionResource{Version: "v1"}}
		got, err := ReadInventory(t.Context(), stored, spec, newFakeClock())
		if err != nil || (got != nil) != want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// TestTruncatedIsNotWritten checks that an object that was read in a truncated form fails without a
// write, also during verification, and that the others are migrated.
func TestTruncatedIsNotWritten(t *testing.T) {
	ruleset := strings.Replace(testRuleset, `"hub"`, `"truncating":{"key":"of the test"},"hub"`, 1)
	rules, err := conversion.Load([]byte(ruleset))
	expect.NoError(t, err)
	converter, err := conversion.NewConverter(rules)
	expect.NoError(t, err)
	object := `{"apiVersion":"example.com/v1beta1","kind":"CronTab","metadata":{"name":"a"},"spec":{"own":"` + incompressible.Text(400<<10) + `"}}`
	converted, err := converter.Convert(nil, []byte(object), "v1")
	expect.NoError(t, err)
	var truncated metav1.PartialObjectMetadata
	expect.NoError(t, json.Unmarshal(converted, &truncated))
	if omitted := converter.OmittedIn(converted); omitted == nil || omitted.Bytes < 400<<10 {
		t.Fatalf("it is not truncated: %+v", omitted)
	}

	api, _, engine := holders(t)
	api.preserve(objectKey(2), annotation, truncated.Annotations[annotation])
	engine.Inventory, engine.Verify = inventoryOf(t, ruleset), v1alpha1.MigrationVerifyFull
	written := map[string]int{}
	api.onPatch = func(key string) error {
		written[key]++
		return nil
	}
	record, err := engine.Run(t.Context())
	expect.NoError(t, err)
	if written[objectKey(2)] != 0 || len(written) != 3 {
		t.Errorf("written are %v", written)
	}
	if len(record.Failures) != 1 || record.Failures[0].Reason != v1alpha1.FailureTooLarge || !strings.Contains(record.Failures[0].Message, "make .spec.own smaller") {
		t.Errorf("failures are %+v", record.Failures)
	}
}
