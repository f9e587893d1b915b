// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"
	"time"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan"
	"github.com/conversion-operator/conversion-operator/internal/plan/step"
)

// TestTakenBackAtOnce: who takes each write back before it is seen ends the writes.
func TestTakenBackAtOnce(t *testing.T) {
	w := newWorld(t, policyYAML)
	w.observed.Policy.Spec.StorageVersion = "v1"
	w.applyCRD(bothStoredOld)
	w.observed.CRD.Labels = map[string]string{"kro.run/resource-graph-definition-name": "app"}
	written := 0
	var last plan.Plan
	for range 60 {
		w.observed.Now = w.observed.Now.Add(time.Second)
		last = w.plan()
		w.carryOut(last)
		for _, s := range last.Steps {
			if _, edits := s.(step.EditVersions); edits {
				written++
				versions := w.versions()
				versions[0]["storage"], versions[1]["storage"] = true, false
				w.writeVersions("their-operator", versions)
			}
		}
	}
	if written != 3 {
		t.Errorf("spec.versions was written %d times, want once and two repairs", written)
	}
	expectCondition(t, last.Status, v1alpha1.StorageMigratedCondition, "False", v1alpha1.ReasonVersionsContested, `"their-operator"`)
	expectCondition(t, last.Status, v1alpha1.StorageMigratedCondition, "False", v1alpha1.ReasonVersionsContested, "align resourcegraphdefinitions.kro.run/app with this policy")
}

// TestReportLeavesUnservedWhatItsAuthorDid: that the policy wrote spec.versions last,
// for another reason, does not mean that it stopped serving a version.
func TestReportLeavesUnservedWhatItsAuthorDid(t *testing.T) {
	w := newWorld(t, policyYAML)
	w.applyCRD(bothStoredOld)
	versions := w.versions()
	versions[0]["served"] = false
	w.writeVersions("kubectl", versions)
	w.converge()
	promoted := w.observed.CRD.Generation
	w.observed.Policy.Spec.StorageVersion = "v1"
	w.converge()
	w.migrated()
	if w.observed.CRD.Generation == promoted {
		t.Fatal("the policy did not promote v1")
	}
	w.retire("v1beta1", v1alpha1.RetirementReport)
	w.converge()
	if old := w.observed.CRD.Spec.Versions[0]; old.Served {
		t.Errorf("%s is served again, which its author had ended", old.Name)
	}
}
