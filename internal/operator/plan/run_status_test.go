// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func running(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, policyYAML)
	w.migrating()
	w.reports(half())
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
	expect.Equal(t, "a minute later progress", "610/1000", w.look(time.Minute).Status.Migration.Progress)
	told := w.observed.Policy.Status.Migration.ProgressTime.Time

	progress.Rewritten = 700
	w.record(progress)
	decided := w.look(2 * time.Second)
	expect.Equal(t, "two seconds later progress", "610/1000", decided.Status.Migration.Progress)
	if want := told.Add(5 * time.Second).Sub(w.observed.Now); decided.RecheckAfter > want || decided.RecheckAfter <= 0 {
		t.Errorf("looks again after %s, want %s", decided.RecheckAfter, want)
	}
	expect.Equal(t, "five seconds later progress", "710/1000", w.look(3*time.Second).Status.Migration.Progress)

	before := w.observed.Policy.Status
	expect.Equal(t, "status, while nothing changed but the time", before, w.look(time.Minute).Status)
	progress.State = contract.StateVerifying
	w.record(progress)
	w.look(0)
	progress.State = contract.StateAuditing
	w.record(progress)
	expect.Equal(t, "another step is told as", v1alpha1.MigrationAuditing, w.look(0).Status.Migration.Step)
	w.record(whole())
	expect.Equal(t, "the end is told as", "1000/1000", w.look(0).Status.Migration.Progress)
}

// TestStatusOfARecord: what a user needs of the record of a run that goes on is in the status.
func TestStatusOfARecord(t *testing.T) {
	w := running(t)
	start := metav1.NewTime(w.observed.Now.Add(-time.Minute))
	end := metav1.NewTime(w.observed.Now.Add(time.Hour))
	predicted := []v1alpha1.MigrationFailure{{Object: "ns/b", Reason: "TooLarge", Message: "big", Command: "wc"}}
	failures := []v1alpha1.MigrationFailure{{Object: "ns/a", Reason: "Invalid", Message: "no", Command: "kubectl get"}}
	w.record(contract.Record{
		State: contract.StateRunning, BarrierKind: contract.BarrierAllServers, APIServers: 3, Waiting: "patches wait",
		Counters:            contract.Counters{Total: 10, Rewritten: 3, Current: 2, Gone: 1, Failed: 1, ByFallback: 1},
		EstimatedCompletion: &end, StartTime: &start, Placed: 3, Unplaced: 1, Predicted: predicted, Failures: failures,
	})
	before := w.observed.Policy.Status.Migration
	want := before.DeepCopy()
	want.Step, want.Message = v1alpha1.MigrationRewriting, "patches wait"
	want.Total, want.Rewritten, want.Unchanged, want.Failed, want.Progress = 10, 3, 3, 1, "7/10"
	want.EstimatedCompletion, want.StartTime, want.NotPlaced, want.Failures = &end, &start, 1, failures
	decided := w.look(time.Minute).Status
	got := decided.Migration
	want.ProgressTime = got.ProgressTime
	expect.Equal(t, "status", want, got)
	expectCondition(t, decided, v1alpha1.StorageMigratedCondition, "False", v1alpha1.ReasonMigrating, "would refuse 1 of the objects tried first, for example ns/b: big")
}

// TestStatesHaveSteps: the status names what a run does in every state but the last.
func TestStatesHaveSteps(t *testing.T) {
	for _, state := range contract.States {
		w := running(t)
		record := contract.Record{State: state}
		w.record(record)
		at := w.look(time.Minute).Status.Migration.Step
		expect.Equal(t, fmt.Sprintf("a run in state %s, at step %q, is at none", state, at), state == contract.StateAborted, at == "")
	}
}

