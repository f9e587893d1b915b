// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
)

// guardRuns stops the runs that must not go on, before anything else and
// whatever the gates say: a run that is pinned to another state of the
// CustomResourceDefinition is ended, and one whose conversion was dropped or
// changed is suspended, since it would store what nobody has converted. (The
// Job looks at its pin by itself too; this is for the gap in between.) So is one
// that the policy pauses, whose converter answers wrongly, or that somebody else's
// migration has come beside. A run that nobody asks for was begun by a manager that
// had not read the evidence yet: it goes.
func (s *state) guardRuns() {
	wanted := s.wantedRun()
	s.giveUp(wanted)
	asked := wanted != "" && (s.runs(wanted) || s.wantsRun(wanted))
	for _, run := range s.Runs {
		switch {
		case run.ID == wanted && asked && s.whyNot() == "":
			continue
		case run.ID == wanted && asked:
			s.suspend(run)
			s.standStill(s.whyNot())
		case over(run) && (s.latest(run) || s.retried(run)):
			// The latest run stays for its logs, and the one before for what failed there.
		default:
			s.do(DeleteRun{RunName(s.Policy.Name, run.ID)})
		}
	}
}

// isPaused is why a paused run stands still.
const isPaused = "spec.migration.paused is true"

// whyNot says why the wanted run must not write now; empty where it may.
func (s *state) whyNot() string {
	switch foreign := s.foreignMigration(); {
	case !s.inForce() || s.drifted:
		return "the CustomResourceDefinition does not convert as this policy wants it"
	case s.answersWrongly():
		return "the converter answers wrongly"
	case s.Policy.Spec.Migration.Paused:
		return isPaused
	case foreign != "":
		return "it waits for the end of " + foreign
	case !s.refusesShortened():
		return "API servers do not refuse objects that are too large to be converted"
	}
	return ""
}

// standStill tells of a run that is suspended what it would not record itself.
func (s *state) standStill(why string) {
	if last := s.underWay(); last != nil {
		last.Waiting, last.RatePerSecond, last.EstimatedCompletion = why, 0, nil
	}
}

// wantedRun is the only run that may be under way; empty where none may. One that
// goes on is not given up for another trigger: what it does is what the next one
// would begin with.
func (s *state) wantedRun() string {
	if s.CRD == nil || s.Policy.Spec.Migration.Mode == v1alpha1.MigrationNever {
		return ""
	}
	storage, trigger := crds.StorageVersion(s.CRD), s.Policy.Spec.Migration.Trigger
	if last := s.underWay(); last != nil && last.Run == RunID(s.CRD, storage, last.Trigger) {
		return last.Run
	}
	return RunID(s.CRD, storage, trigger)
}

// giveUp says of a run that is not the wanted one that it proves nothing any more.
func (s *state) giveUp(wanted string) {
	last := s.underWay()
	if last == nil || last.Run == wanted {
		return
	}
	as := v1alpha1.MigrationSuperseded
	if s.CRD != nil && last.CRDUID == s.CRD.UID && last.CRDGeneration == s.CRD.Generation {
		as = v1alpha1.MigrationCancelled
	}
	last.Record = "" // goes with the Job
	s.endRun(as)
}

// ending reports whether pods of another run may still write.
func (s *state) ending() bool {
	for _, run := range s.Runs {
		if run.ID != s.wantedRun() && run.Job != nil && !over(run) {
			return true
		}
	}
	return false
}

func (s *state) suspend(run Run) {
	if run.Job != nil && !over(run) && !suspended(run) {
		s.do(SuspendRun{Name: run.Job.Name, Suspend: true})
	}
}

func suspended(run Run) bool { return ptr.Deref(run.Job.Spec.Suspend, false) }

func (s *state) latest(run Run) bool {
	last := s.plan.Status.Migration
	return last != nil && last.Run == run.ID
}

// retried reports that the run that goes on needs the record of this one.
func (s *state) retried(run Run) bool {
	last := s.underWay()
	return last != nil && last.RetryOf == run.ID
}

// over reports that no pod of the run writes any more.
func over(run Run) bool {
	return run.Progress != nil && run.Progress.Finished || JobEnded(run.Job)
}

// JobEnded reports that the Job's controller has given it up or seen it through.
func JobEnded(job *batchv1.Job) bool {
	if job == nil {
		return false
	}
	for _, condition := range job.Status.Conditions {
		if condition.Status == corev1.ConditionTrue &&
			(condition.Type == batchv1.JobComplete || condition.Type == batchv1.JobFailed) {
			return true
		}
	}
	return false
}
