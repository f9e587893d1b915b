// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/plan"
)

// noted has a field in v1beta1 that v1 lacks, and placed has it in both.
var (
	noted  = strings.Replace(bothStoredNew, "hostPort: {type: string}", "hostPort: {type: string}, note: {type: string}", 1)
	placed = strings.Replace(noted, "port: {type: string}}", "port: {type: string}, note: {type: string}}", 1)
)

// holding is what objects hold when so many of them have a note.
func holding(notes int64) conversion.Holdings {
	held := conversion.Holdings{Seen: 1000, Objects: notes, Bytes: 50 * notes}
	if notes > 0 {
		held.Versions = []conversion.VersionHoldings{{Version: "v1beta1", Objects: notes, Bytes: 50 * notes, Fields: []conversion.FieldHoldings{{Path: ".note", Objects: notes}}}}
	}
	return held
}

// count is what a look at all objects finds.
func (w *world) count(rules *conversion.Plan) *plan.Held {
	return &plan.Held{Holdings: *w.held.Clone(), CRD: w.observed.CRD.UID, Ruleset: rules.Hash(), All: true}
}

// clear counts what objects hold, and lets them forget what may be lost.
func (w *world) clear(step plan.ClearManagedFields) plan.Inquiry {
	answer := w.cleared
	if step.Rules == nil {
		return answer
	}
	if slices.Contains(step.Discard, ".note") {
		answer.Discarded, w.held = w.held.Objects, holding(0)
	}
	answer.Held = w.count(step.Rules)
	return answer
}

func (w *world) tellPreserved() {
	counted := w.observed.Policy.Status.PreservedData
	if counted == nil {
		w.tell("  | preserved data: never counted")
		return
	}
	w.tell("  | preserved data: %d of %d objects, by %s; complete %t, outdated %t", counted.Objects, counted.Seen, counted.Source, counted.Complete, counted.Outdated)
	for _, of := range counted.Versions {
		for _, field := range of.Fields {
			w.tell("  |   %s of %s: %d objects, has a place %t", field.Path, of.Version, field.Objects, field.HasPlace)
		}
	}
}

// holdingNotes brings the world to where 40 objects, stored at v1, hold notes of v1beta1.
func (w *world) holdingNotes() {
	w.tellsRuns, w.counts = true, true
	w.held = holding(40)
	w.applyCRD(bothStoredOld)
	w.applyCRD(noted)
	w.settle()
	w.log.Reset()
	w.say("The migration to v1 is done. 40 objects hold notes, for which v1 has no place.")
	w.record(whole())
	w.settle()
	w.tellPreserved()
}

func preservedData(w *world) {
	w.holdingNotes()
	w.say("v1 gets the field: when objects convert by the new rules, a run makes data of the notes. One does not fit.")
	w.applyCRD(placed)
	w.settle()
	w.tellPreserved()
	w.record(half())
	w.settle()
	w.held = holding(1)
	refused := []v1alpha1.MigrationFailure{{Object: "default/odd", Reason: "Invalid", Message: "at v1beta1: hostPort: Required value"}}
	w.record(plan.Progress{Finished: true, Complete: true, Total: 1000, Rewritten: 39, Current: 961, Placed: 39, NotPlaced: 1, Refused: refused})
	w.settle()
	w.tellPreserved()
	w.say("The manager starts anew: nothing is done once more.")
	w.observed.Samples = nil
	w.settle()
	w.say("Rules change again while a run gives the note its place: another run begins with them.")
	w.held = holding(7)
	w.changeRules(";")
	w.settle()
	w.record(half())
	w.settle()
	w.changeRules("/")
	w.settle()
	w.record(whole())
	w.settle()
	w.tellPreserved()
}

func preservedDataByTrigger(w *world) {
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.observed.Policy.Spec.Migration.Trigger = "first"
	w.holdingNotes()
	w.say("v1 gets the field. Migrations are started by hand: the condition says that one is worth it.")
	w.applyCRD(placed)
	w.settle()
	w.tellCondition(v1alpha1.StorageMigratedCondition)
	w.say("It is asked for.")
	w.observed.Policy.Spec.Migration.Trigger = "second"
	w.settle()
	w.held = holding(0)
	w.record(whole())
	w.settle()
	w.tellCondition(v1alpha1.StorageMigratedCondition)
	w.tellPreserved()
}

func preservedDataStranded(w *world) {
	w.holdingNotes()
	w.tellVersions()
	w.say("v1beta1 is to go: it is deprecated, and stays while objects hold notes.")
	w.retire("v1beta1", v1alpha1.RetirementRemove)
	w.settle()
	w.later(week)
	w.tellVersions()
	w.tellCondition(v1alpha1.VersionsRetiredCondition)
	w.say("The rules change, and nobody counts meanwhile: what is not known keeps it, too.")
	w.counts = false
	w.changeRules(";")
	w.settle()
	w.observed.Policy.Spec.Retirement[0].AcceptedLosses = []string{".note"}
	w.settle()
	w.tellVersions()
	w.tellCondition(v1alpha1.VersionsRetiredCondition)
	w.say("A migration counts. The loss of notes is accepted: it is not served any more.")
	w.observed.Policy.Spec.Migration.Trigger = "count"
	w.settle()
	w.record(whole())
	w.settle()
	w.tellPreserved()
	w.say("A week later objects are counted once more, then what is accepted is taken from them, and v1beta1 goes.")
	w.later(week)
	w.tellPreserved()
	w.tell("  | discarded from %d objects", w.observed.Policy.Status.Retirement[0].Discarded)
	w.tellVersions()
}
