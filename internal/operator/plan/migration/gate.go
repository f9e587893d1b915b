// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/rights"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// Migrated is the gate StorageMigrated: every object is stored at the storage version.
func (m *Migration) Migrated() gate.Decision { return m.work.Decide(m.migrated()) }

// migrated decides by our own evidence. status.storedVersions is a hint only: a client that
// rewrote nothing may have pruned it.
func (m *Migration) migrated() gate.Outcome {
	storage := crds.StorageVersion(m.CRD)
	if !slices.Contains(m.CRD.Status.StoredVersions, storage) {
		m.work.Do(step.AddStorageVersion{Pin: step.PinOf(m.CRD)})
		return gate.Waiting(v1alpha1.ReasonMigrating, fmt.Sprintf(
			"status.storedVersions lacks the storage version %s, as after a restore: writing the CustomResourceDefinition, so that the API server adds it", storage))
	}
	decided := m.decideMigration(m.wantedRun(), storage)
	if m.Rights && (m.UnderWay() == nil || m.rests()) {
		m.work.Do(rights.WithdrawOfRuns(m.Cluster))
	}
	return decided
}

func (m *Migration) decideMigration(id, storage string) gate.Outcome {
	switch {
	case m.runs(id) || m.wantsRun(id):
		if m.ending() {
			return gate.Waiting(v1alpha1.ReasonMigrating, "waiting for the pods of a cancelled migration to terminate")
		}
		return m.migrate(id, storage)
	case m.Status.MigrationEvidence != nil:
		return m.proven(storage)
	case m.failed(id):
		return m.explainFailure()
	case len(m.CRD.Spec.Versions) == 1:
		return gate.Passed(v1alpha1.ReasonNotNeeded, "the CustomResourceDefinition has one version: "+storage)
	case crds.StoredOnlyIn(m.CRD, storage):
		return gate.Undecided(v1alpha1.ReasonStoredVersionsUntrusted, fmt.Sprintf(
			"status.storedVersions names %s alone, but no migration of this policy has verified it, and other tools prune it unverified: %s",
			storage, HowToMigrate(m.Policy)))
	}
	return gate.Undecided(v1alpha1.ReasonNotRequested, fmt.Sprintf(
		"objects may be stored at %s: %s", strings.Join(m.CRD.Status.StoredVersions, ", "), HowToMigrate(m.Policy)))
}

// HowToMigrate says how a migration is started.
func HowToMigrate(policy *v1alpha1.ConversionPolicy) string {
	if policy.Spec.Migration.Mode == v1alpha1.MigrationNever {
		return "spec.migration.mode is Never: set it to OnTrigger and change spec.migration.trigger to start a migration"
	}
	return "change spec.migration.trigger to start a migration"
}

// UnderWay is the run that is under way, or nil.
func (m *Migration) UnderWay() *v1alpha1.MigrationStatus {
	if last := m.Status.Migration; last != nil && last.State == v1alpha1.MigrationRunning {
		return last
	}
	return nil
}

// rests reports that the run is suspended and has no pod. It needs no rights until it resumes.
func (m *Migration) rests() bool {
	job := m.run(m.UnderWay().Run).Job
	return m.Policy.Spec.Migration.Suspend && job != nil && ptr.Deref(job.Spec.Suspend, false) &&
		job.Status.Active == 0 && ptr.Deref(job.Status.Terminating, 0) == 0
}

// runs reports that the run is under way.
func (m *Migration) runs(id string) bool {
	last := m.UnderWay()
	return last != nil && last.Run == id
}

func (m *Migration) failed(id string) bool {
	last := m.Status.Migration
	return last != nil && last.Run == id && last.State == v1alpha1.MigrationFailed
}

// wantsRun reports that the policy wants a run that has not started yet.
func (m *Migration) wantsRun(id string) bool {
	switch m.Policy.Spec.Migration.Mode {
	case v1alpha1.MigrationNever:
		return false
	case v1alpha1.MigrationAutomatic:
		return m.triggered() || m.retries(id) || m.Status.MigrationEvidence == nil && len(m.CRD.Spec.Versions) > 1 && !m.failed(id) || m.ToPlace()
	default:
		return m.triggered() || m.retries(id)
	}
}

