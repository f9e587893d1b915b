// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
)

// stopMigrations sets the status of a policy with suspended migrations and objects to migrate.
func stopMigrations(now *observation) {
	now.Subject.MigrationsSuspended = true
	now.Policy.Status.MigrationEvidence, now.Policy.Status.Versions = nil, nil
	now.Policy.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonMigrationSuspended},
		{Type: v1alpha1.StorageMigratedCondition, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonMigrationSuspended},
	}
}

// suspend sets the status of a suspended policy. Other fields keep their last values.
func suspend(now *observation) {
	now.Subject.Suspended, now.Policy.Spec.Suspend = true, true
	now.Policy.Generation++
	now.Policy.Status.ObservedGeneration = now.Policy.Generation
	now.Policy.Status.Conditions[0] = metav1.Condition{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionUnknown,
		Reason: v1alpha1.ReasonSuspended, ObservedGeneration: now.Policy.Generation}
}

// retire sets the status of a policy that has retired v1 by an action.
func retire(now *observation, action v1alpha1.RetirementAction) {
	retired(&now.Subject, joined+" to "+string(action))
	now.Has, now.Serves, now.Deprecates = now.Subject.Versions, now.Subject.Served, now.Subject.Deprecated
	now.Policy.Status.Conditions = append(now.Policy.Status.Conditions, metav1.Condition{
		Type: v1alpha1.VersionsRetiredCondition, Status: metav1.ConditionTrue, ObservedGeneration: now.Policy.Generation})
}

var versionViolations = []violation{
	{"stored bytes are at listed versions", "job is stored at v2", func(now, _ *observation) {
		now.Stored["job"], now.Pruned = nested, pruning{Revision: 99, Versions: []string{nested}}
		stopMigrations(now)
	}},
	{"stored bytes are at listed versions", "job is stored at v2", func(now, _ *observation) {
		now.Stored["job"], now.Pruned = nested, pruning{Revision: 101, Versions: []string{joined}}
		stopMigrations(now)
	}},
	{"storedVersions is pruned with evidence", "[v1] went from", func(now, before *observation) {
		before.Listed = []string{hub, joined}
		now.Policy.Status.MigrationEvidence, now.Records = nil, nil
		now.Pruned = pruning{Revision: 101, Versions: []string{joined}}
		before.Pruned = now.Pruned
	}},
	{"what the status says of stored bytes is true", "StorageMigrated is True while objects are written at v1beta1", func(now, _ *observation) {
		said := now.Policy.Status.Conditions[1]
		now.Stored["job"], now.Pruned = joined, pruning{Revision: 101, Versions: []string{joined}}
		stopMigrations(now)
		now.Policy.Status.Conditions[1] = said
		now.Policy.Status.Conditions[0].Status = metav1.ConditionTrue
	}},
	{"what a policy stops serving is stored nowhere", "job is stored at v1, which is not served any more", func(now, _ *observation) {
		retire(now, v1alpha1.RetirementUnserve)
		now.Stored["job"], now.Listed = joined, []string{hub, joined}
		stopMigrations(now)
	}},
	{"what a policy stops serving is stored nowhere", "job is stored at v1, which is not served any more", func(now, _ *observation) {
		now.Subject.Records = nil
		retire(now, v1alpha1.RetirementRemove)
		now.Stored["job"], now.Listed = joined, []string{hub, joined}
		stopMigrations(now)
	}},
	{"a suspended policy changes nothing", "v1 went from status.storedVersions", func(now, before *observation) {
		suspend(now)
		suspend(before)
		before.ListedAfter = []string{hub, joined}
	}},
	{"a suspended policy changes nothing", "spec.conversion is nil; it was", func(now, before *observation) {
		suspend(now)
		suspend(before)
		now.Conversion = nil
	}},
	{"the policy is ready, or says that it is suspended", "Ready is True", func(now, _ *observation) {
		now.Subject.Suspended = true
	}},
	{"the policy is ready, or says that it is suspended", "Ready is Unknown, Suspended", func(now, _ *observation) {
		suspend(now)
		now.Subject.Suspended = false
	}},
	{"no migration goes on while the policy is suspended", "Job a-migrate-run has pods", func(now, _ *observation) {
		suspend(now)
		now.Children[1].Active = true
	}},
	{"every object is stored at the storage version", "job is stored at v1; objects are written at v1beta1", func(now, _ *observation) {
		now.Stored["job"], now.Pruned = joined, pruning{Revision: 101, Versions: []string{joined}}
		now.Policy.Status.MigrationEvidence, now.Policy.Status.Versions = nil, nil
		now.Policy.Status.Conditions = now.Policy.Status.Conditions[:1]
	}},
	{"versions are as their authors want them", "there is a definition: false", func(now, _ *observation) {
		now.Defined = false
	}},
	{"versions are as their authors want them", "its versions are [v1beta1]", func(now, _ *observation) {
		now.Has = []string{hub}
	}},
	{"versions are as their authors want them", "the served versions are [v1beta1]", func(now, _ *observation) {
		now.Serves = []string{hub}
	}},
	{"versions are as their authors want them", "the deprecated versions are [v1]", func(now, _ *observation) {
		now.Deprecates = []string{joined}
	}},
	{"versions are as their authors want them", "the storage version is v1beta1; expected v1", func(now, _ *observation) {
		now.Subject.Storage = joined
	}},
	{"versions are as their authors want them", "there is no condition VersionsRetired", func(now, _ *observation) {
		retire(now, v1alpha1.RetirementDeprecate)
		now.Policy.Status.Conditions = now.Policy.Status.Conditions[:2]
	}},
	{"versions are as their authors want them", "VersionsRetired is False, Blocked", func(now, _ *observation) {
		retire(now, v1alpha1.RetirementDeprecate)
		now.Policy.Status.Conditions[2].Status, now.Policy.Status.Conditions[2].Reason = metav1.ConditionFalse, v1alpha1.ReasonBlocked
	}},
	{"nothing is left of what is over", ": no version is on its way out", func(now, _ *observation) {
		now.Children = []child{{Kind: "ClusterRole", Name: names.CleanRights(crdOf("a"))}}
	}},
}

// TestForgetPruned: once no object is stored at the pruned version, prunings by the operator need
// evidence again.
func TestForgetPruned(t *testing.T) {
	pruned := pruning{Revision: 101, Versions: []string{joined}}
	p := &player{pruned: map[string]pruning{"a": pruned}}
	now := healthy()
	now.Stored["job"] = joined
	p.forgetPruned(map[string]observation{"a": now})
	if diff := cmp.Diff(map[string]pruning{"a": pruned}, p.pruned); diff != "" {
		t.Errorf("bytes are left there (-want +got):\n%s", diff)
	}
	p.forgetPruned(map[string]observation{"a": healthy()})
	if len(p.pruned) != 0 {
		t.Errorf("none are left there, and it is remembered: %v", p.pruned)
	}
}
