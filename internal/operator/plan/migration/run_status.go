// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
)

// progressPause is the time between two writes of a status in which only counters change. Every
// client that watches policies gets each of them.
const progressPause = 5 * time.Second

// recordRun copies the record of the run into the status: at once if the step changes or the run
// stalls, continues or ends, and otherwise from time to time.
func (m *Migration) recordRun(run observed.Run, storage string) {
	last := m.UnderWay()
	if last == nil || last.Run != run.ID {
		m.Status.Migration = m.newRun(run, storage)
		return
	}
	next := last.DeepCopy()
	next.Step = m.stepOf(run)
	fill(next, run)
	if equality.Semantic.DeepEqual(last, next) {
		return
	}
	news := next.Step != last.Step || (next.Message == "") != (last.Message == "") || run.Over()
	if !news && !m.work.Due(m.progressDue(last).Sub(m.Now)) {
		return
	}
	next.ProgressTime = m.Second()
	m.Status.Migration = next
}

func (m *Migration) newRun(run observed.Run, storage string) *v1alpha1.MigrationStatus {
	made := &v1alpha1.MigrationStatus{
		Run: run.ID, State: v1alpha1.MigrationRunning, Step: m.stepOf(run), Trigger: m.Policy.Spec.Migration.Trigger,
		StorageVersion: storage,
		StartTime:      &metav1.Time{Time: m.Now}, RetryOf: m.retryOf(), Cause: m.causeOf(), Ruleset: m.Ruleset,
		Record: m.Settings.Namespace + "/" + names.Run(m.Policy.Name, run.ID),
	}
	fill(made, run)
	if run.Record != nil {
		made.ProgressTime = m.Second()
	}
	return made
}

// causeOf is the reason for a new run.
func (m *Migration) causeOf() v1alpha1.MigrationCause {
	switch {
	case m.triggered():
		return v1alpha1.MigrationByTrigger
	case m.Status.MigrationEvidence != nil && m.ToPlace():
		return v1alpha1.MigrationForPreservedData
	}
	return v1alpha1.MigrationForStoredVersions
}

// retryOf is the previous run if only its failed objects are left. The new run checks that with
// the record of the previous one.
func (m *Migration) retryOf() string {
	before := m.Status.Migration
	if before == nil || before.State != v1alpha1.MigrationFailed || before.Failed == 0 || !m.ofCurrent(before) {
		return ""
	}
	return before.Run
}

// ofCurrent reports that a run is pinned to the CustomResourceDefinition as it is now.
func (m *Migration) ofCurrent(run *v1alpha1.MigrationStatus) bool {
	return m.CRD != nil && run.Run == names.RunID(m.CRD, run.StorageVersion, run.Trigger)
}

// progressDue is the time of the next write of counters.
func (m *Migration) progressDue(last *v1alpha1.MigrationStatus) time.Time {
	if last.ProgressTime == nil {
		return m.Now
	}
	return last.ProgressTime.Add(progressPause)
}

// waitsIn are the steps in which a run waits for the propagation delay, and why it does.
var waitsIn = map[v1alpha1.MigrationStep]string{
	v1alpha1.MigrationPropagating: "; first, it waits until API servers have ended writes at other versions, for the propagation delay of ",
	v1alpha1.MigrationAuditing: "; some objects needed no rewrite, such as those that clients wrote meanwhile: " +
		"it checks them again, once no API server can have been wrong about that, after another propagation delay of ",
}

// stepOf is the current or next step of a run.
func (m *Migration) stepOf(run observed.Run) v1alpha1.MigrationStep {
	switch record := run.Record; {
	case record != nil && record.Complete():
		return v1alpha1.MigrationPruning
	case m.Policy.Spec.Migration.Suspend:
		return v1alpha1.MigrationSuspended
	case record == nil:
		return v1alpha1.MigrationStarting
	default:
		return steps[record.State]
	}
}

// steps are the steps by the states of a record. A run that has ended has no step.
var steps = map[contract.State]v1alpha1.MigrationStep{
	contract.StatePreflight:   v1alpha1.MigrationTrying,
	contract.StatePropagating: v1alpha1.MigrationPropagating,
	contract.StateRunning:     v1alpha1.MigrationRewriting,
	contract.StateAuditing:    v1alpha1.MigrationAuditing,
	contract.StateVerifying:   v1alpha1.MigrationVerifying,
}

