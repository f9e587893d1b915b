// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"errors"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func noDryRun() error {
	return apierrors.NewBadRequest(`admission webhook "check.example.com" does not support dry run`)
}

func TestPreflight(t *testing.T) {
	few := func(err error) func(string) error {
		return func(key string) error {
			if key == objectKey(3) {
				return err
			}
			return nil
		}
	}
	all := func(err error) func(string) error { return func(string) error { return err } }
	tests := map[string]struct {
		objects   int
		onDryRun  func(string) error
		fallback  []v1alpha1.MigrationFallback
		want      contract.State
		tried     int
		predicted int
		message   string
	}{
		"nothing refused":          {objects: 12, want: contract.StateCompleted, tried: 4},
		"no objects":               {objects: 0, want: contract.StateCompleted},
		"fewer than a sample":      {objects: 2, want: contract.StateCompleted, tried: 2},
		"one refused":              {objects: 12, onDryRun: few(invalid("a003")), want: contract.StateCompleted, tried: 4, predicted: 1},
		"one cannot be converted":  {objects: 12, onDryRun: few(unconvertible()), want: contract.StateCompleted, tried: 4 + objectAttempts - 1, predicted: 1},
		"one is gone":              {objects: 12, onDryRun: few(apierrors.NewNotFound(testResource.GroupResource(), "a003")), want: contract.StateCompleted, tried: 4},
		"webhooks without dry run": {objects: 12, onDryRun: all(noDryRun()), want: contract.StateCompleted, tried: 4},
		"all refused":              {objects: 12, onDryRun: all(invalid("x")), want: contract.StateAborted, tried: 4, predicted: 4, message: "refuses all 4 objects of a sample, nothing was rewritten: ns/a000"},
		"all of only two":          {objects: 2, onDryRun: all(invalid("x")), want: contract.StateCompleted, tried: 2, predicted: 2},
		"all, with a fallback":     {objects: 12, onDryRun: all(invalid("x")), fallback: []v1alpha1.MigrationFallback{v1alpha1.MigrationFallbackStatus}, want: contract.StateCompleted, tried: 4, predicted: 4},
		"the endpoint is gone":     {objects: 12, onDryRun: all(generic(404, "")), want: contract.StateAborted, tried: 1, message: "cannot patch crontabs.example.com ns/a000"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			api, store := newFakeAPI(tt.objects), &fakeStore{}
			api.onDryRun = tt.onDryRun
			engine := newTestEngine(api, store)
			engine.Preflight, engine.PageSize, engine.Fallback = 4, 12, tt.fallback
			record := mustRun(t, engine)
			expect.Equal(t, "state", tt.want, record.State)
			expect.Equal(t, "tried, and predicted", [2]int{tt.tried, tt.predicted}, [2]int{len(api.dryRuns), len(record.Predicted)})
			if tt.message != "" {
				wantError(t, errors.New(record.Message), tt.message)
			}
			if tt.want == contract.StateAborted && len(api.patched) != 0 {
				t.Errorf("patched %v", api.patched)
			}
			expect.Equal(t, "the first state", contract.StatePreflight, store.records(t)[0].State)
		})
	}
}

func TestPreflightIsNotRepeated(t *testing.T) {
	api, store := newFakeAPI(12), &fakeStore{}
	engine := newTestEngine(api, store)
	engine.Preflight = 4
	store.failAfter(2, forbidden("run-1"))
	if _, err := engine.Run(t.Context()); err == nil {
		t.Fatal("the run did not stop")
	}
	store.onSave = nil
	tried := slices.Clone(api.dryRuns)
	mustRun(t, engine)
	expect.Equal(t, "tried", tried, api.dryRuns)
}
