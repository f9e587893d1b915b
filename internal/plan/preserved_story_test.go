// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/plan/step"
)

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
		return observed.BackgroundCheck{Reason: v1alpha1.ReasonCleaningFailed, Message: "1 objects could not be changed, for example default/a: denied the request: no"}
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
	w.converge()
	w.log.Reset()
	w.say("The migration to v1 is done. 40 objects hold notes, for which v1 has no place.")
	w.record(whole())
	w.converge()
	w.tellPreserved()
}

func preservedData(w *world) {
	w.holdingNotes()
	w.say("v1 gets the field: when objects convert by the new rules, a run makes data of the notes. One does not fit.")
	w.applyCRD(placed)
	w.converge()
	w.tellPreserved()
	w.record(half())
	w.converge()
	w.held = holding(1)
	refused := []v1alpha1.MigrationFailure{{Object: "default/odd", Reason: "DoesNotFit", Version: "v1beta1", Message: "the value of .note stays in the annotation conversion-operator.io/v1beta1.crontabs.example.com: the schema does not allow it: the value is too long"}}
	w.record(contract.Record{State: contract.StateCompleted, Counters: contract.Counters{Total: 1000, Rewritten: 39, Current: 961}, Placed: 39, Unplaced: 1, Refused: refused})
	w.converge()
	w.tellPreserved()
	w.tellBlocks()
	w.say("The manager starts again: nothing is done a second time.")
	w.observed.Samples = nil
	w.converge()
	w.say("Rules change again while a run gives the note its place: another run begins with them.")
	w.held = holding(7)
	w.changeRules(";")
	w.converge()
	w.record(half())
	w.converge()
	w.changeRules("/")
	w.converge()
	w.record(whole())
	w.converge()
	w.tellPreserved()
}

func preservedDataByTrigger(w *world) {
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.observed.Policy.Spec.Migration.Trigger = "first"
	w.holdingNotes()
	w.say("v1 gets the field. Migrations are started by hand: the condition says that one is worth it.")
	w.applyCRD(placed)
	w.converge()
	w.tellCondition(v1alpha1.StorageMigratedCondition)
	w.say("It is asked for.")
	w.observed.Policy.Spec.Migration.Trigger = "second"
	w.converge()
	w.held = holding(0)
	w.record(whole())
	w.converge()
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
	w.changeRules(";")
	w.converge()
	w.observed.Policy.Spec.Retirement[0].AcceptedLosses = []string{".note"}
	w.converge()
	w.tellVersions()
	w.tellCondition(v1alpha1.VersionsRetiredCondition)
	w.say("A migration counts. The loss of notes is accepted: it is not served any more.")
	w.observed.Policy.Spec.Migration.Trigger = "count"
	w.converge()
	w.record(whole())
	w.converge()
	w.tellPreserved()
	w.say("A week later objects are counted again, then what is accepted is taken from them, and v1beta1 goes.")
	w.later(week)
	w.tellPreserved()
	w.tell("  | discarded from %d objects", w.observed.Policy.Status.Retirement[0].Discarded)
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
	w.accept(v1alpha1.RetirementReport, ".notes")
	w.say("It is written right.")
	w.accept(v1alpha1.RetirementReport, ".note")
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
	w.observed.Policy.Spec.Migration.Trigger = "count"
	w.converge()
	began := w.observed.Policy.Status.Migration.StartTime
	w.counts = false
	w.later(time.Hour)
	w.record(whole())
	w.converge()
	counted := w.observed.Policy.Status.PreservedData
	if counted.Source != v1alpha1.PreservedDataByMigration || !counted.Time.Equal(began) {
		t.Errorf("a run that began at %v counted %+v", began, counted)
	}
}
