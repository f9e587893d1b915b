// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
)

// storageMigrated: every stored object is in the storage version, by our own
// evidence. status.storedVersions is a hint only: it may have been pruned by
// somebody who rewrote nothing.
func storageMigrated(s *state) outcome {
	decided := s.decideMigration(s.wantedRun(), crds.StorageVersion(s.CRD))
	if s.Rights && (s.underWay() == nil || s.rests()) {
		s.withdraw(MigrationRightsName(s.Policy.Name))
	}
	return decided
}

func (s *state) decideMigration(id, storage string) outcome {
	switch {
	case s.runs(id) || s.wantsRun(id):
		if s.ending() {
			return waiting(v1alpha1.ReasonMigrating, "waits for the end of the pods of a migration that was given up")
		}
		return s.migrate(id, storage)
	case s.plan.Status.Evidence != nil:
		return s.proven(storage)
	case s.failed(id):
		return s.explainFailure()
	case len(s.CRD.Spec.Versions) == 1:
		return passed(v1alpha1.ReasonNothingToMigrate, "the CustomResourceDefinition has one version: "+storage)
	case crds.StoredOnlyIn(s.CRD, storage):
		return undecided(v1alpha1.ReasonStoredVersionsUntrusted, fmt.Sprintf(
			"status.storedVersions names %s alone, but no migration of this policy has proven it, and others prune it without a proof: %s",
			storage, howToMigrate(s.Policy)))
	}
	return undecided(v1alpha1.ReasonNotRequested, fmt.Sprintf(
		"objects may be stored at %s: %s", strings.Join(s.CRD.Status.StoredVersions, ", "), howToMigrate(s.Policy)))
}

func howToMigrate(policy *v1alpha1.ConversionPolicy) string {
	if policy.Spec.Migration.Mode == v1alpha1.MigrationNever {
		return "spec.migration.mode is Never: set it to Automatic to start a migration"
	}
	return "change spec.migration.trigger to start a migration"
}

// underWay is the run that goes on, or nil.
func (s *state) underWay() *v1alpha1.MigrationStatus {
	if last := s.plan.Status.Migration; last != nil && last.State == v1alpha1.MigrationRunning {
		return last
	}
	return nil
}

// rests reports that the run is paused and has no pod any more, which may last:
// nobody needs its rights meanwhile.
func (s *state) rests() bool {
	job := s.run(s.underWay().Run).Job
	return s.Policy.Spec.Migration.Paused && job != nil && ptr.Deref(job.Spec.Suspend, false) &&
		job.Status.Active == 0 && ptr.Deref(job.Status.Terminating, 0) == 0
}

// runs reports whether the run is under way.
func (s *state) runs(id string) bool {
	last := s.underWay()
	return last != nil && last.Run == id
}

func (s *state) failed(id string) bool {
	last := s.plan.Status.Migration
	return last != nil && last.Run == id && last.State == v1alpha1.MigrationFailed
}

// wantsRun reports whether the policy asks for a run that was not made yet.
func (s *state) wantsRun(id string) bool {
	switch s.Policy.Spec.Migration.Mode {
	case v1alpha1.MigrationNever:
		return false
	case v1alpha1.MigrationOnTrigger:
		return s.triggered()
	default:
		return s.triggered() || s.plan.Status.Evidence == nil && len(s.CRD.Spec.Versions) > 1 && !s.failed(id) || s.toPlace()
	}
}

// triggered reports that no run answers the trigger. One that was superseded was
// not what was asked for; one that was cancelled was given up by who asked.
func (s *state) triggered() bool {
	trigger, last := s.Policy.Spec.Migration.Trigger, s.plan.Status.Migration
	answered := last != nil && last.Trigger == trigger && last.State != v1alpha1.MigrationSuperseded
	return trigger != "" && !answered
}

// proven says what the evidence says.
func (s *state) proven(storage string) outcome {
	evidence := s.plan.Status.Evidence
	if evidence.Source == v1alpha1.EvidenceSingleVersion {
		return passed(v1alpha1.ReasonNothingToMigrate, "objects were never stored in another version than "+storage+s.notYetPlaced())
	}
	return passed(v1alpha1.ReasonMigrated, fmt.Sprintf("every object is stored at %s: run %s saw %d%s", storage, evidence.Run, evidence.Objects, s.notYetPlaced()))
}

// migrate starts a run, follows it, and prunes after it.
func (s *state) migrate(id, storage string) outcome {
	run := s.run(id)
	if wait := s.beforeRun(run, storage); wait.reason != "" {
		return wait
	}
	s.recordRun(run, storage)
	switch {
	case run.Progress != nil && run.Progress.Complete:
		return s.prune(id, storage)
	case over(run):
		s.endRun(v1alpha1.MigrationFailed)
		failure := s.explainFailure()
		failure.stalled = !s.triggered() // the next run is asked for already
		return failure
	case s.Policy.Spec.Migration.Paused:
		return s.paused()
	case s.otherSettings(run, storage):
		s.do(DeleteJob{run.Job.Name, run.Job.UID})
		return waiting(v1alpha1.ReasonMigrating, "run "+id+" goes on with other settings, once its pod has ended")
	}
	for _, step := range s.startRun(run, storage) {
		s.do(step)
	}
	return waiting(v1alpha1.ReasonMigrating, s.explainProgress())
}

