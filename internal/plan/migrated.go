// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
)

// storageMigrated: every stored object is in the storage version, by our own
// evidence. status.storedVersions is a hint only: it may have been pruned by
// somebody who rewrote nothing.
func storageMigrated(s *state) outcome {
	decided := s.decideMigration(s.wantedRun(), crds.StorageVersion(s.CRD))
	if last := s.plan.Status.Migration; s.Rights && (last == nil || last.State != v1alpha1.MigrationRunning) {
		s.do(DeleteRights{MigrationRightsName(s.Policy.Name)})
	}
	return decided
}

func (s *state) decideMigration(id, storage string) outcome {
	switch {
	case s.runs(id) || s.wantsRun(id):
		if s.ending() {
			return waiting(v1alpha1.ReasonMigrating, "waits for the end of a migration that the CustomResourceDefinition's change superseded")
		}
		return s.migrate(id, storage)
	case s.plan.Status.Evidence != nil:
		return s.proven(storage)
	case s.failed(id):
		return s.explainFailure()
	case len(s.CRD.Spec.Versions) == 1:
		return passed(v1alpha1.ReasonNothingToMigrate, "the CustomResourceDefinition has one version: "+storage)
	}
	return undecided(v1alpha1.ReasonNotRequested, fmt.Sprintf(
		"objects may be stored at %s: %s", strings.Join(s.CRD.Status.StoredVersions, ", "), howToMigrate(s.Policy)))
}

func howToMigrate(policy *v1alpha1.ConversionPolicy) string {
	if policy.Spec.Migration.Mode == v1alpha1.MigrationNever {
		return "spec.migration.mode is Never"
	}
	return "change spec.migration.trigger to start a migration"
}

// runs reports whether the run is under way.
func (s *state) runs(id string) bool {
	last := s.plan.Status.Migration
	return last != nil && last.Run == id && last.State == v1alpha1.MigrationRunning
}

func (s *state) failed(id string) bool {
	last := s.plan.Status.Migration
	return last != nil && last.Run == id && last.State == v1alpha1.MigrationFailed
}

// wantsRun reports whether the policy asks for a run that was not made yet.
func (s *state) wantsRun(id string) bool {
	migration, last := s.Policy.Spec.Migration, s.plan.Status.Migration
	answered := last != nil && last.Trigger == migration.Trigger && last.State != v1alpha1.MigrationSuperseded
	triggered := migration.Trigger != "" && !answered
	switch migration.Mode {
	case v1alpha1.MigrationNever:
		return false
	case v1alpha1.MigrationOnTrigger:
		return triggered
	default:
		return triggered || s.plan.Status.Evidence == nil && len(s.CRD.Spec.Versions) > 1 && !s.failed(id)
	}
}

// proven says what the evidence says.
func (s *state) proven(storage string) outcome {
	evidence := s.plan.Status.Evidence
	if evidence.Source == v1alpha1.EvidenceSingleVersion {
		return passed(v1alpha1.ReasonNothingToMigrate, "objects were never stored in another version than "+storage)
	}
	return passed(v1alpha1.ReasonMigrated, fmt.Sprintf("every object is stored at %s: run %s saw %d", storage, evidence.Run, evidence.Objects))
}

// migrate starts a run, follows it, and prunes after it.
func (s *state) migrate(id, storage string) outcome {
	if !crds.Serves(s.CRD, storage) {
		return stalled(v1alpha1.ReasonStorageVersionNotServed, fmt.Sprintf(
			"the storage version %s is not served, so that objects cannot be rewritten: set served: true for it", storage))
	}
	if crds.Condition(s.CRD, storageMigrating) {
		return waiting(v1alpha1.ReasonForeignStorageMigration, "waits for the end of a StorageVersionMigration that somebody else started")
	}
	run := s.run(id)
	if !s.runs(id) && run.Job != nil && (over(run) || !run.Job.DeletionTimestamp.IsZero()) {
		// It was run before, for the same pins: what it proved then is not what is asked now.
		s.do(DeleteRun{run.Job.Name})
		return waiting(v1alpha1.ReasonMigrating, "waits for the end of the migration of before")
	}
	s.recordRun(id, storage, run)
	switch {
	case run.Progress != nil && run.Progress.Complete:
		return s.prune(id, storage)
	case run.Progress != nil && run.Progress.Finished || JobEnded(run.Job):
		s.endRun(v1alpha1.MigrationFailed)
		return s.explainFailure()
	}
	for _, step := range s.startRun(id, storage) {
		s.do(step)
	}
	return waiting(v1alpha1.ReasonMigrating, fmt.Sprintf("run %s rewrites objects at %s", id, storage))
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

// recordRun copies what the run recorded into the status.
func (s *state) recordRun(id, storage string, run Run) {
	last := s.plan.Status.Migration
	if last == nil || last.Run != id || last.State != v1alpha1.MigrationRunning {
		last = &v1alpha1.MigrationStatus{
			Run: id, State: v1alpha1.MigrationRunning, Trigger: s.Policy.Spec.Migration.Trigger,
			StorageVersion: storage, CRDUID: s.CRD.UID, CRDGeneration: s.CRD.Generation,
			StartTime: &metav1.Time{Time: s.Now},
		}
	}
	if progress := run.Progress; progress != nil {
		last.Total, last.Rewritten, last.Current = progress.Total, progress.Rewritten, progress.Current
		last.Gone, last.Failed, last.Failures = progress.Gone, progress.Failed, progress.Failures
		last.Message = progress.Aborted
		if progress.Started != nil {
			last.StartTime = progress.Started
		}
		done := last.Rewritten + last.Current + last.Gone + last.Failed
		last.Progress = fmt.Sprintf("%d/%d", done, max(done, last.Total))
	}
	s.plan.Status.Migration = last
}

func (s *state) endRun(as v1alpha1.MigrationState) {
	last := s.plan.Status.Migration
	last.State = as
	last.CompletionTime = &metav1.Time{Time: s.Now}
	if as == v1alpha1.MigrationFailed && last.Failed == 0 && last.Message == "" {
		last.Message = "the migration Job failed; see its pods' logs"
	}
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
	return stalled(v1alpha1.ReasonObjectsFailed, fmt.Sprintf("%d of %d objects could not be rewritten%s%s",
		last.Failed, last.Total, example, cure))
}
