//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"strings"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

const held = 12

// TestPreservedDataBecomesFields: objects preserve notes of v1beta1 in annotations. When v1 gets
// the field, the manager starts a run that converts the notes to data. One note does not fit, and
// blocks the removal of v1beta1 until it is corrected.
func TestPreservedDataBecomesFields(t *testing.T) {
	t.Parallel()
	k := newNoted(t, "places.example.com", "v1", "v1beta1")
	k.follow(t, func(policy *v1alpha1.ConversionPolicy) {
		policy.Spec.Migration.Mode, policy.Spec.Migration.Trigger = v1alpha1.MigrationAutomatic, "first"
	})
	k.migrate(t)
	for i := range held {
		k.create(t, "v1beta1", fmt.Sprint("noted-", i), "hostPort: 'a.example.com:1'\nnote: short")
	}
	k.create(t, "v1beta1", "long", "hostPort: 'a.example.com:1'\nnote: longer than the field will be")
	k.checkStored(t, "before", held+1, 0)
	k.changePolicy(t, `{"spec":{"migration":{"trigger":"count"}}}`)
	k.migrate(t)
	k.waitCounted(t, ".note: 13")
	k.waitBlocked(t, "13 objects", ".note", "add the fields to v1", "acceptedLosses")

	k.allowNotes(t)
	k.migrate(t)
	k.waitCounted(t, ".note: 1")
	k.checkStored(t, "after the run", 1, held)
	k.checkPlaced(t)
	k.waitBlocked(t, "1 object", ".note", "default/long", "too long", "its record has more")

	revision := k.revision(t)
	patch(t, k.object("v1beta1", "long"), `{"note":"short"}`)
	k.changePolicy(t, `{"spec":{"migration":{"trigger":"again"}}}`)
	k.migrate(t)
	k.waitCounted(t, "")
	k.checkStored(t, "when it is corrected", 0, held+1)
	expect.Equal(t, "objects that the last run wrote", []string{"long"}, k.writtenSince(t, revision))
	k.waitUnblocked(t, v1alpha1.BlockedPreservedData)
	k.waitUnblocked(t, v1alpha1.BlockedPreservedDataUnknown)
}

// checkPlaced checks the status of the run that moved the notes.
func (k *noted) checkPlaced(t *testing.T) {
	t.Helper()
	is := getPolicy(t, k.policy).Status
	run := is.Migration
	if run.State != v1alpha1.MigrationSucceeded || run.NotPlaced != 1 {
		t.Fatalf("status.migration is %+v", run)
	}
	expect.Equal(t, "the cause of the run", v1alpha1.MigrationForPreservedData, run.Cause)
	if is.MigrationEvidence == nil || run.Total != held+1 {
		t.Errorf("status.migrationEvidence is %+v, run %s", is.MigrationEvidence, run.Run)
	}
	if counted := is.PreservedData; !counted.Complete || counted.Ruleset != is.Revision {
		t.Errorf("status.preservedData is %+v", counted)
	}
}

// TestAcceptedLosses: preserved values of a version block its removal until each of its fields is
// accepted. Then only these are removed from the objects, while clients write them, and afterwards
// the version is removed.
func TestAcceptedLosses(t *testing.T) {
	t.Parallel()
	k := newNoted(t, "accepted.example.com", "v1", "v1beta1", "v1alpha1")
	k.follow(t, nil)
	k.migrate(t)
	for i := range held {
		name := fmt.Sprint("noted-", i)
		k.create(t, "v1beta1", name, "hostPort: 'a.example.com:1'\nnote: precious\nmode: x\nreplicas: 1")
		patch(t, k.object("v1alpha1", name), `{"legacy":"old","metadata":{"annotations":{"mine":"text"}}}`)
	}
	k.create(t, "v1", "plain", "host: b.example.com\nport: '2'")
	k.create(t, "v1beta1", "colored", "hostPort: 'c.example.com:3'\ncolor: red\nnote: precious")
	before := k.annotations(t, "v1alpha1")
	k.changePolicy(t, `{"spec":{"migration":{"trigger":"count"},"retirement":[{"version":"v1beta1","action":"Remove","after":"0s"}]}}`)
	k.migrate(t)
	k.waitCounted(t, ".legacy: 12; .note: 13; .mode: 12; .color: 1")
	k.waitBlocked(t, "13 objects", ".note, .mode, .color", "acceptedLosses")
	waitFor(t, k.policy, v1alpha1.VersionsRetiredCondition, metav1.ConditionFalse, v1alpha1.ReasonBlocked, []string{"v1beta1 stays: 13 objects"})

	revision := k.revision(t)
	k.accept(t, `".note",".color"`)
	k.waitBlocked(t, "13 objects", ": .mode:")
	if crd := getCRD(t, k.policy); !crds.Serves(crd, "v1beta1") || len(k.writtenSince(t, revision)) > 0 {
		t.Errorf("something was done while a field is not accepted: %v", k.writtenSince(t, revision))
	}

	removed := k.watchRemoval(t, "v1beta1")
	clients := k.writeAllTheTime(t, "v1", "v1alpha1")
	k.accept(t, `".note",".color",".mode"`)
	k.waitUntil(t, "v1beta1 is removed", func(*v1alpha1.ConversionPolicy) bool { return len(getCRD(t, k.policy).Spec.Versions) == 2 })
	for _, each := range clients {
		expect.NoError(t, each.Check())
	}
	expect.Equal(t, "objects that held values of v1beta1 when it was removed", 0, removed())
	expect.Equal(t, "values of v1beta1 in etcd", "map[]", fmt.Sprint(k.annotations(t, "v1beta1")))
	before["colored"] = strings.Replace(before["noted-0"], `"/legacy":"old"`, `"/color":"red"`, 1) // v1alpha1 has the field, too
	expect.Equal(t, "values of v1alpha1", before, k.annotations(t, "v1alpha1"))
	k.checkWritten(t, clients)
	waitEventOf(t, aboutCRD, k.policy, "VersionsChanged", fmt.Sprintf("accepted losses were deleted from %d objects", held+1))
	revision = k.revision(t)
	k.waitUntil(t, "the policy is ready, and says what was done", func(policy *v1alpha1.ConversionPolicy) bool {
		found := apimeta.FindStatusCondition(policy.Status.Conditions, v1alpha1.VersionsRetiredCondition)
		return found != nil && found.Status == metav1.ConditionTrue && apimeta.IsStatusConditionTrue(policy.Status.Conditions, v1alpha1.ReadyCondition)
	})
	expect.Equal(t, "objects that were written afterwards", "[]", fmt.Sprint(k.writtenSince(t, revision)))
}