// TestWhatEndsIsNotGoingOn: a run that has ended waits for nothing, and has no step.
func TestWhatEndsIsNotGoingOn(t *testing.T) {
	w := running(t)
	done := whole()
	done.RatePerSecond, done.Waiting = 100, "the API server asks to wait"
	w.reports(done)
	got := w.observed.Policy.Status.Migration
	if got.State != v1alpha1.MigrationSucceeded || got.Step != "" || got.Message != "" || got.EstimatedCompletion != nil {
		t.Errorf("the run has ended, and its status says %+v", got)
	}
	if got.Rewritten != 990 || got.Record == "" {
		t.Errorf("what it did is lost: %+v", got)
	}
}

// starting is a world in which a migration has just begun.
func starting(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, policyYAML)
	w.migrating()
	return w
}

// startJob has the Job started a while ago.
func (w *world) startJob(ago time.Duration) *batchv1.JobStatus {
	status := &w.observed.Runs[0].Job.Status
	status.StartTime = new(metav1.NewTime(w.observed.Now.Add(-ago)))
	return status
}

// startChanges: the condition of a run whose pod does not start has a reason of its own, the cause, and
// what to do.
var startChanges = changes{
	"no node takes it": func(w *world) {
		w.observed.Runs[0].Trouble = observed.PodTrouble{Cause: observed.PodUnschedulable, Message: "it cannot be scheduled: no node has room"}
	},
	"its image cannot be pulled": func(w *world) {
		w.observed.Runs[0].Trouble = observed.PodTrouble{Cause: observed.PodWithoutImage, Message: "the image a cannot be pulled"}
	},
	"it is refused": func(w *world) {
		w.startJob(16 * time.Second)
	},
	"it is about to be created": func(w *world) {
		w.startJob(10 * time.Second)
	},
	"it starts": func(w *world) {
		w.startJob(time.Hour).Active = 1
	},
	"it failed, and another is about to be created": func(w *world) {
		w.startJob(time.Hour).Failed = 1
	},
}

// runChanges are during a migration. A run must not write while nothing converts. A Job is created again for
// each change of its pods, except one of their image. A run that must not write says why.
func runChanges() changes {
	all := changes{
		"conversion dropped, the generation not seen yet": func(w *world) { w.Drop("kubectl-replace"); w.observed.CRD.Generation-- },
		"caBundle changed, the generation not seen yet": func(w *world) {
			w.change("cainjector", func(client *apiextensionsv1.WebhookClientConfig) { client.CABundle = []byte("x") })
			w.observed.CRD.Generation--
		},
		"a pod answers wrongly": func(w *world) {
			w.observed.Pods[0].Proof = &observed.Proof{Reason: "CanaryFailed", Message: "it differs"}
		},
		"another webhook, no pod": func(w *world) {
			w.change("helm", func(client *apiextensionsv1.WebhookClientConfig) { client.Service.Name = "theirs" })
			w.observed.Pods = nil
		},
		"broken rules and a change": func(w *world) {
			w.observed.Policy.Spec.Converter.Declarative.Spokes[0].Rules[0].Format.From = ".x"
			w.observed.CRD.Generation++
		},
		"recreated":                  func(w *world) { w.observed.CRD.UID = "another" },
		"gone":                       func(w *world) { w.observed.CRD = nil },
		"never":                      func(w *world) { w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationNever },
		"the conversion was dropped": func(w *world) { w.Drop("kubectl-replace"); w.observed.CRD.Generation-- },
		"the policy is paused":       func(w *world) { w.observed.Policy.Spec.Paused = true },
		"it is suspended":            func(w *world) { w.observed.Policy.Spec.Migration.Suspend = true },
		"another client migrates":    func(w *world) { w.observed.ForeignMigration = "theirs" },
		"settings: nothing":          func(*world) {},
		"settings: resources": func(w *world) {
			read(w.t, "{requests: {cpu: 1}}", &w.observed.Policy.Spec.Migration.Workload.Resources)
		},
		"settings: tolerations": func(w *world) {
			read(w.t, "[{operator: Exists}]", &w.observed.Policy.Spec.Migration.Workload.Tolerations)
		},
		"settings: pull secrets of the manager": func(w *world) { w.observed.Settings.Inherited.ImagePullSecrets = []string{"registry"} },
		"settings: the image":                   func(w *world) { w.observed.Settings.Image = "conversion-operator:next" },
		"settings: converter pods": func(w *world) {
			w.observed.Policy.Spec.Workload.Dedicated.PriorityClassName = "another"
		},
		"it is stalled": func(w *world) {
			stuck := half()
			stuck.Waiting = "the converter does not answer"
			w.record(stuck)
			w.pass(time.Minute)
		},
	}
	// Wrong answers would be stored. If there is none, nothing is stored, and the migration tries again.
	for _, reason := range []string{"CanaryFailed", "UnexpectedAnswer", "WrongRuleset", "Unreachable", "TLSVerificationFailed"} {
		all["the probe of a pod fails by "+reason] = func(w *world) { w.observed.Pods[1].Proof = &observed.Proof{Reason: reason, Message: "no"} }
	}
	return all
}

