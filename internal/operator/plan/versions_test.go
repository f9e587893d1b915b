// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

const week = 168 * time.Hour

// promoted brings the world to where all is stored in the new version, by the policy.
func promoted(w *world) {
	w.t.Helper()
	w.observed.Policy.Spec.StorageVersion = "v1"
	w.define(bothStoredOld)
	w.completes(1000)
}

func versionRetired(w *world) {
	w.ask("v1", 40)
	w.say("The policy says where all is to end: objects stored at v1, and v1beta1 gone. It comes first.")
	w.observed.Policy.Spec.StorageVersion = "v1"
	w.retire("v1beta1", v1alpha1.RetirementRemove)
	w.define(onlyOld)
	w.tellVersions()
	w.say("The new version is added: served, not stored. Conversion is proven, and then it becomes the storage version.")
	w.define(bothStoredOld)
	w.tellVersions()
	w.say("The migration is done: v1beta1 is deprecated, and clients are warned.")
	w.completes(1000)
	w.tellVersions()
	w.tell("  | clients read: %s", *w.observed.CRD.Spec.Versions[0].DeprecationWarning)
	w.say("A week later no one has asked for it: it is not served any more.")
	w.later(week)
	w.tellVersions()
	w.say("Another week later the objects forget it, and it is removed. The rules that name it do no harm.")
	w.later(week)
	w.tellVersions()
	w.say("The policy has done its work, and is deleted: nothing needs a conversion.")
	w.delete()
	w.converge()
	w.settleAPIServers()
}

func versionStillAsked(w *world) {
	w.say("A client has asked for v1beta1 before any client counted.")
	w.ask("v1beta1", 7)
	w.retire("v1beta1", v1alpha1.RetirementUnserve)
	promoted(w)
	w.tellVersions()
	w.say("After six days a client asks again: the week starts again.")
	w.ask("v1beta1", 8)
	w.later(6 * 24 * time.Hour)
	w.later(6 * 24 * time.Hour)
	w.tellVersions()
	w.say("A week after that.")
	w.later(26 * time.Hour)
	w.say("Another API server answers, which was started a day ago, and has been asked: by whom and when is not known.")
	w.retire("v1beta1", v1alpha1.RetirementDeprecate)
	w.converge()
	w.requested.Requests = countedBy(1768000000, map[string]int64{"v1beta1": 1})
	w.retire("v1beta1", v1alpha1.RetirementUnserve)
	w.later(2 * time.Hour)
	w.tellVersions()
}

func versionAskedUnseen(w *world) {
	w.say("Metrics cannot be read: clients may request the version unseen, and it stays.")
	w.requested = observed.BackgroundCheck{Reason: "MetricsUnreadable", Message: "the operator may not get /metrics of the API server"}
	w.retire("v1beta1", v1alpha1.RetirementUnserve)
	promoted(w)
	w.tellVersions()
	w.later(week)
	w.tellVersions()
	w.say("Only one of three API servers answers.")
	w.requested = observed.BackgroundCheck{Requests: countedBy(1767225600, nil)}
	w.requested.Requests.Missed = "1 of 3 API servers answered"
	w.later(2 * time.Hour)
	w.tellVersions()
	w.say("All of them do, and no client requests it.")
	w.requested.Requests.Missed = ""
	w.later(2 * time.Hour)
	w.tellVersions()
}

func versionByManifest(w *world) {
	w.say("The CustomResourceDefinition belongs to a manifest. The policy only says what may be done to it.")
	w.retire("v1beta1", v1alpha1.RetirementKeep)
	w.define(bothStoredNew)
	w.completes(1000)
	w.tellVersions()
	w.say("The manifest stops serving v1beta1. The objects are to forget it.")
	w.retire("v1beta1", v1alpha1.RetirementUnserve)
	versions := w.Versions()
	versions[0]["served"], versions[0]["deprecated"] = false, true
	w.putVersions("kubectl", versions)
	w.later(week)
	w.tellVersions()
	w.say("The manifest removes it.")
	w.putVersions("kubectl", versions[1:])
	w.tellVersions()
}