// TestUnacceptedLoss: a count from the time when clients could write the version is stale, so
// objects are counted again. While accepted values are removed, a late writer adds one of another
// field. It is not removed, and blocks the removal of the version.
func TestUnacceptedLoss(t *testing.T) {
	t.Parallel()
	k := newNoted(t, "late.example.com", "v1", "v1beta1", "v1alpha1")
	k.follow(t, nil)
	k.migrate(t)
	for i := range held {
		k.create(t, "v1beta1", fmt.Sprint("noted-", i), "hostPort: 'a.example.com:1'\nnote: precious")
	}
	conflicts := k.writeLate(t, "noted-3", `{"format":3,"rules":"","hidden":{"/mode":"late","/note":"late"}}`)
	ever := k.recordStatuses(t)
	k.changePolicy(t, `{"spec":{"retirement":[{"version":"v1beta1","action":"Remove","after":"0s","acceptedLosses":[".note"]}]}}`)
	k.waitBlocked(t, "1 object", ".mode", "serve v1beta1 again", "acceptedLosses")
	if !ever(blockedBy(v1alpha1.BlockedPreservedDataUnknown, "clients could write this version after the last count", "unserved for long enough")) {
		t.Error("the status did not say that values of v1beta1 are counted again")
	}
	k.waitCounted(t, ".mode: 1")
	expect.Equal(t, "late writers met the cleanup", 1, conflicts.Load())
	want := map[string]string{"noted-3": `{"format":3,"rules":"","hidden":{"/mode":"late"}}`}
	expect.Equal(t, "what etcd has of v1beta1", want, k.annotations(t, "v1beta1"))
	if stored := k.stored(t)["noted-3"]; stored.Metadata.Labels["late"] != "yes" || stored.Host != "late.example.com" {
		t.Errorf("the late write is lost: %+v", stored)
	}
	if version, _ := crds.Version(getCRD(t, k.policy), "v1beta1"); version == nil || version.Served {
		t.Errorf("v1beta1 is %+v", version)
	}
	k.accept(t, `".note",".mode"`)
	k.waitUntil(t, "v1beta1 is removed", func(*v1alpha1.ConversionPolicy) bool { return len(getCRD(t, k.policy).Spec.Versions) == 2 })
	expect.Equal(t, "values of v1beta1 in etcd", "map[]", fmt.Sprint(k.annotations(t, "v1beta1")))
}

// TestManagerDiesDuringCleanup: the manager dies after some objects, without the response for the
// last one. The next manager continues with the others, and then removes the version. The test is
// not parallel, because there is no manager for a moment.
func TestManagerDiesDuringCleanup(t *testing.T) {
	k := newNoted(t, "crash.example.com", "v1", "v1beta1")
	k.follow(t, nil)
	k.migrate(t)
	for i := range held {
		k.create(t, "v1beta1", fmt.Sprint("noted-", i), "hostPort: 'a.example.com:1'\nnote: precious")
	}
	k.changePolicy(t, `{"spec":{"migration":{"trigger":"count"}}}`)
	k.migrate(t)
	k.waitCounted(t, ".note: 12")
	const some = 5
	died := k.dieAfter(t, some)
	k.changePolicy(t, `{"spec":{"retirement":[{"version":"v1beta1","action":"Remove","after":"0s","acceptedLosses":[".note"]}]}}`)
	expect.Eventually(t, "the manager dies", func() (bool, string) {
		return died(), fmt.Sprint(getPolicy(t, k.policy).Status.Conditions)
	})
	expect.Equal(t, "objects that hold values still", held-some, len(k.annotations(t, "v1beta1")))
	expect.Equal(t, "versions while objects hold values of v1beta1", 2, len(getCRD(t, k.policy).Spec.Versions))
	revision := k.revision(t)
	removed := k.watchRemoval(t, "v1beta1") // replaces the tap by which the manager died
	restart(t)
	k.waitUntil(t, "v1beta1 is removed", func(*v1alpha1.ConversionPolicy) bool { return len(getCRD(t, k.policy).Spec.Versions) == 1 })
	expect.Equal(t, "objects that held values of v1beta1 when it was removed", 0, removed())
	expect.Equal(t, "values of v1beta1 in etcd", "map[]", fmt.Sprint(k.annotations(t, "v1beta1")))
	expect.Equal(t, "objects that the next manager wrote", held-some, len(k.writtenSince(t, revision)))
}