// TestPreparedAccount: a ServiceAccount that an administrator gave pull secrets to stays after a run.
func TestPreparedAccount(t *testing.T) {
	for _, keep := range []bool{false, true} {
		w := newWorld(t, policyYAML)
		w.migrating()
		w.observed.KeepAccount = keep
		w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationNever
		withdrawn := slices.IndexFunc(w.plan().Steps, func(s step.Step) bool {
			rights, is := s.(step.DeleteRights)
			return is && rights.OfRuns && rights.KeepAccount == keep
		})
		if withdrawn < 0 {
			t.Errorf("the account stays: not %t", keep)
		}
	}
}

// TestSettingsOfRuns: each setting reaches the Job, and none is said that is not asked for.
func TestSettingsOfRuns(t *testing.T) {
	cases := map[string]struct {
		settings v1alpha1.Migration
		want     contract.Spec
	}{
		"none": {v1alpha1.Migration{}, contract.Spec{Concurrency: 32, Pace: v1alpha1.MigrationGentle}},
		"all": {v1alpha1.Migration{
			MaxWritesPerSecond: new(int32(7)), Pace: v1alpha1.MigrationFast, Verify: v1alpha1.MigrationVerifyFull,
			Fallback: []v1alpha1.MigrationFallback{v1alpha1.MigrationFallbackOldVersion, v1alpha1.MigrationFallbackStatus},
		}, contract.Spec{Concurrency: 32, Pace: v1alpha1.MigrationFast, Verify: v1alpha1.MigrationVerifyFull, MaxWritesPerSecond: 7,
			Fallback: []v1alpha1.MigrationFallback{v1alpha1.MigrationFallbackOldVersion, v1alpha1.MigrationFallbackStatus}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, policyYAML)
			w.observed.Policy.Spec.Migration = c.settings
			w.migrating()
			run, crd, want := w.observed.Runs[0], w.observed.CRD, c.want
			want.FormatVersion, want.Run, want.Pin = contract.SpecFormat, run.ID, contract.Pin{Name: crd.Name, UID: crd.UID, Generation: crd.Generation}
			want.Resource = metav1.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "crontabs"}
			want.Namespace, want.RecordConfigMap = w.observed.Settings.Namespace, names.Run(crontabs, run.ID)
			want.Ruleset, want.RulesetConfigMap = w.observed.Policy.Status.Revision, names.Rulesets(crontabs)
			want.PropagationDelay.Duration, want.Preflight, want.PageSize, want.OldVersions = w.observed.Settings.PropagationDelay, 20, 500, []string{"v1beta1"}
			expect.Equal(t, "specification", want, specOf(t, run))
		})
	}
}

// specOf is what the pods of a run are told.
func specOf(t *testing.T, run observed.Run) contract.Spec {
	t.Helper()
	args := run.Job.Spec.Template.Spec.Containers[0].Args
	spec, err := contract.ParseSpec(strings.TrimPrefix(args[len(args)-1], "--spec="))
	expect.NoError(t, err)
	return spec
}

