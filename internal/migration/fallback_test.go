// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// The API server refuses the object at the storage version; paths are the fallbacks that were
// tried.
func TestFallback(t *testing.T) {
	noSubresource := apierrors.NewNotFound(testResource.GroupResource(), "a000")
	both := []v1alpha1.MigrationFallback{v1alpha1.MigrationFallbackStatus, v1alpha1.MigrationFallbackOldVersion}
	tests := map[string]struct {
		refusal  error
		fallback []v1alpha1.MigrationFallback
		// answers are the errors by path. A path without one accepts the object.
		answers map[string]error
		want    contract.Counters
		paths   []string
		reason  v1alpha1.MigrationFailureReason
	}{
		"none allowed":              {refusal: invalid("a000"), want: contract.Counters{Total: 1, Failed: 1}, reason: v1alpha1.FailureInvalid},
		"status":                    {refusal: invalid("a000"), fallback: both, want: contract.Counters{Total: 1, Rewritten: 1, ByFallback: 1}, paths: []string{"v1/status"}},
		"denied by admission":       {refusal: forbidden("a000"), fallback: both, want: contract.Counters{Total: 1, Rewritten: 1, ByFallback: 1}, paths: []string{"v1/status"}},
		"no status, an old version": {refusal: invalid("a000"), fallback: both, answers: map[string]error{"v1/status": noSubresource}, want: contract.Counters{Total: 1, Rewritten: 1, ByFallback: 1}, paths: []string{"v1/status", "v1beta1/"}},
		"the other order":           {refusal: invalid("a000"), fallback: []v1alpha1.MigrationFallback{v1alpha1.MigrationFallbackOldVersion, v1alpha1.MigrationFallbackStatus}, want: contract.Counters{Total: 1, Rewritten: 1, ByFallback: 1}, paths: []string{"v1beta1/"}},
		"the older of two versions": {refusal: invalid("a000"), fallback: []v1alpha1.MigrationFallback{v1alpha1.MigrationFallbackOldVersion}, answers: map[string]error{"v1beta1/": invalid("a000")}, want: contract.Counters{Total: 1, Rewritten: 1, ByFallback: 1}, paths: []string{"v1beta1/", "v1alpha1/"}},
		"all refuse": {
			refusal: invalid("a000"), fallback: both, answers: map[string]error{"v1/status": noSubresource, "v1beta1/": forbidden("a000"), "v1alpha1/": invalid("a000")},
			want: contract.Counters{Total: 1, Failed: 1}, paths: []string{"v1/status", "v1beta1/", "v1alpha1/"}, reason: v1alpha1.FailureInvalid,
		},
		"a failed conversion":         {refusal: unconvertible(), fallback: both, want: contract.Counters{Total: 1, Failed: 1}, reason: v1alpha1.FailureConversionFailed},
		"an object that is too large": {refusal: tooLarge(), fallback: both, want: contract.Counters{Total: 1, Failed: 1}, reason: v1alpha1.FailureTooLarge},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			api := newFakeAPI(1)
			api.onPatch = func(string) error { return tt.refusal }
			var paths []string
			api.onPath = func(patch Patch) error {
				version := patch.Version
				if version == "" {
					version = "v1"
				}
				paths = append(paths, version+"/"+patch.Subresource)
				return tt.answers[version+"/"+patch.Subresource]
			}
			engine := newTestEngine(api, &fakeStore{})
			engine.Fallback, engine.OldVersions = tt.fallback, []string{"v1beta1", "v1alpha1"}
			record := mustRun(t, engine)
			expect.Equal(t, "counters", tt.want, record.Counters)
			expect.Equal(t, "paths", tt.paths, paths)
			if tt.reason != "" && record.Failures[0].Reason != tt.reason {
				t.Errorf("reason is %s, want %s", record.Failures[0].Reason, tt.reason)
			}
		})
	}
}

// Another client writes or deletes the object during the fallback, or a webhook does not answer.
func TestFallbackIsTriedAgain(t *testing.T) {
	tests := map[string]struct {
		answer func(*fakeAPI) error
		want   contract.Counters
	}{
		"written":             {func(f *fakeAPI) error { f.write("ns/a000", "v1"); return conflict("a000") }, contract.Counters{Total: 1, Current: 1, ByFallback: 1}},
		"deleted":             {func(f *fakeAPI) error { f.remove("ns/a000"); return conflict("a000") }, contract.Counters{Total: 1, Gone: 1}},
		"webhook unavailable": {func(*fakeAPI) error { return webhookUnavailable() }, contract.Counters{Total: 1, Rewritten: 1, ByFallback: 1}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			api, tries := newFakeAPI(1), 0
			api.onPatch = func(string) error { return invalid("a000") }
			api.onPath = func(Patch) error {
				if tries++; tries > 2 {
					return nil
				}
				return tt.answer(api)
			}
			engine := newTestEngine(api, &fakeStore{})
			engine.Fallback = []v1alpha1.MigrationFallback{v1alpha1.MigrationFallbackStatus}
			expect.Equal(t, "counters", tt.want, mustRun(t, engine).Counters)
		})
	}
}
