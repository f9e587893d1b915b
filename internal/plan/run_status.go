// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// progressPause is the time between two writes of a policy's status that bring
// nothing but counters. Everybody who watches policies gets each of them.
const progressPause = 5 * time.Second

// recordRun copies what the run recorded into the status: at once where it is at
// another step, stands still, goes on or has ended, and otherwise now and then.
func (s *state) recordRun(run Run, storage string) {
	last := s.underWay()
	if last == nil || last.Run != run.ID {
		s.plan.Status.Migration = s.newRun(run, storage)
		return
	}
	next := last.DeepCopy()
	next.Step = s.stepOf(run)
	run.fill(next)
	if equality.Semantic.DeepEqual(last, next) {
		return
	}
	news := next.Step != last.Step || (next.Waiting == "") != (last.Waiting == "") || over(run)
	if left := s.progressDue(last).Sub(s.Now); left > 0 && !news {
		s.recheck(left)
		return
	}
	next.ProgressTime = s.second()
	s.plan.Status.Migration = next
}

func (s *state) newRun(run Run, storage string) *v1alpha1.MigrationStatus {
	made := &v1alpha1.MigrationStatus{
		Run: run.ID, State: v1alpha1.MigrationRunning, Step: s.stepOf(run), Trigger: s.Policy.Spec.Migration.Trigger,
		StorageVersion: storage, CRDUID: s.CRD.UID, CRDGeneration: s.CRD.Generation,
		StartTime: &metav1.Time{Time: s.Now}, RetryOf: s.retryOf(), Cause: s.causeOf(), Ruleset: s.rulesetOf(),
		Record: s.Settings.Namespace + "/" + RunName(s.Policy.Name, run.ID),
	}
	run.fill(made)
	if run.Progress != nil {
		made.ProgressTime = s.second()
	}
	return made
}

// causeOf is why a run is made now.
func (s *state) causeOf() v1alpha1.MigrationCause {
	switch {
	case s.triggered():
		return v1alpha1.MigrationByTrigger
	case s.plan.Status.Evidence != nil && s.toPlace():
		return v1alpha1.MigrationForPreservedData
	}
	return v1alpha1.MigrationForStoredVersions
}

// retryOf is the run of before where all that is left to do is what failed there.
// The run itself looks at that run's record whether that is so.
func (s *state) retryOf() string {
	before := s.plan.Status.Migration
	if before == nil || before.State != v1alpha1.MigrationFailed || before.Failed == 0 ||
		before.CRDUID != s.CRD.UID || before.CRDGeneration != s.CRD.Generation {
		return ""
	}
	return before.Run
}

// progressDue is when counters are worth a write of the status again.
func (s *state) progressDue(last *v1alpha1.MigrationStatus) time.Time {
	if last.ProgressTime == nil {
		return s.Now
	}
	return last.ProgressTime.Add(progressPause)
}

// stepOf is what a run is at, or is about to be.
func (s *state) stepOf(run Run) v1alpha1.MigrationStep {
	switch progress := run.Progress; {
	case progress != nil && progress.Complete:
		return v1alpha1.MigrationPruning
	case s.Policy.Spec.Migration.Paused:
		return v1alpha1.MigrationPaused
	case progress == nil:
		return v1alpha1.MigrationStarting
	default:
		return progress.Step
	}
}

// fill writes what is known of a run over what was.
func (r Run) fill(status *v1alpha1.MigrationStatus) {
	if r.Progress != nil {
		r.Progress.fill(status)
	}
	switch {
	case status.Step == v1alpha1.MigrationPaused:
		status.Waiting, status.RatePerSecond, status.EstimatedCompletion = isPaused, 0, nil
	case r.Trouble != "":
		status.Waiting = r.Trouble
	case r.Progress == nil:
		status.Waiting = ""
	}
}

func (p *Progress) fill(status *v1alpha1.MigrationStatus) {
	status.Total, status.Rewritten, status.Current, status.Gone, status.Failed = p.Total, p.Rewritten, p.Current, p.Gone, p.Failed
	status.Verified, status.ByFallback = p.Verified, p.ByFallback
	status.Placed, status.NotPlaced, status.Refused = p.Placed, p.NotPlaced, p.Refused
	status.Predicted, status.Failures, status.Message = p.Predicted, p.Failures, p.Aborted
	status.RatePerSecond, status.EstimatedCompletion = p.RatePerSecond, p.EstimatedCompletion
	status.Waiting, status.Barrier = p.Waiting, p.Barrier
	if p.Started != nil {
		status.StartTime = p.Started
	}
	if p.Total > 0 || p.Finished {
		status.Progress = fmt.Sprintf("%d/%d", done(status), max(done(status), status.Total))
	}
}

func done(status *v1alpha1.MigrationStatus) int64 {
	return status.Rewritten + status.Current + status.Gone + status.Failed
}

// endRun keeps of a run what stays true.
func (s *state) endRun(as v1alpha1.MigrationState) {
	last := s.plan.Status.Migration
	if as == v1alpha1.MigrationSucceeded || as == v1alpha1.MigrationFailed {
		s.noteRunCount(s.run(last.Run))
	}
	last.State, last.CompletionTime = as, s.second()
	last.Step, last.Waiting, last.RatePerSecond, last.EstimatedCompletion, last.Predicted = "", "", 0, nil, nil
	if as == v1alpha1.MigrationFailed && last.Failed == 0 && last.Message == "" {
		last.Message = "the migration Job failed; see its pods' logs"
	}
}
