// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
)

// guardRuns stops the runs that must not go on, before anything else and
// whatever the gates say: a run that is pinned to another state of the
// CustomResourceDefinition is ended, and one whose conversion was dropped or
// changed is suspended, since it would store what nobody has converted. (The
// Job looks at its pin by itself too; this is for the gap in between.) So is one
// whose converter answers wrongly.
func (s *state) guardRuns() {
	wanted := s.wantedRun()
	s.supersede(wanted)
	for _, run := range s.Runs {
		switch {
		case run.ID == wanted && s.inForce() && !s.drifted && !s.answersWrongly():
			continue
		case run.ID == wanted:
			s.suspend(run)
		case over(run) && s.latest(run):
			// The latest run stays for its logs.
		default:
			s.do(DeleteRun{run.Job.Name})
		}
	}
}

// wantedRun is the only run that may be under way; empty where none may.
func (s *state) wantedRun() string {
	if s.CRD == nil || s.Policy.Spec.Migration.Mode == v1alpha1.MigrationNever {
		return ""
	}
	return RunID(s.CRD, crds.StorageVersion(s.CRD), s.Policy.Spec.Migration.Trigger)
}

// supersede says of a run that is not the wanted one that it proves nothing any more.
func (s *state) supersede(wanted string) {
	if last := s.plan.Status.Migration; last != nil && last.Run != wanted && last.State == v1alpha1.MigrationRunning {
		last.State = v1alpha1.MigrationSuperseded
		last.CompletionTime = &metav1.Time{Time: s.Now}
	}
}

// ending reports whether pods of another run may still write.
func (s *state) ending() bool {
	for _, run := range s.Runs {
		if run.ID != s.wantedRun() && !over(run) {
			return true
		}
	}
	return false
}

func (s *state) suspend(run Run) {
	if !over(run) && !suspended(run) {
		s.do(SuspendRun{Name: run.Job.Name, Suspend: true})
	}
}

func suspended(run Run) bool { return ptr.Deref(run.Job.Spec.Suspend, false) }

func (s *state) latest(run Run) bool {
	last := s.plan.Status.Migration
	return last != nil && last.Run == run.ID
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
