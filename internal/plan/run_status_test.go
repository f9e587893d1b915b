// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
	"github.com/conversion-operator/conversion-operator/internal/plan"
)

func running(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, policyYAML)
	w.migrating()
	w.record(half())
	w.settle()
	return w
}

// look plans once, so much later, and carries it out.
func (w *world) look(later time.Duration) plan.Plan {
	w.observed.Now = w.observed.Now.Add(later)
	decided := w.plan()
	w.carryOut(decided)
	return decided
}

// TestProgressIsToldNowAndThen: counters alone reach the status every five
// seconds, what they are about at once, and what is as it was never.
func TestProgressIsToldNowAndThen(t *testing.T) {
	w := running(t)
	w.look(time.Minute)
	progress := half()
	progress.Rewritten = 600
	w.record(progress)
	if got := w.look(time.Minute).Status.Migration.Progress; got != "610/1000" {
		t.Errorf("a minute later progress is %s, want 610/1000", got)
	}
	told := w.observed.Policy.Status.Migration.ProgressTime.Time

	progress.Rewritten = 700
	w.record(progress)
	decided := w.look(2 * time.Second)
	if got := decided.Status.Migration.Progress; got != "610/1000" {
		t.Errorf("two seconds later progress is %s, want 610/1000 still", got)
	}
	if want := told.Add(5 * time.Second).Sub(w.observed.Now); decided.RecheckAfter > want || decided.RecheckAfter <= 0 {
		t.Errorf("looks again after %s, want %s", decided.RecheckAfter, want)
	}
	if got := w.look(3 * time.Second).Status.Migration.Progress; got != "710/1000" {
		t.Errorf("five seconds later progress is %s, want 710/1000", got)
	}

	before := w.observed.Policy.Status
	if diff := cmp.Diff(before, w.look(time.Minute).Status); diff != "" {
		t.Errorf("nothing changed but the time, and the status did (-before +after):\n%s", diff)
	}
	progress.Step = v1alpha1.MigrationVerifying
	w.record(progress)
	w.look(0)
	progress.Step = v1alpha1.MigrationAuditing
	w.record(progress)
	if got := w.look(0).Status.Migration.Step; got != v1alpha1.MigrationAuditing {
		t.Errorf("another step is told as %s, want Auditing at once", got)
	}
	w.record(whole())
	if got := w.look(0).Status.Migration.Progress; got != "1000/1000" {
		t.Errorf("the end is told as %s, want 1000/1000 at once", got)
	}
}

// TestWhatEndsIsNotGoingOn: a run that has ended has no rate and no step.
func TestWhatEndsIsNotGoingOn(t *testing.T) {
	w := running(t)
	done := whole()
	done.RatePerSecond, done.Waiting, done.ByFallback = 100, "the API server asks to wait", 3
	done.Barrier = &v1alpha1.MigrationBarrier{Kind: v1alpha1.BarrierAllServers, APIServers: 3}
	w.record(done)
	w.settle()
	got := w.observed.Policy.Status.Migration
	if got.State != v1alpha1.MigrationSucceeded || got.Step != "" || got.RatePerSecond != 0 || got.Waiting != "" || got.EstimatedCompletion != nil {
		t.Errorf("the run has ended, and its status says %+v", got)
	}
	if got.Verified != 100 || got.ByFallback != 3 || got.Barrier == nil || got.Record == "" {
		t.Errorf("what it did is lost: %+v", got)
	}
}

// TestStandingStill: what keeps a run from going on is in the condition.
func TestStandingStill(t *testing.T) {
	w := running(t)
	stuck := half()
	stuck.Waiting = "the converter does not answer"
	w.record(stuck)
	status := w.look(time.Minute).Status
	expectCondition(t, status, v1alpha1.StorageMigratedCondition, "False", v1alpha1.ReasonMigrating, "it stands still: the converter does not answer")
}

