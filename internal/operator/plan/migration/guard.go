// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// guard stops runs that must not continue, whatever the gates say. It deletes a run that is
// pinned to another state of the CustomResourceDefinition, and one that no client requested: a
// manager started it before it had read the evidence. It suspends the wanted run while that
// must not write (whyNot). The Job checks its pin itself, too; guard covers the time until then.
func (m *Migration) guard() {
	wanted := m.wantedRun()
	m.giveUp(wanted)
	requested := wanted != "" && (m.runs(wanted) || m.wantsRun(wanted))
	for _, run := range m.Runs {
		switch {
		case run.ID == wanted && requested && m.whyNot() == "":
			continue
		case run.ID == wanted && requested:
			m.suspend(run)
			m.stall(m.whyNot())
		case run.Over() && (m.latest(run) || m.retried(run)):
			// The latest run stays for its logs, and the one that it retries for its record.
		default:
			m.work.Do(step.DeleteRun{Name: names.Run(m.Policy.Name, run.ID)})
		}
	}
}

// isSuspended is the reason in the status of a suspended run.
const isSuspended = "spec.migration.suspend is true"

// whyNot says why the wanted run must not write now; empty if it may.
func (m *Migration) whyNot() string {
	switch foreign := m.foreignMigration(); {
	case !m.InForce || m.Drifted:
		return "the CustomResourceDefinition does not convert as this policy requires"
	case m.AnswersWrongly:
		return "the converter answers incorrectly"
	case m.Policy.Spec.Migration.Suspend:
		return isSuspended
	case foreign != "":
		return "waiting for the end of " + foreign
	case !m.RefusesTruncated:
		return "API servers do not yet refuse objects that are too large to convert"
	}
	return ""
}

// stall reports why a suspended run writes nothing, which it cannot record itself.
func (m *Migration) stall(why string) {
	if last := m.UnderWay(); last != nil {
		last.Message, last.EstimatedCompletion = why, nil
	}
}

// wantedRun is the only run that may be under way; empty if none may. Another trigger does not
// end a run, because the next run would begin with the same work.
func (m *Migration) wantedRun() string {
	if m.CRD == nil || m.Policy.Spec.Migration.Mode == v1alpha1.MigrationNever {
		return ""
	}
	storage, trigger := crds.StorageVersion(m.CRD), m.Policy.Spec.Migration.Trigger
	if last := m.UnderWay(); last != nil && last.Run == names.RunID(m.CRD, storage, last.Trigger) {
		return last.Run
	}
	return names.RunID(m.CRD, storage, trigger)
}

// giveUp ends a run that is not the wanted one. It produces no migration evidence.
func (m *Migration) giveUp(wanted string) {
	last := m.UnderWay()
	if last == nil || last.Run == wanted {
		return
	}
	as := v1alpha1.MigrationSuperseded
	if m.ofCurrent(last) {
		as = v1alpha1.MigrationCancelled
	}
	last.Record = "" // is deleted with the Job
	m.endRun(as)
}

// ending reports that pods of another run may still write.
func (m *Migration) ending() bool {
	for _, run := range m.Runs {
		if run.ID != m.wantedRun() && run.Job != nil && !run.Over() {
			return true
		}
	}
	return false
}

func (m *Migration) suspend(run observed.Run) {
	if run.Job != nil && !run.Over() && !run.Suspended() {
		m.work.Do(step.SuspendRun{Name: run.Job.Name, UID: run.Job.UID, Suspend: true})
	}
}

func (m *Migration) latest(run observed.Run) bool {
	last := m.Status.Migration
	return last != nil && last.Run == run.ID
}

// retried reports that the run under way needs the record of this one.
func (m *Migration) retried(run observed.Run) bool {
	last := m.UnderWay()
	return last != nil && last.RetryOf == run.ID
}