// fill copies the state of a run into the status.
func fill(status *v1alpha1.MigrationStatus, run observed.Run) {
	if run.Record != nil {
		fillRecord(status, run.Record)
	}
	switch {
	case status.Step == v1alpha1.MigrationSuspended:
		status.Message, status.EstimatedCompletion = isSuspended, nil
	case run.Trouble.Message != "":
		status.Message = run.Trouble.Message
	case run.Record == nil:
		status.Message = ""
	}
}

func fillRecord(status *v1alpha1.MigrationStatus, record *contract.Record) {
	status.Total, status.Rewritten, status.Unchanged, status.Failed = record.Total, record.Rewritten, record.Current+record.Gone, record.Failed
	status.NotPlaced, status.Failures, status.Message = record.Unplaced, record.Failures, record.Waiting
	if record.Finished() {
		status.Message = record.Message
	}
	status.EstimatedCompletion = record.EstimatedCompletion
	if record.StartTime != nil {
		status.StartTime = record.StartTime
	}
	if record.Total > 0 || record.Finished() {
		status.Progress = fmt.Sprintf("%d/%d", status.Done(), status.Known())
	}
}

// endRun sets the final state of a run, and clears what described its progress.
func (m *Migration) endRun(as v1alpha1.MigrationState) {
	last := m.Status.Migration
	if as == v1alpha1.MigrationSucceeded || as == v1alpha1.MigrationFailed {
		m.noteRunCount(m.run(last.Run))
	}
	last.State, last.CompletionTime = as, m.Second()
	last.Step, last.EstimatedCompletion = "", nil
	last.Message = ""
	if record := m.run(last.Run).Record; record != nil {
		last.Message = record.Message
	}
	if as == v1alpha1.MigrationFailed && last.Failed == 0 && last.Message == "" {
		last.Message = "the migration Job failed; see its pods' logs"
	}
}

// podDelay is how long a Job may have no pod before that is reported. The Job controller creates it
// at once, unless admission refuses it. It reports that in events alone, which the manager does not
// read.
const podDelay = 15 * time.Second

// troubleOf is what keeps the pod of a run from starting.
func (m *Migration) troubleOf(run observed.Run) observed.PodTrouble {
	job := run.Job
	if run.Trouble.Message != "" || job == nil || job.Status.StartTime == nil || run.Suspended() ||
		job.Status.Active+job.Status.Failed+job.Status.Succeeded > 0 {
		return run.Trouble
	}
	if !m.work.Due(job.Status.StartTime.Add(podDelay).Sub(m.Now)) {
		return observed.PodTrouble{}
	}
	return observed.PodTrouble{Message: fmt.Sprintf("it is not created; the events of the Job tell why: kubectl -n %s describe job %s", job.Namespace, job.Name)}
}

// troubleHints say what to do about a pod that does not start.
var troubleHints = map[observed.PodTroubleCause]string{
	observed.PodUnschedulable: "; nodes for it are chosen by spec.migration.workload",
	observed.PodWithoutImage:  "; add imagePullSecrets to the pods of the manager, or to ServiceAccount ACCOUNT",
}

// explainTrouble says why the pod of the run does not start.
func (m *Migration) explainTrouble(trouble observed.PodTrouble) string {
	hint := strings.ReplaceAll(troubleHints[trouble.Cause], "ACCOUNT", m.Settings.Namespace+"/"+names.MigrationRights(m.Policy.Name))
	return what(m.Status.Migration) + " once its pod starts: " + gate.Cut(trouble.Message) + hint
}

