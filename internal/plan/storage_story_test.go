// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

func storageRolledBack(w *world) {
	w.say("The policy makes v1 the storage version, and all is migrated.")
	promoted(w)
	w.retire("v1beta1", v1alpha1.RetirementUnserve)
	w.converge()
	w.later(week)
	w.say("It is rolled back: what was proven holds no more, v1beta1 is served again, and objects are migrated back.")
	w.observed.Policy.Spec.StorageVersion = "v1beta1"
	w.retire("v1beta1", v1alpha1.RetirementReport)
	w.converge()
	w.tellVersions()
	w.migrated()
	w.tellVersions()
}

func storageRefused(w *world) {
	w.say("The policy wants a storage version that no one knows.")
	w.observed.Policy.Spec.StorageVersion = "v2"
	w.applyCRD(bothStoredOld)
	w.converge()
	w.say("It wants one that is not served.")
	w.observed.Policy.Spec.StorageVersion = "v1"
	versions := w.versions()
	versions[1]["served"] = false
	w.writeVersions("kubectl", versions)
	w.converge()
	w.say("It wants one without rules.")
	versions[1]["served"] = true
	versions = append(versions, map[string]any{"name": "v1alpha1", "served": true, "storage": false, "schema": versions[0]["schema"]})
	w.writeVersions("kubectl", versions)
	w.observed.Policy.Spec.StorageVersion = "v1alpha1"
	w.converge()
	w.say("Another migration is in flight, which would be disturbed.")
	w.observed.Policy.Spec.StorageVersion = "v1"
	w.observed.CRD.Status.Conditions = storageMigrating()
	w.converge()
	w.observed.CRD.Status.Conditions = nil
	w.converge()
}

// flipBack lets a manifest say what it said before.
func (w *world) flipBack() {
	w.t.Helper()
	versions := w.versions()
	versions[0]["storage"], versions[1]["storage"] = true, false
	w.writeVersions("argocd-controller", versions)
	w.converge()
}

func storageContested(w *world) {
	w.say("The policy makes v1 the storage version.")
	promoted(w)
	w.say("A previous manifest is applied again.")
	w.flipBack()
	w.say("And again.")
	w.flipBack()
	w.say("And again: that is a client's will, and the operator does not fight it.")
	w.flipBack()
	w.tellVersions()
	w.say("The next day it is tried again, and holds.")
	w.later(24 * time.Hour)
	w.migrated()
}

func storageReported(w *world) {
	w.say("The policy makes v1 the storage version, and only reports what others do.")
	w.observed.Policy.Spec.Drift = v1alpha1.DriftReport
	promoted(w)
	w.flipBack()
	w.say("Its author gives in: nothing is held back any more.")
	versions := w.versions()
	versions[0]["storage"], versions[1]["storage"] = false, true
	w.writeVersions("argocd-controller", versions)
	w.converge()
	w.migrated()
	w.observed.Policy.Spec.Retirement = []v1alpha1.Retirement{{Version: "v1beta1", Action: v1alpha1.RetirementDeprecate}}
	w.converge()
	w.say("It is taken back again, and is to be repaired after all.")
	w.flipBack()
	w.observed.Policy.Spec.Drift = v1alpha1.DriftRepair
	w.observed.Policy.Generation++
	w.converge()
}
