// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rbacv1apply "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/forecast"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/rights"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// migrating activates everything in silence, and starts a migration.
func (w *world) migrating() {
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.applyCRD(bothStoredOld)
	w.define(bothStoredNew)
	w.log.Reset()
	w.tellsRuns = true
	w.say("Everything is active, objects may be stored at v1beta1, and the trigger is pulled.")
	w.trigger("first")
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
	w.reports(half())
	w.say("It is suspended: the Job's pods end, and its record stays.")
	w.observed.Policy.Spec.Migration.Suspend = true
	w.converge()
	w.say("The gates close meanwhile, and it stays suspended.")
	w.useRules("")
	w.useRules(":")
	w.say("It goes on where it was.")
	w.observed.Policy.Spec.Migration.Suspend = false
	w.converge()
	w.say("Clients wrote some objects meanwhile, so that it waits again.")
	audit := whole()
	audit.State = contract.StateAuditing
	w.reports(audit)
	w.reports(whole())
	w.say("Another one is asked for while migrations are suspended: it does not begin.")
	w.observed.Policy.Spec.Migration.Suspend = true
	w.trigger("second")
	w.say("They are no longer suspended.")
	w.observed.Policy.Spec.Migration.Suspend = false
	w.converge()
}

func migrationCancelled(w *world) {
	w.migrating()
	w.reports(half())
	w.say("It is given up.")
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationNever
	w.converge()
	w.say("Migrations are allowed again: the trigger that was given up does not start one.")
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.converge()
	w.say("Another one does.")
	w.trigger("second")
	w.reports(whole())
	w.say("Its Job is deleted, as a cleaner of finished Jobs would: the evidence stays.")
	w.observed.Runs = nil
	w.converge()
}

func migrationTriggeredAgain(w *world) {
	w.migrating()
	w.reports(half())
	w.say("The trigger is pulled again: the run goes on.")
	w.trigger("second")
	bad := []v1alpha1.MigrationFailure{{Object: "default/bad", Reason: "Refused", Message: "denied the request: no", Command: "kubectl get crontabs.v1.example.com -n default bad -o yaml"}}
	w.say("It expects an object to fail.")
	w.reports(contract.Record{State: contract.StatePropagating, Counters: contract.Counters{Total: 1000, Rewritten: 490, Current: 10}, Predicted: bad})
	w.say("It ends, with that object, and the other run begins.")
	w.reports(contract.Record{State: contract.StateCompleted, Counters: contract.Counters{Total: 1000, Rewritten: 989, Current: 10, Failed: 1}, Predicted: bad, Failures: bad})
	w.reports(whole())
}

func migrationWithNewSettings(w *world) {
	w.migrating()
	w.reports(half())
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
	w.reports(half())
	w.say("A client starts another one: ours stops meanwhile.")
	w.observed.ForeignMigration = "storageversionmigrations.storagemigration.k8s.io/again"
	w.converge()
	w.say("It ends, and has pruned. Ours goes on, and proves it.")
	w.observed.ForeignMigration = ""
	w.pruneAs("kube-controller-manager")
	w.converge()
	w.reports(whole())
}

func migrationOfPruned(w *world) {
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.applyCRD(bothStoredOld)
	w.define(bothStoredNew)
	w.log.Reset()
	w.tellsRuns = true
	w.say("Objects may be stored at v1beta1, and a client prunes status.storedVersions by hand.")
	w.pruneAs("kubectl-edit")
	w.converge()
	w.tellCondition(v1alpha1.StorageMigratedCondition)
	w.say("Migrations are automatic: what no one has proven is proven now.")
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationAutomatic
	w.converge()
	w.reports(whole())
	w.tellCondition(v1alpha1.StorageMigratedCondition)
}

func restoredStoredVersions(w *world) {
	w.tellsRuns = true
	w.define(bothStoredNew)
	w.say("The migration is done.")
	w.reports(whole())
	w.say("A tool restores the status of the CustomResourceDefinition from a time before v1 was stored.")
	w.observed.CRD.Status.StoredVersions = []string{"v1beta1"}
	w.converge()
	w.reports(whole())
	w.say("It does so again, and migrations wait for a trigger.")
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.observed.CRD.Status.StoredVersions = []string{"v1beta1"}
	w.converge()
	w.tellCondition(v1alpha1.StorageMigratedCondition)
}

