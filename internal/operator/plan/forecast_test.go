// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/forecast"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/golden"
)

// predicted are stories of which there is a forecast right after a change.
var predicted = map[string]struct {
	policy string
	begin  func(*world)
	change func(*world)
	// goOn lets the rest of the story happen; nil if it happens by itself.
	goOn func(*world)
	// objects are what is known of the objects, and end is the reason of Ready in the end.
	objects forecast.Objects
	end     string
}{
	"first-policy": {policy: policyYAML, change: func(w *world) { w.applyCRD(onlyOld) }, end: v1alpha1.ReasonWaitingForVersion},
	"new-version": {policy: policyYAML, begin: func(w *world) { w.define(onlyOld) }, change: func(w *world) { w.applyCRD(bothStoredOld) },
		end: v1alpha1.ReasonSucceeded},
	"promotion": {begin: func(w *world) { w.define(bothStoredOld) }, change: func(w *world) {
		w.observed.Policy.Spec.StorageVersion, w.observed.Policy.Spec.Migration.Mode = "v1", v1alpha1.MigrationAutomatic
		w.observed.Policy.Generation++
	}, goOn: func(w *world) { w.completes(1000) }, end: v1alpha1.ReasonSucceeded},
	"retirement": {begin: migratedInFleet, change: func(w *world) { w.retire("v1beta1", v1alpha1.RetirementRemove) }, goOn: func(w *world) {
		for range 2 {
			w.later(week)
		}
		w.settleAPIServers()
	}, end: v1alpha1.ReasonSucceeded},
	"rules":    {begin: func(w *world) { w.define(bothStoredNew) }, change: func(w *world) { w.changeRules("/") }, end: v1alpha1.ReasonSucceeded},
	"image":    {policy: imageYAML, begin: func(w *world) { w.activate(bothStoredNew) }, change: func(w *world) { w.useImage("example.com/crontab:2") }, end: v1alpha1.ReasonSucceeded},
	"fleet":    {begin: func(w *world) { w.CreateFleet("blue"); w.define(bothStoredNew) }, change: func(w *world) { w.move("blue") }, end: v1alpha1.ReasonSucceeded},
	"deletion": {begin: func(w *world) { w.define(onlyNew) }, change: func(w *world) { w.delete() }, end: v1alpha1.ReasonDeleting},
	"drift":    {begin: func(w *world) { w.define(bothStoredNew) }, change: func(w *world) { w.Drop("kubectl-replace") }, end: v1alpha1.ReasonSucceeded},
	"stop": {change: func(w *world) {
		w.applyCRD(bothStoredOld)
		w.samples = observed.BackgroundCheck{Lost: true, Reason: v1alpha1.ReasonRoundTripFailed, Message: "object default/odd: .hostPort does not come back"}
	}, objects: forecast.Objects{Failing: []forecast.Failing{{Object: "default/odd", Objects: 1, Message: ".hostPort does not come back", Lossy: true}}}, end: v1alpha1.ReasonRoundTripFailed},
}

// migratedInFleet is a world in which every object is stored at v1.
func migratedInFleet(w *world) {
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationAutomatic
	w.ask("v1beta1", 0)
	w.define(bothStoredNew)
	w.completes(1000)
}

// TestForecasts compares forecasts with what then happens: each write of the operator in order, and the end.
func TestForecasts(t *testing.T) {
	for name, story := range predicted {
		t.Run(name, func(t *testing.T) {
			w := newFleetWorld(t)
			if story.policy != "" {
				w = newWorld(t, story.policy)
			}
			if story.begin != nil {
				story.begin(w)
			}
			w.settleAPIServers()
			before := w.Plan()
			story.change(w)
			story.objects.Total = 1000
			path, err := w.copied(t).Forecast(story.objects, before)
			expect.NoError(t, err)

			var happened []string
			w.writes = func(s step.Step) {
				_, applies := s.(step.Apply)
				if _, warns := s.(step.Warn); !applies && !warns && !step.IsCheck(s) {
					happened = append(happened, step.Describe(s))
				}
			}
			w.converge()
			if story.goOn != nil {
				story.goOn(w)
			}
			w.settleAPIServers()
			var said []string
			for _, stage := range path.Stages {
				for _, action := range stage.Actions {
					if action.Kind == forecast.Write && action.By == forecast.Operator && action.Step != "Apply" {
						said = append(said, action.Text)
					}
				}
			}
			expect.Equal(t, "writes of the operator", happened, said)
			ready := apimeta.FindStatusCondition(w.observed.Policy.Status.Conditions, v1alpha1.ReadyCondition)
			expect.Equal(t, "reason of Ready", story.end, ready.Reason)
			forecasted := apimeta.FindStatusCondition(path.End.Status.Conditions, v1alpha1.ReadyCondition)
			expect.Equal(t, "Ready", ready.Reason+": "+ready.Message, forecasted.Reason+": "+forecasted.Message)
			text, err := yaml.Marshal(path)
			expect.NoError(t, err)
			golden.Check(t, rulesetHash.ReplaceAllString(string(text), "#"), "forecasts", name+".yaml")
		})
	}
}
