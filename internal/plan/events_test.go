// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan"
	"github.com/conversion-operator/conversion-operator/internal/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/test/golden"
)

// TestEvents plays stories, and compares all events that users see of them: one
// for each transition, on the policy or, marked, on the CustomResourceDefinition too.
func TestEvents(t *testing.T) {
	for name, story := range map[string]func(*world){
		"policy-first":     policyFirst,
		"bad-rules":        badRules,
		"failed-objects":   failedObjects,
		"drift-contested":  driftContested,
		"deletion-blocked": deletionBlocked,
		"lost-sample":      lostSample,
		"unreachable":      unreachable,
		"conversions-fail": conversionsFail,
		"sampled-again":    sampledAgain,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, policyYAML)
			story(w)
			golden.Check(t, rulesetHash.ReplaceAllString(w.events.String(), "#"), "events", name+".txt")
		})
	}
}

// TestARestartIsNoNews: a manager that starts knows nothing of what the one before
// it had asked, and says nothing again.
func TestARestartIsNoNews(t *testing.T) {
	for name, story := range map[string]func(*world){
		"ready":          policyFirst,
		"failed objects": failedObjects,
		"broken rules": func(w *world) {
			w.applyCRD(bothStoredNew)
			w.changeRules("")
			w.converge()
		},
		"suspended": func(w *world) {
			w.applyCRD(bothStoredNew)
			w.observed.Policy.Spec.Suspend = true
			w.converge()
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, policyYAML)
			story(w)
			w.observed.Samples, w.observed.APIServer, w.observed.Written = nil, nil, nil
			w.observed.Requested, w.observed.Cleared, w.observed.Resampled = nil, nil, nil
			w.events.Reset()
			w.converge()
			if told := w.events.String(); told != "" {
				t.Errorf("it says again:\n%s", told)
			}
		})
	}
}

// eventsOf are all events that come of a plan.
func (w *world) eventsOf(decided plan.Plan) []gate.Event {
	var events []gate.Event
	for _, s := range decided.Steps {
		switch s := s.(type) {
		case step.Warn:
			events = append(events, gate.Event{Reason: s.Reason, Note: s.Note, Warning: true, CRD: s.CRD.UID})
		case step.RecordDrift:
			events = append(events, gate.Event{Reason: v1alpha1.ReasonConversionDrifted, Note: s.Note, Warning: true, CRD: s.CRD})
		}
	}
	return append(events, plan.Events(w.observed.Policy.Status, decided.Status)...)
}

func toldEvent(event gate.Event) string {
	text := "Normal  "
	if event.Warning {
		text = "Warning "
	}
	text += event.Reason + " " + event.Note
	if event.CRD != "" {
		text += " [CRD too]"
	}
	return text
}

// expectNothingNew holds the plan of a world at rest to saying nothing.
func (w *world) expectNothingNew(events []gate.Event) {
	w.t.Helper()
	for _, event := range events {
		w.t.Errorf("nothing has changed, and there is an event: %s", toldEvent(event))
	}
}