func migrationUnserved(w *world) {
	unserved := contract.Record{State: contract.StateAborted, Message: "the API server does not serve crontabs.example.com at version v1 any more"}
	w.migrating()
	w.say("A tool restores the conditions of the CustomResourceDefinition, without any: no API server serves the kind, and the run finds nothing.")
	w.observed.CRD.Status.Conditions = nil
	w.reports(unserved)
	w.tellCondition(v1alpha1.StorageMigratedCondition)
	w.say("API servers serve it again: it is tried again.")
	w.observed.CRD.Status.Conditions = forecast.Established(w.observed.Now)
	w.converge()
	w.say("That fails in the same way, although they serve it: this is for a user.")
	w.reports(unserved)
	w.tellCondition(v1alpha1.StorageMigratedCondition)
	w.trigger("second")
	w.reports(whole())
}

// pruneAs lets a client say that objects are stored at v1 alone.
func (w *world) pruneAs(manager string) {
	w.observed.CRD.Status.StoredVersions = []string{"v1"}
	w.observed.CRD.ManagedFields = append(w.observed.CRD.ManagedFields, metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status",
		Time: &metav1.Time{Time: w.observed.Now.Add(time.Second)}, FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:storedVersions":{}}}`)})
}

// rightsGranted: an administrator grants each right when a condition asks for it.
func rightsGranted(w *world) {
	w.tellsRuns = true
	w.observed.Granted = &observed.Granted{}
	w.activate(bothStoredOld)
	w.say("The administrator runs the commands.")
	w.observed.Granted.Read = true
	w.converge()
	w.say("The trigger of a migration is pulled, for which nothing is granted.")
	w.applyCRD(bothStoredNew)
	w.trigger("first")
	w.say("The administrator runs these commands too.")
	w.observed.Granted.Migrate = true
	w.converge()
	w.say("What was granted is taken back while it runs: it is for the run to say so.")
	w.observed.Granted.Migrate = false
	w.converge()
	w.reports(whole())
}

// TestGrantsHaveCommands, which grant what the operator grants otherwise: rights to one resource, and no others.
func TestGrantsHaveCommands(t *testing.T) {
	state := observed.Cluster{Policy: &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: crontabs}},
		CRD: &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "crontabs"}}}}
	expect.Equal(t, "resources that a run may write by default", []string{"crontabs"}, rights.ToMigrate(state).Resources)
	state.Policy.Spec.Migration.Fallback = []v1alpha1.MigrationFallback{v1alpha1.MigrationFallbackStatus}
	migrate, read, clearing := rights.ToMigrate(state), rights.ToRead(state), rights.ToClear(state)
	name := names.Child(crontabs)
	bind := func(as string) string {
		return "; kubectl create clusterrolebinding " + name + as + " --clusterrole=" + name + as + " --serviceaccount=system:" + name + as
	}
	want := []string{
		"kubectl create clusterrole " + name + "-migrate --verb=list,patch --resource=crontabs.example.com,crontabs.example.com/status" + bind("-migrate"),
		"kubectl create clusterrole " + name + "-read --verb=get,list --resource=crontabs.example.com" + bind("-read"),
		"kubectl create clusterrole " + name + "-clear --verb=list,patch --resource=crontabs.example.com" + bind("-clear"),
	}
	expect.Equal(t, "commands", want, []string{migrate.Commands("system"), read.Commands("system"), clearing.Commands("system")})
	for _, grant := range []rights.Grant{migrate, read, clearing} {
		want := []rbacv1apply.PolicyRuleApplyConfiguration{{APIGroups: []string{"example.com"}, Resources: grant.Resources, Verbs: grant.Verbs}}
		expect.Equal(t, "rights of "+grant.Account, want, applied[rbacv1apply.ClusterRoleApplyConfiguration](t, grant.Steps()).Rules)
	}
}

// noted has a field in v1beta1 that v1 lacks, and placed has it in both.
var (
	noted  = strings.Replace(bothStoredNew, "hostPort: {type: string}", "hostPort: {type: string}, note: {type: string}", 1)
	placed = strings.Replace(noted, "port: {type: string}}", "port: {type: string}, note: {type: string}}", 1)
)

