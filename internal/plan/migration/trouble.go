// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"fmt"
	"strings"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
)

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
	if left := job.Status.StartTime.Add(podDelay).Sub(m.Now); left > 0 {
		m.work.Recheck(left)
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
