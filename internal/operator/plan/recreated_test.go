// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestRecreatedDefinition: in every phase, nothing that the status says of a CustomResourceDefinition is
// true of one that is created after it, whether the operator saw that it was gone, or not, or died before
// it wrote what it saw.
func TestRecreatedDefinition(t *testing.T) {
	retiring := func(later time.Duration) func(t *testing.T) *world {
		return func(t *testing.T) *world {
			t.Helper()
			w := newWorld(t, policyYAML)
			w.counts = true
			w.retire("v1beta1", v1alpha1.RetirementRemove)
			promoted(w)
			w.later(later)
			return w
		}
	}
	for name, reach := range map[string]func(*testing.T) *world{
		"active": active, "migrating": running, "migrated": migrated, "deprecated": retiring(0), "unserved": retiring(week),
		"counted": func(t *testing.T) *world {
			t.Helper()
			w := newWorld(t, policyYAML)
			w.holdingNotes()
			return w
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := reach(t)
			before, crd := w.observed.Policy.Status.DeepCopy(), w.observed.CRD.DeepCopy()
			crd.UID, crd.Generation, crd.CreationTimestamp = "another", before.CRD.Generation+1, metav1.NewTime(w.observed.Now)
			w.observed.Cleared, w.observed.Samples, w.observed.Resampled, w.observed.Requested = nil, nil, nil, nil

			w.observed.CRD = crd
			unseen := plan.Make(*w.observed).Status
			w.expectForgotten(before, unseen)
			expect.Equal(t, "status after a manager that died before it wrote the first one", unseen, plan.Make(*w.observed).Status)

			w.observed.CRD = nil
			w.observed.Policy.Status = plan.Make(*w.observed).Status
			gone := w.observed.Policy.Status
			expect.Equal(t, "what is known while there is none", v1alpha1.ConversionPolicyStatus{}, v1alpha1.ConversionPolicyStatus{
				CRD: gone.CRD, MigrationEvidence: gone.MigrationEvidence, PreservedData: gone.PreservedData, UnconvertedWindow: gone.UnconvertedWindow,
				Retirement: gone.Retirement, PromotedVersion: gone.PromotedVersion, VersionsDrift: gone.VersionsDrift, VersionsEdit: gone.VersionsEdit,
			})
			w.observed.CRD = crd
			w.expectForgotten(before, plan.Make(*w.observed).Status)
		})
	}
}

// expectForgotten checks that a status has nothing of the former definition.
func (w *world) expectForgotten(before *v1alpha1.ConversionPolicyStatus, is v1alpha1.ConversionPolicyStatus) {
	w.t.Helper()
	expect.Equal(w.t, "uid", "another", string(is.CRD.UID))
	expect.Equal(w.t, "evidence", nil, is.MigrationEvidence)
	expect.Equal(w.t, "preserved data", nil, is.PreservedData)
	expect.Equal(w.t, "drift of versions", nil, is.VersionsDrift)
	if run := is.Migration; run != nil && run.State == v1alpha1.MigrationRunning && before.Migration != nil && run.Run == before.Migration.Run {
		w.t.Errorf("the run of the former definition goes on: %+v", run)
	}
	for _, record := range is.Retirement {
		for _, since := range []*metav1.Time{record.DeprecatedTime, record.UnservedTime, record.CleanedTime, record.RemovedTime, record.LastRequested} {
			if since != nil && since.Time.Before(w.observed.Now.Truncate(time.Second)) {
				w.t.Errorf("the retirement goes on from %v, and it is %v: %+v", since, w.observed.Now, record)
			}
		}
		expect.Equal(w.t, "requests", 0, len(record.Requests))
	}
	for _, version := range is.Versions {
		if version.SafeToRemove {
			w.t.Errorf("%s of the new definition can be removed", version.Name)
		}
	}
}