// TestAPodThatDoesNotStart: a run of which there is no record yet tells why.
func TestAPodThatDoesNotStart(t *testing.T) {
	w := newWorld(t, policyYAML)
	w.migrating()
	w.observed.Runs[0].Trouble = "it cannot be scheduled: no node has room"
	expectCondition(t, w.look(time.Minute).Status, v1alpha1.StorageMigratedCondition, "False", v1alpha1.ReasonMigrating, "it cannot be scheduled")
	w.observed.Runs[0].Trouble = ""
	if got := w.look(time.Minute).Status.Migration.Waiting; got != "" {
		t.Errorf("the pod has started, and the run waits: %s", got)
	}
}

// TestSuspendedRunsHaveNoRate: what is known of a run that must not write is that
// it does not, and why.
func TestSuspendedRunsHaveNoRate(t *testing.T) {
	cases := map[string]struct {
		stop func(*world)
		want string
	}{
		"the conversion was dropped": {func(w *world) { w.drop("kubectl-replace"); w.observed.CRD.Generation-- }, "does not convert as this policy wants"},
		"the policy is suspended":    {func(w *world) { w.observed.Policy.Spec.Suspend = true }, "spec.suspend is true"},
		"it is paused":               {func(w *world) { w.observed.Policy.Spec.Migration.Paused = true }, "spec.migration.paused is true"},
		"somebody else migrates":     {func(w *world) { w.observed.ForeignMigration = "theirs" }, "waits for the end of somebody else's migration theirs"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := running(t)
			c.stop(w)
			got := w.look(time.Second).Status.Migration
			if got.RatePerSecond != 0 || !strings.Contains(got.Waiting, c.want) {
				t.Errorf("it goes on with %d per second, and waits for %q", got.RatePerSecond, got.Waiting)
			}
			w.settle()
		})
	}
}