func versionTakenBack(w *world) {
	w.say("v1beta1 is not served any more, and a client is found that needs it: the policy takes it back.")
	w.retire("v1beta1", v1alpha1.RetirementUnserve)
	promoted(w)
	w.later(week)
	w.retire("v1beta1", v1alpha1.RetirementKeep)
	w.converge()
	w.tellVersions()
	w.say("What the manifest has unserved is left alone.")
	versions := w.Versions()
	versions[0]["served"] = false
	w.putVersions("kubectl", versions)
	w.retire("v1beta1", v1alpha1.RetirementUnserve)
	w.converge()
	w.retire("v1beta1", v1alpha1.RetirementKeep)
	w.converge()
	w.tellVersions()
}

func versionWithoutRules(w *world) {
	w.say("The versions have the same fields, and nothing converts.")
	w.observed.Policy.Spec.StorageVersion = "v1beta1"
	w.retire("v1", v1alpha1.RetirementRemove)
	w.define(equalVersions)
	w.completes(1000)
	w.later(week)
	w.later(week)
	w.tellVersions()
}

func versionKept(w *world) {
	w.say("No one migrates: a version that objects may be stored in stays.")
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationNever
	w.retire("v1beta1", v1alpha1.RetirementRemove)
	w.applyCRD(bothStoredNew)
	w.observed.CRD.Status.StoredVersions = []string{"v1beta1", "v1"}
	w.converge()
	w.tellVersions()
	w.say("A client prunes storedVersions by hand, which proves nothing.")
	w.observed.CRD.Status.StoredVersions = []string{"v1"}
	w.converge()
	w.tellVersions()
	w.say("It is migrated. The policy is paused before anything else is done.")
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationAutomatic
	w.converge()
	w.observed.Policy.Spec.Paused = true
	w.completes(1000)
	w.pause(false)
	w.say("No other version is served.")
	versions := w.Versions()
	versions[1]["served"] = false
	w.putVersions("kubectl", versions)
	w.later(week)
	w.tellVersions()
	w.say("Objects cannot be changed, for a while.")
	versions[1]["served"] = true
	w.putVersions("kubectl", versions)
	w.later(time.Hour)
	w.cleared = observed.BackgroundCheck{Reason: v1alpha1.ReasonCheckFailed, Message: "1 objects could not be changed, for example default/bad: denied"}
	w.later(week)
	w.tellVersions()
	w.cleared = observed.BackgroundCheck{}
	w.later(time.Hour)
	w.tellVersions()
}

func versionAndDeletion(w *world) {
	w.say("A policy is deleted while v1beta1 is on its way out: it stays until that is not served.")
	w.retire("v1beta1", v1alpha1.RetirementRemove)
	promoted(w)
	w.delete()
	w.converge()
	w.later(week)
	w.settleAPIServers()
	w.tellVersions()
}

// undone migrates to the new version, and lets the policy take that back immediately.
func undone(w *world, action v1alpha1.RetirementAction) {
	w.t.Helper()
	w.define(bothStoredNew)
	w.completes(1000)
	w.observed.Policy.Spec.StorageVersion = "v1beta1"
	w.retire("v1", action)
	w.observed.Policy.Spec.Retirement[0].After = &metav1.Duration{}
	w.converge()
}

func downgrade(w *world) {
	w.say("A release has brought v1, and stored it. It is to be undone: v1beta1 is to be all there is, as it was.")
	undone(w, v1alpha1.RetirementRemove)
	w.say("Everything is stored at v1beta1 again: v1 goes at once, as no one is waited for.")
	w.completes(1000)
	w.settleAPIServers()
	w.tellVersions()
	w.say("The manifest of the old release can be applied.")
	w.define(onlyOld)
}

func downgradeUnserved(w *world) {
	w.say("A release has brought v1, and stored it. It is to be undone, and v1 to be kept, not served, for a second attempt.")
	undone(w, v1alpha1.RetirementUnserve)
	w.completes(1000)
	w.tellVersions()
	w.say("The second attempt.")
	w.observed.Policy.Spec.StorageVersion = "v1"
	w.retire("v1", v1alpha1.RetirementKeep)
	w.converge()
	w.completes(1000)
	w.tellVersions()
}