// retries reports that a run failed as a whole, and that API servers serve the kind only since it began. Then
// the run found no objects at any version. The next one begins later, so that it is the only one.
func (m *Migration) retries(id string) bool {
	last, served := m.Status.Migration, crds.ServedSince(m.CRD)
	return m.failed(id) && last.Failed == 0 && served != nil && last.StartTime.Before(served)
}

// triggered reports that no run has answered the trigger. A superseded run does not count as an
// answer; a cancelled one does, because the author of the policy gave it up.
func (m *Migration) triggered() bool {
	trigger, last := m.Policy.Spec.Migration.Trigger, m.Status.Migration
	answered := last != nil && last.Trigger == trigger && last.State != v1alpha1.MigrationSuperseded
	return trigger != "" && !answered
}

// proven is the outcome if there is migration evidence.
func (m *Migration) proven(storage string) gate.Outcome {
	evidence := m.Status.MigrationEvidence
	if evidence.Source != v1alpha1.EvidenceMigration {
		return gate.Passed(v1alpha1.ReasonNotNeeded, "objects were never stored in another version than "+storage+m.notYetPlaced())
	}
	proof := ""
	if last := m.Status.Migration; last != nil && last.State == v1alpha1.MigrationSucceeded {
		proof = fmt.Sprintf(": run %s saw %d", last.Run, last.Total)
	}
	return gate.Passed(v1alpha1.ReasonMigrated, "every object is stored at "+storage+proof+m.notYetPlaced())
}

// migrate starts a run, follows it, and prunes status.storedVersions after it.
func (m *Migration) migrate(id, storage string) gate.Outcome {
	run := m.run(id)
	if wait := m.beforeRun(run, storage); wait.Reason != "" {
		return wait
	}
	run.Trouble = m.troubleOf(run)
	m.recordRun(run, storage)
	switch {
	case run.Record != nil && run.Record.Complete():
		return m.prune(storage)
	case run.Over():
		m.endRun(v1alpha1.MigrationFailed)
		failure := m.explainFailure()
		failure.Stalled = failure.Stalled && !m.wantsRun(id) // otherwise the next run is requested already
		return failure
	case m.Policy.Spec.Migration.Suspend:
		return m.suspended()
	case m.otherSettings(run, storage):
		m.work.Do(step.DeleteJob{Name: run.Job.Name, UID: run.Job.UID})
		return gate.Waiting(v1alpha1.ReasonMigrating, "run "+id+" continues with new settings once its pod has terminated")
	}
	m.work.Do(m.startRun(run, storage)...)
	if run.Trouble.Message != "" {
		return gate.Waiting(v1alpha1.ReasonMigrationPodPending, m.explainTrouble(run.Trouble))
	}
	return gate.Waiting(v1alpha1.ReasonMigrating, m.explainProgress())
}

// beforeRun is the outcome if a run cannot be started or followed.
func (m *Migration) beforeRun(run observed.Run, storage string) gate.Outcome {
	foreign := m.foreignMigration()
	switch {
	case !crds.Serves(m.CRD, storage):
		return gate.Stalled(v1alpha1.ReasonStorageVersionNotServed, fmt.Sprintf(
			"the storage version %s is not served, so objects cannot be rewritten: set served: true for it", storage))
	case foreign != "":
		m.work.Recheck(foreignPause)
		return gate.Waiting(v1alpha1.ReasonForeignStorageMigration, "waiting for the end of "+foreign+"; delete it if it does not finish")
	case m.runs(run.ID):
		return gate.Outcome{}
	case rights.ToMigrate(m.Cluster).Missing() != "":
		m.work.Recheck(rights.Pause)
		return gate.Waiting(v1alpha1.ReasonRightsNotGranted, rights.ToMigrate(m.Cluster).Missing())
	case run.Over() || run.Job != nil && !run.Job.DeletionTimestamp.IsZero():
		// An earlier run had the same pins. Its evidence is too old for this trigger.
		m.work.Do(step.DeleteRun{Name: names.Run(m.Policy.Name, run.ID)})
		return gate.Waiting(v1alpha1.ReasonMigrating, "waiting for the previous migration to finish")
	case m.Policy.Spec.Migration.Suspend:
		return gate.Waiting(v1alpha1.ReasonMigrationSuspended, fmt.Sprintf(
			"the migration to %s is suspended: set spec.migration.suspend to false to start it", storage))
	}
	return gate.Outcome{}
}

