// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
)

const waitsForAdmission = "waiting until all API servers refuse objects that are too large to convert"

// unchanged is a definition with two versions whose spec never changed.
func unchanged(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, policyYAML)
	w.applyCRD(bothStoredOld)
	w.observed.CRD.Generation = 1
	return w
}

// TestUnchangedDefinition: nothing can be stored at another version, so that nothing is migrated,
// and the activation does not wait until all API servers refuse large objects.
func TestUnchangedDefinition(t *testing.T) {
	w := unchanged(t)
	w.converge()
	expectCondition(t, w.observed.Policy.Status, v1alpha1.ReadyCondition, "True", v1alpha1.ReasonSucceeded, "")
	expectCondition(t, w.observed.Policy.Status, v1alpha1.StorageMigratedCondition, "True", v1alpha1.ReasonNothingToMigrate,
		"objects were never stored in another version than v1beta1")
	if evidence := w.observed.Policy.Status.MigrationEvidence; evidence == nil || evidence.Source != v1alpha1.EvidenceUnchanged || evidence.CRDGeneration != 2 {
		t.Errorf("the evidence is %+v, want DefinitionUnchanged for generation 2", evidence)
	}
	for _, unwanted := range []string{waitsForAdmission, "migrate"} {
		if strings.Contains(w.story(), unwanted) {
			t.Errorf("the story has %q:\n%s", unwanted, w.story())
		}
	}
}

// TestObjectsOlderThanTheDefinition: a definition that was created again over objects says nothing about
// how they are stored.
func TestObjectsOlderThanTheDefinition(t *testing.T) {
	w := unchanged(t)
	w.written = observed.BackgroundCheck{Older: 2}
	w.converge()
	status := w.observed.Policy.Status
	if status.UnconvertedWindow == nil || status.UnconvertedWindow.OlderObjects != 2 {
		t.Errorf("the window is %+v, want one with two older objects", status.UnconvertedWindow)
	}
	if evidence := status.MigrationEvidence; evidence != nil {
		t.Errorf("the evidence is %+v, want none", evidence)
	}
	expectCondition(t, status, v1alpha1.StorageMigratedCondition, "False", v1alpha1.ReasonMigrating, "")
}

// TestPromotionWaitsForAdmission: before the storage version changes, all API servers refuse large
// objects.
func TestPromotionWaitsForAdmission(t *testing.T) {
	w := unchanged(t)
	w.observed.Policy.Spec.StorageVersion = "v1"
	waited := false
	for range 60 {
		decided := w.plan()
		steps := kinds(decided.Steps)
		configured := apimeta.FindStatusCondition(decided.Status.Conditions, v1alpha1.ConversionConfiguredCondition)
		waits := configured != nil && configured.Message == waitsForAdmission
		if waits && (slices.Contains(steps, "SwitchCRD") || slices.Contains(steps, "EditVersions")) {
			t.Errorf("it writes the CustomResourceDefinition while API servers may accept large objects: %v", steps)
		}
		waited = waited || waits
		w.carryOut(decided)
		w.observed.Now = w.observed.Now.Add(time.Second)
	}
	if !waited {
		t.Error("it does not wait for API servers")
	}
}