// Events returns the events of migrations between two states of a policy, in order.
func Events(before, after v1alpha1.ConversionPolicyStatus) []gate.Event {
	last, next := before.Migration, after.Migration
	if next == nil {
		return nil
	}
	var events []gate.Event
	crd := crdOf(before, after)
	if last == nil || last.Run != next.Run || last.State != v1alpha1.MigrationRunning && next.State == v1alpha1.MigrationRunning {
		events = append(events, ofRun(crd, v1alpha1.ReasonMigrating, "StartRun", what(next)+"; its record is ConfigMap "+next.Record, false))
		last = &v1alpha1.MigrationStatus{State: v1alpha1.MigrationRunning}
	}
	if last.State == v1alpha1.MigrationRunning {
		events = append(events, whileRunning(crd, last, next)...)
	}
	if pruned := missingFrom(before.CRD, after.CRD); next.State == v1alpha1.MigrationSucceeded && last.State != next.State && len(pruned) > 0 {
		events = append(events, ofRun(crd, v1alpha1.ReasonStoredVersionsPruned, "PruneAfterRun", fmt.Sprintf(
			"status.storedVersions names %s alone: removed %s after run %s", next.StorageVersion, strings.Join(pruned, ", "), next.Run), false))
	}
	return events
}

// ofRun is an event about a run. Its action is its own: the API server counts events of the same
// reason and action within minutes as one, and has the note of the first alone.
func ofRun(crd types.UID, reason, action, note string, warning bool) gate.Event {
	return gate.Event{Reason: reason, Action: action, Note: note, Warning: warning, CRD: crd}
}

// crdOf is the CustomResourceDefinition that an event is about: the one before, if it has been replaced.
func crdOf(before, after v1alpha1.ConversionPolicyStatus) types.UID {
	switch {
	case before.CRD != nil:
		return before.CRD.UID
	case after.CRD != nil:
		return after.CRD.UID
	}
	return ""
}

// whileRunning returns the events of a run that was under way.
func whileRunning(crd types.UID, last, next *v1alpha1.MigrationStatus) []gate.Event {
	counts := fmt.Sprintf("run %s: %s", next.Run, counts(next))
	one := func(reason, action, note string, warning bool) []gate.Event {
		return []gate.Event{ofRun(crd, reason, action, note, warning)}
	}
	switch next.State {
	case v1alpha1.MigrationSucceeded:
		return one(v1alpha1.ReasonMigrated, "CompleteRun", counts+": all objects are stored at "+next.StorageVersion, false)
	case v1alpha1.MigrationSuperseded:
		return one(v1alpha1.ReasonMigrationCancelled, "SupersedeRun", counts+"; the CustomResourceDefinition changed, which invalidates the run", true)
	case v1alpha1.MigrationCancelled:
		return one(v1alpha1.ReasonMigrationCancelled, "CancelRun", counts+"; cancelled without pruning", false)
	case v1alpha1.MigrationFailed:
		return one(failureReason(next), "FailRun", counts+explainMessage(next)+"; status.storedVersions was not pruned", true)
	}
	switch was, is := last.Step == v1alpha1.MigrationSuspended, next.Step == v1alpha1.MigrationSuspended; {
	case is && !was:
		return one(v1alpha1.ReasonMigrationSuspended, "SuspendRun", counts+"; it is suspended", false)
	case was && !is:
		return one(v1alpha1.ReasonMigrating, "ResumeRun", counts+"; it goes on", false)
	}
	return nil
}

func failureReason(run *v1alpha1.MigrationStatus) string {
	if run.Failed > 0 {
		return v1alpha1.ReasonObjectsFailed
	}
	return v1alpha1.ReasonMigrationFailed
}

func explainMessage(run *v1alpha1.MigrationStatus) string {
	switch {
	case run.Message != "":
		return "; " + run.Message
	case len(run.Failures) > 0:
		return "; for example " + run.Failures[0].Object + ": " + gate.Cut(run.Failures[0].Message)
	}
	return ""
}

// counts formats the progress of a run.
func counts(run *v1alpha1.MigrationStatus) string {
	return fmt.Sprintf("%d of %d objects, %d rewritten, %d unchanged, %d failed",
		run.Done(), run.Known(), run.Rewritten, run.Unchanged, run.Failed)
}

// missingFrom returns the stored versions that are no longer listed.
func missingFrom(before, after *v1alpha1.CRDStatus) []string {
	if before == nil || after == nil || before.UID != after.UID {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(before.StoredVersions), func(version string) bool {
		return slices.Contains(after.StoredVersions, version)
	})
}