func (m *Migration) run(id string) observed.Run {
	for _, run := range m.Runs {
		if run.ID == id {
			return run
		}
	}
	return observed.Run{ID: id}
}

// prune reduces status.storedVersions after the run has rewritten every object. The run becomes
// evidence once the API server returns the pruned status.
func (m *Migration) prune(storage string) gate.Outcome {
	if !crds.StoredOnlyIn(m.CRD, storage) {
		m.work.Do(step.PruneStoredVersions{Pin: step.PinOf(m.CRD), StorageVersion: storage})
		return gate.Waiting(v1alpha1.ReasonMigrating, "every object is stored at "+storage+": pruning status.storedVersions")
	}
	m.endRun(v1alpha1.MigrationSucceeded)
	m.Status.MigrationEvidence = newEvidence(m.Cluster, v1alpha1.EvidenceMigration)
	return m.proven(storage)
}

// suspended reports the progress of a suspended run.
func (m *Migration) suspended() gate.Outcome {
	last := m.Status.Migration
	how := "before its first object"
	if last.Progress != "" {
		how = fmt.Sprintf("at %d of %d objects", last.Done(), last.Known())
	}
	return gate.Waiting(v1alpha1.ReasonMigrationSuspended, fmt.Sprintf(
		"run %s is suspended %s: set spec.migration.suspend to false to resume it", last.Run, how))
}

// explainProgress says what a run does, without counters, so that the message is stable.
func (m *Migration) explainProgress() string {
	last := m.Status.Migration
	says := what(last)
	if why := waitsIn[last.Step]; why != "" {
		says += why + m.Settings.PropagationDelay.String()
	}
	if last.Message != "" {
		says += "; stalled: " + last.Message
	}
	if record := m.run(last.Run).Record; record != nil && len(record.Predicted) > 0 {
		says += fmt.Sprintf("; the API server would refuse %d of the objects tried first, for example %s: %s",
			len(record.Predicted), record.Predicted[0].Object, record.Predicted[0].Message)
	}
	if trigger := m.Policy.Spec.Migration.Trigger; trigger != last.Trigger && trigger != "" {
		says += fmt.Sprintf("; another run for spec.migration.trigger %q follows", trigger)
	}
	return says
}

// what says which objects a run writes.
func what(run *v1alpha1.MigrationStatus) string {
	objects := "objects"
	if run.RetryOf != "" {
		objects = "the failed objects of run " + run.RetryOf
	}
	if run.Cause == v1alpha1.MigrationForPreservedData {
		return fmt.Sprintf("run %s moves preserved values to their fields at %s", run.Run, run.StorageVersion)
	}
	return fmt.Sprintf("run %s rewrites %s at %s", run.Run, objects, run.StorageVersion)
}

// notYetPlaced says how to move preserved values to fields if no run does so automatically.
func (m *Migration) notYetPlaced() string {
	if m.Policy.Spec.Migration.Mode == v1alpha1.MigrationAutomatic || !m.ToPlace() {
		return ""
	}
	return "; objects have preserved values, some of which have a field now: " + HowToMigrate(m.Policy)
}

// explainFailure says what failed and what to do. status.storedVersions was not pruned.
func (m *Migration) explainFailure() gate.Outcome {
	last := m.Status.Migration
	const cure = "; status.storedVersions was not pruned; change spec.migration.trigger to retry"
	if last.Failed == 0 && crds.ServedSince(m.CRD) == nil {
		return gate.Waiting(v1alpha1.ReasonMigrationFailed, "run "+last.Run+": "+last.Message+
			"; status.storedVersions was not pruned; the run is repeated once API servers serve the kind: its condition Established is not True")
	}
	if last.Failed == 0 {
		return gate.Stalled(v1alpha1.ReasonMigrationFailed, "run "+last.Run+": "+last.Message+cure)
	}
	var example string
	if len(last.Failures) > 0 {
		example = ", for example " + last.Failures[0].Object + ": " + last.Failures[0].Message
	}
	return gate.Stalled(v1alpha1.ReasonObjectsFailed, fmt.Sprintf("%d of %d objects could not be rewritten%s; ConfigMap %s lists them%s",
		last.Failed, last.Total, example, last.Record, cure))
}