func retirementContested(w *world) {
	w.say("v1beta1 is removed.")
	w.retire("v1beta1", v1alpha1.RetirementRemove)
	w.observed.Policy.Spec.Retirement[0].After = &metav1.Duration{}
	promoted(w)
	w.settleAPIServers()
	for _, again := range []string{"A previous manifest adds it again.", "And again.", "And again: it is left there."} {
		w.say(again)
		w.define(bothStoredNew)
		w.settleAPIServers()
	}
	w.tellVersions()
}

func storageRolledBack(w *world) {
	w.say("The policy makes v1 the storage version, and all is migrated.")
	promoted(w)
	w.retire("v1beta1", v1alpha1.RetirementUnserve)
	w.converge()
	w.later(week)
	w.say("It is rolled back: what was proven holds no more, v1beta1 is served again, and objects are migrated back.")
	w.observed.Policy.Spec.StorageVersion = "v1beta1"
	w.retire("v1beta1", v1alpha1.RetirementKeep)
	w.converge()
	w.tellVersions()
	w.completes(1000)
	w.tellVersions()
}

func storageRefused(w *world) {
	w.say("The policy wants a storage version that no one knows.")
	w.observed.Policy.Spec.StorageVersion = "v2"
	w.define(bothStoredOld)
	w.say("It wants one that is not served.")
	w.observed.Policy.Spec.StorageVersion = "v1"
	versions := w.Versions()
	versions[1]["served"] = false
	w.putVersions("kubectl", versions)
	w.say("It wants one without rules.")
	versions[1]["served"] = true
	versions = append(versions, map[string]any{"name": "v1alpha1", "served": true, "storage": false, "schema": versions[0]["schema"]})
	w.WriteVersions("kubectl", versions)
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
	versions := w.Versions()
	versions[0]["storage"], versions[1]["storage"] = true, false
	w.putVersions("argocd-controller", versions)
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
	w.completes(1000)
}

func storageTolerated(w *world) {
	w.say("The policy makes v1 the storage version, and only reports what others do.")
	w.observed.Policy.Spec.Drift = v1alpha1.DriftTolerate
	promoted(w)
	w.flipBack()
	w.say("Its author gives in: nothing is held back any more.")
	versions := w.Versions()
	versions[0]["storage"], versions[1]["storage"] = false, true
	w.putVersions("argocd-controller", versions)
	w.completes(1000)
	w.observed.Policy.Spec.Retirement = []v1alpha1.Retirement{{Version: "v1beta1", Action: v1alpha1.RetirementDeprecate}}
	w.converge()
	w.say("It is taken back again, and is to be repaired after all.")
	w.flipBack()
	w.observed.Policy.Spec.Drift = v1alpha1.DriftRepair
	w.observed.Policy.Generation++
	w.converge()
}

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
				versions := w.Versions()
				versions[0]["storage"], versions[1]["storage"] = true, false
				w.WriteVersions("their-operator", versions)
			}
		}
	}
	expect.Equal(t, "writes of spec.versions: one and two repairs", 3, written)
	expectCondition(t, last.Status, v1alpha1.StorageMigratedCondition, "False", v1alpha1.ReasonContested, `"their-operator"`)
	expectCondition(t, last.Status, v1alpha1.StorageMigratedCondition, "False", v1alpha1.ReasonContested, "align resourcegraphdefinitions.kro.run/app with this policy")
}

// TestReportLeavesUnservedWhatItsAuthorDid: that the policy wrote spec.versions last,
// for another reason, does not mean that it stopped serving a version.
func TestReportLeavesUnservedWhatItsAuthorDid(t *testing.T) {
	w := newWorld(t, policyYAML)
	w.applyCRD(bothStoredOld)
	versions := w.Versions()
	versions[0]["served"] = false
	w.putVersions("kubectl", versions)
	promoted := w.observed.CRD.Generation
	w.observed.Policy.Spec.StorageVersion = "v1"
	w.converge()
	w.completes(1000)
	expect.Equal(t, "the policy promoted v1", true, w.observed.CRD.Generation != promoted)
	w.retire("v1beta1", v1alpha1.RetirementKeep)
	w.converge()
	expect.Equal(t, "the version is served, which its author had ended", false, w.observed.CRD.Spec.Versions[0].Served)
}