// TestSettingsOfRuns: each setting reaches the Job, and none is said that is not asked for.
func TestSettingsOfRuns(t *testing.T) {
	cases := map[string]struct {
		settings v1alpha1.Migration
		want     []string
	}{
		"none": {v1alpha1.Migration{}, []string{"--concurrency=32", "--pace=Gentle", "--verify=Sample", "--old-versions=v1beta1"}},
		"all": {v1alpha1.Migration{
			MaxWritesPerSecond: new(int32(7)), Concurrency: new(int32(3)), Pace: v1alpha1.MigrationFast, Verify: v1alpha1.MigrationVerifyFull,
			Fallback: []v1alpha1.MigrationFallback{v1alpha1.MigrationFallbackOldVersion, v1alpha1.MigrationFallbackStatus},
		}, []string{"--concurrency=3", "--pace=Fast", "--verify=Full", "--max-writes-per-second=7", "--fallback=OldVersion,Status", "--old-versions=v1beta1"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, policyYAML)
			w.observed.Policy.Spec.Migration = c.settings
			w.migrating()
			args := w.observed.Runs[0].Job.Spec.Template.Spec.Containers[0].Args
			from := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--concurrency") })
			ruleset := "--ruleset=" + plan.PlanName(crontabs, w.observed.Policy.Status.Plan.Hash)
			want := slices.Insert(slices.Clone(c.want), 3, ruleset)
			if diff := cmp.Diff(want, args[from:]); diff != "" {
				t.Errorf("flags (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRunThatNobodyAskedFor: a manager that had not read yet that all is proven began
// it. It goes, and the last one stays.
func TestRunThatNobodyAskedFor(t *testing.T) {
	w := running(t)
	w.record(whole())
	w.settle()
	w.observed.CRD.Generation++
	w.observed.Policy.Status.CRD.Generation++
	w.observed.Policy.Status.Evidence.CRDGeneration++
	last, storage := w.observed.Runs[0], crds.StorageVersion(w.observed.CRD)
	stray := plan.Run{ID: plan.RunID(w.observed.CRD, storage, w.observed.Policy.Spec.Migration.Trigger), Job: &batchv1.Job{}}
	stray.Job.Name = plan.RunName(crontabs, stray.ID)
	w.observed.Runs = append(w.observed.Runs, stray)
	decided := w.plan()
	if want := (plan.DeleteRun{Name: stray.Job.Name}); !slices.Contains(decided.Steps, plan.Step(want)) || last.ID == stray.ID {
		t.Errorf("the steps are %v; expected %v", decided.Steps, want)
	}
	if slices.Contains(decided.Steps, plan.Step(plan.DeleteRun{Name: plan.RunName(crontabs, last.ID)})) {
		t.Error("the last run is deleted")
	}
	if is := decided.Status.Migration; is.Run != last.ID || is.State != v1alpha1.MigrationSucceeded {
		t.Errorf("the status tells of run %s, %s; expected %s, Succeeded", is.Run, is.State, last.ID)
	}
}

// TestRetries: after a run in which objects failed, the next one is told so and may
// read its record, which stays as long; unless what failed is not all there is to do.
func TestRetries(t *testing.T) {
	cases := map[string]struct {
		end  plan.Progress
		then func(*world)
		want bool
	}{
		"objects failed": {plan.Progress{Finished: true, Total: 3, Rewritten: 2, Failed: 1}, func(*world) {}, true},
		"it was aborted": {plan.Progress{Finished: true, Total: 3, Rewritten: 2, Aborted: "no such version"}, func(*world) {}, false},
		"the definition is another": {plan.Progress{Finished: true, Total: 3, Rewritten: 2, Failed: 1},
			func(w *world) { w.observed.CRD.Generation++ }, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := running(t)
			w.record(c.end)
			w.settle()
			first := plan.RunName(crontabs, w.observed.Runs[0].ID)
			w.observed.Policy.Spec.Migration.Trigger = "second"
			c.then(w)
			w.settle()
			second := w.observed.Runs[len(w.observed.Runs)-1]
			if told := slices.Contains(second.Job.Spec.Template.Spec.Containers[0].Args, "--retry="+first); told != c.want {
				t.Errorf("it is told to retry: %t, want %t", told, c.want)
			}
			if kept := len(w.observed.Runs) == 2; kept != c.want {
				t.Errorf("the first run is kept: %t, want %t", kept, c.want)
			}
			second.Progress = &plan.Progress{Finished: true, Complete: true, Total: 3, Rewritten: 3}
			w.observed.Runs[len(w.observed.Runs)-1] = second
			w.settle()
			if len(w.observed.Runs) != 1 || w.observed.Policy.Status.Migration.State != v1alpha1.MigrationSucceeded {
				t.Errorf("in the end %d runs are left, and the latest is %s", len(w.observed.Runs), w.observed.Policy.Status.Migration.State)
			}
		})
	}
}

// TestRightsOfRuns: a run may write through the subresource status only where the
// policy asks for that way.
func TestRightsOfRuns(t *testing.T) {
	w := newWorld(t, policyYAML)
	w.migrating()
	if diff := cmp.Diff([]string{"crontabs"}, w.mayPatch()); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
	w.observed.Policy.Spec.Migration.Fallback = []v1alpha1.MigrationFallback{v1alpha1.MigrationFallbackStatus}
	w.settle()
	if diff := cmp.Diff([]string{"crontabs", "crontabs/status"}, w.mayPatch()); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
}

// mayPatch are the resources of the kind's group that a run may write.
func (w *world) mayPatch() []string {
	w.t.Helper()
	for _, step := range w.plan().Steps {
		applied, ok := step.(plan.Apply)
		if !ok {
			continue
		}
		if role, ok := applied.Object.(*rbacv1.ClusterRoleApplyConfiguration); ok && *role.Name == plan.MigrationRightsName(crontabs) {
			return role.Rules[0].Resources
		}
	}
	w.t.Fatal("no rights are applied")
	return nil
}