// holding is what objects hold when that many of them have a note.
func holding(notes int64) conversion.Holdings { return holdingOf(".note", notes) }

func holdingOf(path string, objects int64) conversion.Holdings {
	held := conversion.Holdings{Seen: 1000, Objects: objects, Bytes: 50 * objects}
	if objects > 0 {
		held.Versions = []conversion.VersionHoldings{{Version: "v1beta1", Objects: objects, Bytes: 50 * objects, Fields: []conversion.FieldHoldings{{Path: path, Objects: objects}}}}
	}
	return held
}

// count is what a look at all objects finds.
func (w *world) count(rules *conversion.Ruleset) *observed.Held {
	return &observed.Held{Holdings: *w.held.Clone(), CRD: w.observed.CRD.UID, Ruleset: rules.Hash(), Since: w.observed.Now, All: true}
}

// clear counts what objects hold, and lets them forget what may be lost.
func (w *world) clear(s step.ClearManagedFields) observed.BackgroundCheck {
	answer := w.cleared
	if s.Rules == nil {
		return answer
	}
	if w.denied && len(s.Discard) > 0 {
		return observed.BackgroundCheck{Reason: v1alpha1.ReasonCheckFailed, Message: "1 objects could not be changed, for example default/a: denied the request: no"}
	}
	if slices.Contains(s.Discard, ".note") {
		answer.Discarded, w.held = w.held.Objects, holding(0)
		if w.late {
			w.held, w.late = holdingOf(".mode", 1), false
		}
	}
	answer.Held = w.count(s.Rules)
	return answer
}

func (w *world) tellPreserved() {
	counted := w.observed.Policy.Status.PreservedData
	if counted == nil {
		w.tell("  | preserved data: never counted")
		return
	}
	w.tell("  | preserved data: complete %t, of the current rules %t", counted.Complete, counted.Ruleset == w.observed.Policy.Status.Revision)
	for _, of := range counted.Versions {
		for _, field := range of.Fields {
			w.tell("  |   %s of %s: %d objects", field.Path, of.Version, field.Objects)
		}
	}
}

// holdingNotes brings the world to where 40 objects, stored at v1, hold notes of v1beta1.
func (w *world) holdingNotes() {
	w.tellsRuns, w.counts = true, true
	w.held = holding(40)
	w.applyCRD(bothStoredOld)
	w.define(noted)
	w.log.Reset()
	w.say("The migration to v1 is done. 40 objects hold notes, for which v1 has no place.")
	w.reports(whole())
	w.tellPreserved()
}

func preservedData(w *world) {
	w.holdingNotes()
	w.say("v1 gets the field: when objects convert by the new rules, a run makes data of the notes. One does not fit.")
	w.define(placed)
	w.tellPreserved()
	w.reports(half())
	w.held = holding(1)
	refused := []contract.Refusal{{Version: "v1beta1", MigrationFailure: v1alpha1.MigrationFailure{Object: "default/odd", Reason: "DoesNotFit", Message: "the value of .note stays in the annotation conversion-operator.io/v1beta1.crontabs.example.com: the schema does not allow it: the value is too long"}}}
	w.reports(contract.Record{State: contract.StateCompleted, Counters: contract.Counters{Total: 1000, Rewritten: 39, Current: 961}, Placed: 39, Unplaced: 1, Refused: refused})
	w.tellPreserved()
	w.tellBlocks()
	w.say("The manager starts again: nothing is done a second time.")
	w.observed.Samples = nil
	w.converge()
	w.say("Rules change again while a run gives the note its place: another run begins with them.")
	w.held = holding(7)
	w.useRules(";")
	w.reports(half())
	w.useRules("/")
	w.reports(whole())
	w.tellPreserved()
}

func preservedDataByTrigger(w *world) {
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.observed.Policy.Spec.Migration.Trigger = "first"
	w.holdingNotes()
	w.say("v1 gets the field. Migrations are started by hand: the condition says that one is worth it.")
	w.define(placed)
	w.tellCondition(v1alpha1.StorageMigratedCondition)
	w.say("It is asked for.")
	w.trigger("second")
	w.held = holding(0)
	w.reports(whole())
	w.tellCondition(v1alpha1.StorageMigratedCondition)
	w.tellPreserved()
}

