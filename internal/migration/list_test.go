// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// Some objects fail every list that includes them. They are named, and all others are rewritten.
func TestFailingListIsBisected(t *testing.T) {
	const atV1, atOld = "v1 ", "v1beta1 "
	tests := map[string]map[string]string{
		"the first":               {objectKey(0): atV1},
		"one in the middle":       {objectKey(17): atV1},
		"the last":                {objectKey(39): atV1},
		"two side by side":        {objectKey(9): atV1, objectKey(10): atV1},
		"several":                 {objectKey(0): atV1, objectKey(13): atV1, objectKey(26): atV1, objectKey(39): atV1},
		"only at the old version": {objectKey(20): atOld},
		"at either version":       {objectKey(5): atV1, objectKey(6): atOld},
		"at all but one version":  {objectKey(11): atV1 + atOld},
	}
	for name, broken := range tests {
		for _, verify := range []v1alpha1.MigrationVerification{v1alpha1.MigrationVerifySample, v1alpha1.MigrationVerifyFull} {
			t.Run(fmt.Sprintf("%s, %s", name, verify), func(t *testing.T) {
				api, store := newFakeAPI(40), &fakeStore{}
				api.broken = broken
				engine := newTestEngine(api, store)
				engine.PageSize, engine.Verify, engine.OldVersions, engine.Preflight = 16, verify, []string{"v1beta1", "v1alpha1"}, 4
				record := mustRun(t, engine)
				want := contract.Counters{Total: 40}
				for _, versions := range broken {
					if versions != atOld {
						want.Failed++
					}
				}
				want.Rewritten = 40 - want.Failed
				expect.Equal(t, "counters", want, record.Counters)
				expect.Equal(t, "state", contract.StateCompleted, record.State)
				expect.Equal(t, "verified", want.Rewritten, record.Verified)
				for _, f := range record.Failures {
					if broken[f.Object] == "" || f.Reason != v1alpha1.FailureConversionFailed {
						t.Errorf("failure is %+v", f)
					}
				}
			})
		}
	}
}

// The watch cache of Kubernetes 1.32 may lack objects; testWatchCache shows that.
func TestObjectsThatAWatchCacheLacksAreRewritten(t *testing.T) {
	for name, size := range map[string]int64{"on one page": 20, "on several pages": 5} {
		t.Run(name, func(t *testing.T) {
			api := newFakeAPI(12)
			api.uncached = map[string]bool{objectKey(0): true, objectKey(3): true, objectKey(11): true}
			engine := newTestEngine(api, &fakeStore{})
			engine.PageSize = size
			expect.Equal(t, "rewritten", 12, mustRun(t, engine).Rewritten)
		})
	}
}

// Such an object that is read again, by its name, is not gone.
func TestObjectsThatAWatchCacheLacksAreNotGone(t *testing.T) {
	api := newFakeAPI(3)
	api.uncached = map[string]bool{objectKey(1): true}
	written := false
	api.onPatch = func(key string) error {
		if key == objectKey(1) && !written {
			written = true
			api.write(key, "v1beta1")
		}
		return nil
	}
	record := mustRun(t, newTestEngine(api, &fakeStore{}))
	expect.Equal(t, "counters", contract.Counters{Total: 3, Rewritten: 3}, record.Counters)
	expect.Equal(t, "objects at the old version", nil, api.oldKeys())
}

func TestPageSizeRecoversAfterTheObject(t *testing.T) {
	api := newFakeAPI(400)
	api.broken = map[string]string{objectKey(3): "v1 "}
	engine := newTestEngine(api, &fakeStore{})
	engine.PageSize, engine.OldVersions = 64, []string{"v1beta1"}
	mustRun(t, engine)
	var last metav1.ListOptions
	for _, options := range api.lists {
		last = options
	}
	expect.Equal(t, "objects of the last page", 64, last.Limit)
	if len(api.lists) > 60 {
		t.Errorf("%d lists for one object that cannot be read", len(api.lists))
	}
}

// The converter is unavailable when a page is listed, for longer than other requests are retried.
func TestListWaitsForTheConverter(t *testing.T) {
	for name, away := range map[string]error{"converter": converterUnavailable(), "overloaded": overloaded(1), "unavailable": unavailable()} {
		t.Run(name, func(t *testing.T) {
			api, store, clock := newFakeAPI(12), &fakeStore{}, newFakeClock()
			back := clock.Now().Add(time.Hour)
			api.onList = func(options metav1.ListOptions) error {
				if options.Continue != "" && clock.Now().Before(back) {
					return away
				}
				return nil
			}
			engine := newTestEngine(api, store)
			engine.Clock = clock
			record := mustRun(t, engine)
			if !record.Complete() || record.Waiting != "" || clock.Now().Before(back) {
				t.Errorf("record is %+v", record)
			}
			waiting := 0
			for _, r := range store.records(t) {
				if strings.HasPrefix(r.Waiting, "objects cannot be listed: ") {
					waiting++
				}
			}
			expect.Equal(t, "records say why the run waits", 1, waiting)
		})
	}
}
