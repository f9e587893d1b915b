// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
)

// migrating activates everything in silence, and starts a migration.
func (w *world) migrating() {
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.applyCRD(bothStoredOld)
	w.applyCRD(bothStoredNew)
	w.converge()
	w.log.Reset()
	w.tellsRuns = true
	w.say("Everything is active, objects may be stored at v1beta1, and the trigger is pulled.")
	w.observed.Policy.Spec.Migration.Trigger = "first"
	w.converge()
}

// half is a run that is half done.
func half() contract.Record {
	return contract.Record{State: contract.StateRunning, Counters: contract.Counters{Total: 1000, Rewritten: 490, Current: 10}, RatePerSecond: 250}
}

func whole() contract.Record {
	return contract.Record{State: contract.StateCompleted, Counters: contract.Counters{Total: 1000, Rewritten: 990, Current: 10}, Verified: 100}
}

func migrationSuspended(w *world) {
	w.migrating()
	w.record(half())
	w.converge()
	w.say("It is suspended: the Job's pods end, and its record stays.")
	w.observed.Policy.Spec.Migration.Suspend = true
	w.converge()
	w.say("The gates close meanwhile, and it stays suspended.")
	w.changeRules("")
	w.converge()
	w.changeRules(":")
	w.converge()
	w.say("It goes on where it was.")
	w.observed.Policy.Spec.Migration.Suspend = false
	w.converge()
	w.record(whole())
	w.converge()
	w.say("Another one is asked for while migrations are suspended: it does not begin.")
	w.observed.Policy.Spec.Migration.Suspend = true
	w.observed.Policy.Spec.Migration.Trigger = "second"
	w.converge()
	w.say("They are no longer suspended.")
	w.observed.Policy.Spec.Migration.Suspend = false
	w.converge()
}

func migrationCancelled(w *world) {
	w.migrating()
	w.record(half())
	w.converge()
	w.say("It is given up.")
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationNever
	w.converge()
	w.say("Migrations are allowed again: the trigger that was given up does not start one.")
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.converge()
	w.say("Another one does.")
	w.observed.Policy.Spec.Migration.Trigger = "second"
	w.converge()
	w.record(whole())
	w.converge()
	w.say("Its Job is deleted, as a cleaner of finished Jobs would: the evidence stays.")
	w.observed.Runs = nil
	w.converge()
}

func migrationTriggeredAgain(w *world) {
	w.migrating()
	w.record(half())
	w.converge()
	w.say("The trigger is pulled again: the run goes on.")
	w.observed.Policy.Spec.Migration.Trigger = "second"
	w.converge()
	bad := []v1alpha1.MigrationFailure{{Object: "default/bad", Reason: "Refused", Message: "denied the request: no", Command: "kubectl get crontabs.v1.example.com -n default bad -o yaml"}}
	w.say("It expects an object to fail.")
	w.record(contract.Record{State: contract.StatePropagating, Counters: contract.Counters{Total: 1000, Rewritten: 490, Current: 10}, Predicted: bad})
	w.converge()
	w.say("It ends, with that object, and the other run begins.")
	w.record(contract.Record{State: contract.StateCompleted, Counters: contract.Counters{Total: 1000, Rewritten: 989, Current: 10, Failed: 1}, Predicted: bad, Failures: bad})
	w.converge()
	w.record(whole())
	w.converge()
}

func migrationWithNewSettings(w *world) {
	w.migrating()
	w.record(half())
	w.converge()
	w.say("It is to go slower: another Job goes on from the same record.")
	w.observed.Policy.Spec.Migration.MaxWritesPerSecond = new(int32(50))
	w.converge()
	w.say("Its node is tainted, and its pod leaves: the next one finds no node.")
	w.observed.Runs[0].Trouble = observed.PodTrouble{Cause: observed.PodUnschedulable, Message: "it cannot be scheduled: 0/1 nodes are available: 1 node(s) had untolerated taint(s)"}
	w.converge()
	w.say("It is to tolerate the taint.")
	read(w.t, "[{key: dedicated, operator: Exists}]", &w.observed.Policy.Spec.Migration.Workload.Tolerations)
	w.observed.Runs[0].Trouble = observed.PodTrouble{}
	w.converge()
	w.say("It is to go slower still, while it is suspended: that waits.")
	w.observed.Policy.Spec.Migration.Suspend = true
	w.converge()
	w.observed.Policy.Spec.Migration.MaxWritesPerSecond = new(int32(5))
	w.converge()
	w.observed.Policy.Spec.Migration.Suspend = false
	w.converge()
}

func migrationBesideAnother(w *world) {
	w.observed.ForeignMigration = "storageversionmigrations.storagemigration.k8s.io/theirs"
	w.migrating()
	w.say("That of another client ends.")
	w.observed.ForeignMigration = ""
	w.converge()
	w.record(half())
	w.converge()
	w.say("A client starts another one: ours stops meanwhile.")
	w.observed.ForeignMigration = "storageversionmigrations.storagemigration.k8s.io/again"
	w.converge()
	w.say("It ends, and has pruned. Ours goes on, and proves it.")
	w.observed.ForeignMigration = ""
	w.pruneAs("kube-controller-manager")
	w.converge()
	w.record(whole())
	w.converge()
}

func migrationOfPruned(w *world) {
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.applyCRD(bothStoredOld)
	w.applyCRD(bothStoredNew)
	w.converge()
	w.log.Reset()
	w.tellsRuns = true
	w.say("Objects may be stored at v1beta1, and a client prunes status.storedVersions by hand.")
	w.pruneAs("kubectl-edit")
	w.converge()
	w.tellCondition(v1alpha1.StorageMigratedCondition)
	w.say("Migrations are automatic: what no one has proven is proven now.")
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationAutomatic
	w.converge()
	w.record(whole())
	w.converge()
	w.tellCondition(v1alpha1.StorageMigratedCondition)
}

// pruneAs lets a client say that objects are stored at v1 alone.
func (w *world) pruneAs(manager string) {
	w.observed.CRD.Status.StoredVersions = []string{"v1"}
	w.observed.CRD.ManagedFields = append(w.observed.CRD.ManagedFields, metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status",
		Time: &metav1.Time{Time: w.observed.Now.Add(time.Second)}, FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:storedVersions":{}}}`)})
}