func preservedDataStranded(w *world) {
	w.holdingNotes()
	w.tellVersions()
	w.say("v1beta1 is to go: it is deprecated, and stays while objects hold notes.")
	w.retire("v1beta1", v1alpha1.RetirementRemove)
	w.converge()
	w.later(week)
	w.tellVersions()
	w.tellCondition(v1alpha1.VersionsRetiredCondition)
	w.say("The rules change, and nothing is counted meanwhile: what is not known keeps it, too.")
	w.counts = false
	w.useRules(";")
	w.observed.Policy.Spec.Retirement[0].AcceptedLosses = []string{".note"}
	w.converge()
	w.tellVersions()
	w.tellCondition(v1alpha1.VersionsRetiredCondition)
	w.say("A migration counts. The loss of notes is accepted: it is not served any more.")
	w.trigger("count")
	w.reports(whole())
	w.tellPreserved()
	w.say("A week later objects are counted again, then what is accepted is taken from them, and v1beta1 goes.")
	w.later(week)
	w.tellPreserved()
	w.tellVersions()
}

// preservedDataLate: a version is not removed when a value that is not accepted comes
// within the second in which the accepted ones are taken away.
func preservedDataLate(w *world) {
	w.holdingNotes()
	w.retire("v1beta1", v1alpha1.RetirementRemove)
	w.observed.Policy.Spec.Retirement[0].AcceptedLosses = []string{".note"}
	w.converge()
	w.later(week)
	w.say("A week later objects are cleaned in less than a second. Meanwhile a client writes one with a mode.")
	w.tick, w.late = time.Millisecond, true
	w.later(week)
	w.tellPreserved()
	w.tellVersions()
	w.tellCondition(v1alpha1.VersionsRetiredCondition)
	w.say("The loss of modes is accepted, too, but the object refuses to be written.")
	w.denied = true
	w.accept(v1alpha1.RetirementRemove, ".note", ".mode")
	w.say("A while later it does not any more.")
	w.denied = false
	w.later(time.Hour)
	w.tellVersions()
}

// acceptedLosses: what is written wrong is said, and what has no effect.
func acceptedLosses(w *world) {
	w.holdingNotes()
	w.say("A field is written wrong, and no action asks for the removal.")
	w.accept(v1alpha1.RetirementKeep, ".notes")
	w.say("It is written right.")
	w.accept(v1alpha1.RetirementKeep, ".note")
	w.say("Another one is no path.")
	w.accept(v1alpha1.RetirementRemove, ".note", ".spec[")
	w.say("A field that v1beta1 has and no object holds is accepted as well.")
	w.accept(v1alpha1.RetirementRemove, ".note", ".hostPort")
	w.say("The version is written wrong.")
	w.observed.Policy.Spec.Retirement = []v1alpha1.Retirement{{Version: "v1bta1", Action: v1alpha1.RetirementRemove, AcceptedLosses: []string{".note"}}}
	w.converge()
	w.tellCondition(v1alpha1.VersionsRetiredCondition)
}

func (w *world) accept(action v1alpha1.RetirementAction, fields ...string) {
	w.retire("v1beta1", action)
	w.observed.Policy.Spec.Retirement[0].AcceptedLosses = fields
	w.converge()
	w.tellCondition(v1alpha1.VersionsRetiredCondition)
}

// tellBlocks tells what blocks the removal of v1beta1, in full.
func (w *world) tellBlocks() {
	const version = "v1beta1"
	for _, is := range w.observed.Policy.Status.Versions {
		for _, block := range is.BlockedBy {
			if is.Name == version {
				w.tell("  | %s is kept: %s: %s", version, block.Reason, block.Message)
			}
		}
	}
}

// TestCountIsAsOldAsItsBeginning: clients may have written what a run has passed
// already, so that its end says nothing of how old its count is.
func TestCountIsAsOldAsItsBeginning(t *testing.T) {
	w := newWorld(t, policyYAML)
	w.holdingNotes()
	w.trigger("count")
	began := w.observed.Policy.Status.Migration.StartTime
	w.counts = false
	w.later(time.Hour)
	w.reports(whole())
	counted := w.observed.Policy.Status.PreservedData
	if !counted.Complete || !counted.Time.Equal(began) {
		t.Errorf("a run that began at %v counted %+v", began, counted)
	}
}