// TestJobOfAnotherVersion: a Job that another version of the manager made with other settings is
// replaced. What its pods have recorded stays.
func TestJobOfAnotherVersion(t *testing.T) {
	w := running(t)
	run := &w.observed.Runs[0]
	old, record := run.Job, run.Record
	old.Annotations[names.SettingsAnnotation] = "others"
	decided := w.look(time.Second)
	if want := step.Step(step.DeleteJob{Name: old.Name, UID: old.UID}); !slices.Contains(decided.Steps, want) {
		t.Errorf("the steps are %v; expected %v", decided.Steps, want)
	}
	w.converge()
	run = &w.observed.Runs[0]
	if len(w.observed.Runs) != 1 || run.Job == nil || run.Record != record || specOf(t, *run).Run != run.ID {
		t.Fatalf("the run is %+v", run)
	}
	w.reports(whole())
	if is := w.observed.Policy.Status; is.MigrationEvidence == nil || is.Migration.Run != run.ID {
		t.Errorf("the evidence is %+v", is.MigrationEvidence)
	}
}

// TestRunThatNobodyAskedFor: a manager that had not read yet that all is proven began
// it. It goes, and the last one stays.
func TestRunThatNobodyAskedFor(t *testing.T) {
	w := running(t)
	w.reports(whole())
	w.observed.CRD.Generation++
	w.observed.Policy.Status.CRD.Generation++
	last, storage := w.observed.Runs[0], crds.StorageVersion(w.observed.CRD)
	stray := observed.Run{ID: names.RunID(w.observed.CRD, storage, w.observed.Policy.Spec.Migration.Trigger), Job: &batchv1.Job{}}
	stray.Job.Name = names.Run(crontabs, stray.ID)
	w.observed.Runs = append(w.observed.Runs, stray)
	decided := w.plan()
	if want := (step.DeleteRun{Name: stray.Job.Name}); !slices.Contains(decided.Steps, step.Step(want)) || last.ID == stray.ID {
		t.Errorf("the steps are %v; expected %v", decided.Steps, want)
	}
	ends := step.Step(step.DeleteRun{Name: names.Run(crontabs, last.ID)})
	expect.Equal(t, "the last run is deleted", false, slices.Contains(decided.Steps, ends))
	expect.Equal(t, "run of the status", last.ID, decided.Status.Migration.Run)
	expect.Equal(t, "its state", v1alpha1.MigrationSucceeded, decided.Status.Migration.State)
}

// TestRetries: after a run in which objects failed, the next one is told so and may
// read its record, which stays as long; unless what failed is not all there is to do.
func TestRetries(t *testing.T) {
	cases := map[string]struct {
		end  contract.Record
		then func(*world)
		want bool
	}{
		"objects failed": {contract.Record{State: contract.StateCompleted, Counters: contract.Counters{Total: 3, Rewritten: 2, Failed: 1}}, func(*world) {}, true},
		"it was aborted": {contract.Record{State: contract.StateAborted, Counters: contract.Counters{Total: 3, Rewritten: 2}, Message: "no such version"}, func(*world) {}, false},
		"the definition is another": {contract.Record{State: contract.StateCompleted, Counters: contract.Counters{Total: 3, Rewritten: 2, Failed: 1}},
			func(w *world) { w.observed.CRD.Generation++ }, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := running(t)
			w.reports(c.end)
			first := names.Run(crontabs, w.observed.Runs[0].ID)
			w.observed.Policy.Spec.Migration.Trigger = "second"
			c.then(w)
			w.converge()
			second := w.observed.Runs[len(w.observed.Runs)-1]
			expect.Equal(t, "it is told to retry", c.want, specOf(t, second).RetryConfigMap == first)
			expect.Equal(t, "the first run is kept", c.want, len(w.observed.Runs) == 2)
			second.Record = &contract.Record{State: contract.StateCompleted, Counters: contract.Counters{Total: 3, Rewritten: 3}}
			w.observed.Runs[len(w.observed.Runs)-1] = second
			w.converge()
			expect.Equal(t, "runs left in the end", 1, len(w.observed.Runs))
			expect.Equal(t, "state of the latest", v1alpha1.MigrationSucceeded, w.observed.Policy.Status.Migration.State)
		})
	}
}