// beforeRun says what keeps a run from being made, or looked at.
func (s *state) beforeRun(run Run, storage string) outcome {
	foreign := s.foreignMigration()
	switch {
	case !crds.Serves(s.CRD, storage):
		return stalled(v1alpha1.ReasonStorageVersionNotServed, fmt.Sprintf(
			"the storage version %s is not served, so that objects cannot be rewritten: set served: true for it", storage))
	case foreign != "":
		s.recheck(foreignPause)
		return waiting(v1alpha1.ReasonForeignStorageMigration, "waits for the end of "+foreign+"; if it does not end, delete it")
	case s.runs(run.ID):
		return outcome{}
	case s.mayNotMigrate() != "":
		return waiting(v1alpha1.ReasonRightsNotGranted, s.mayNotMigrate())
	case over(run) || run.Job != nil && !run.Job.DeletionTimestamp.IsZero():
		// It was run before, for the same pins: what it proved then is not what is asked now.
		s.do(DeleteRun{RunName(s.Policy.Name, run.ID)})
		return waiting(v1alpha1.ReasonMigrating, "waits for the end of the migration of before")
	case s.Policy.Spec.Migration.Paused:
		return waiting(v1alpha1.ReasonMigrationPaused, fmt.Sprintf(
			"objects are to be migrated to %s: set spec.migration.paused to false, and it begins", storage))
	}
	return outcome{}
}

func (s *state) run(id string) Run {
	for _, run := range s.Runs {
		if run.ID == id {
			return run
		}
	}
	return Run{ID: id}
}

// prune reduces status.storedVersions once the run has rewritten everything,
// and takes the run for evidence once the API server shows it.
func (s *state) prune(id, storage string) outcome {
	if !crds.StoredOnlyIn(s.CRD, storage) {
		s.do(PruneStoredVersions{Pin: s.pin(), StorageVersion: storage})
		return waiting(v1alpha1.ReasonPruning, "every object is stored at "+storage+": pruning status.storedVersions")
	}
	s.endRun(v1alpha1.MigrationSucceeded)
	evidence := s.establish(v1alpha1.EvidenceMigration, storage)
	evidence.Run, evidence.Objects = id, s.plan.Status.Migration.Total
	return s.proven(storage)
}

// paused says how far a run is that was told to stop.
func (s *state) paused() outcome {
	last := s.plan.Status.Migration
	how := "before its first object"
	if last.Progress != "" {
		how = fmt.Sprintf("at %d of %d objects", done(last), max(done(last), last.Total))
	}
	return waiting(v1alpha1.ReasonMigrationPaused, fmt.Sprintf(
		"run %s is paused %s: set spec.migration.paused to false, and it goes on from there", last.Run, how))
}

// explainProgress says what a run does, without what changes while it does it.
func (s *state) explainProgress() string {
	last := s.plan.Status.Migration
	says := what(last)
	if last.Waiting != "" {
		says += "; it stands still: " + last.Waiting
	}
	if n := len(last.Predicted); n > 0 {
		says += fmt.Sprintf("; the API server would refuse %d of the objects that were tried first, for example %s: %s",
			n, last.Predicted[0].Object, last.Predicted[0].Message)
	}
	if trigger := s.Policy.Spec.Migration.Trigger; trigger != last.Trigger && trigger != "" {
		says += fmt.Sprintf("; spec.migration.trigger %q is answered by another run after it", trigger)
	}
	return says
}

// what says which objects a run writes.
func what(run *v1alpha1.MigrationStatus) string {
	objects := "objects"
	if run.RetryOf != "" {
		objects = "what failed in run " + run.RetryOf
	}
	if run.Cause == v1alpha1.MigrationForPreservedData {
		return fmt.Sprintf("run %s gives values that objects hold in annotations the place that they have now at %s", run.Run, run.StorageVersion)
	}
	return fmt.Sprintf("run %s rewrites %s at %s", run.Run, objects, run.StorageVersion)
}

// notYetPlaced says how values come to their place where no run does that by itself.
func (s *state) notYetPlaced() string {
	if s.Policy.Spec.Migration.Mode == v1alpha1.MigrationAutomatic || !s.toPlace() {
		return ""
	}
	return fmt.Sprintf("; %d objects hold values in annotations, of which some have a place now: %s", s.plan.Status.PreservedData.Objects, howToMigrate(s.Policy))
}

// explainFailure says what failed and what to do; nothing was pruned.
func (s *state) explainFailure() outcome {
	last := s.plan.Status.Migration
	const cure = "; nothing was pruned; change spec.migration.trigger to try again"
	if last.Failed == 0 {
		return stalled(v1alpha1.ReasonMigrationFailed, "run "+last.Run+": "+last.Message+cure)
	}
	var example string
	if len(last.Failures) > 0 {
		example = ", for example " + last.Failures[0].Object + ": " + last.Failures[0].Message
	}
	return stalled(v1alpha1.ReasonObjectsFailed, fmt.Sprintf("%d of %d objects could not be rewritten%s; ConfigMap %s has all of them%s",
		last.Failed, last.Total, example, last.Record, cure))
}
