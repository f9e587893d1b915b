// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"encoding/json"
	"reflect"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// Path is what happens to a policy, until nothing happens any more without a user. Its JSON form is stable.
type Path struct {
	// Stages in the order of time.
	Stages []Stage `json:"stages"`
	// Takes is the time until the last stage ends, without the time in which pods start.
	Takes metav1.Duration `json:"takes"`
	End   End             `json:"end"`
}

// Stage is the time in which one condition is decided.
type Stage struct {
	// Condition is a gate, or Ready after all gates, or DeletionBlocked; empty for what the user does first.
	Condition string `json:"condition,omitempty"`
	// After is the time since the begin of the path.
	After metav1.Duration `json:"after"`
	// Message is that of the condition, before the stage ends.
	Message string   `json:"message,omitempty"`
	Actions []Action `json:"actions"`
}

// Action is a write, a check, a wait or a warning.
type Action struct {
	Kind ActionKind `json:"kind"`
	// By says who acts; empty for a wait.
	By Actor `json:"by,omitempty"`
	// Step is the kind of the operator's step; empty for other actors.
	Step string `json:"step,omitempty"`
	// Text is what is done, or why the operator waits.
	Text string `json:"text"`
	// Takes is the length of a wait, and of a migration.
	Takes metav1.Duration `json:"takes,omitzero"`
	// Undo says until when the write can be undone, and how; empty for writes that change nothing for clients.
	Undo string `json:"undo,omitempty"`
}

// ActionKind is what an action is.
type ActionKind string

// The kinds of actions. A check changes nothing.
const (
	Write ActionKind = "Write"
	Check ActionKind = "Check"
	Wait  ActionKind = "Wait"
	// Warning is an event about the policy and the CustomResourceDefinition.
	Warning ActionKind = "Warning"
)

// Actor is who writes or checks.
type Actor string

// The actors.
const (
	User       Actor = "you"
	Operator   Actor = "operator"
	APIServer  Actor = "API server"
	Migration  Actor = "migration"
	Crossplane Actor = "Crossplane"
)

// End is how a path ends.
type End struct {
	// Ready tells that everything that the policy requests is done, and nothing waits for a user. Gone tells
	// that the policy was deleted.
	Ready bool `json:"ready"`
	Gone  bool `json:"gone,omitempty"`
	// Condition, Reason and Message are those that say so, or what stopped.
	Condition string `json:"condition"`
	Reason    string `json:"reason"`
	Message   string `json:"message"`

	// Status of the policy at the end.
	Status v1alpha1.ConversionPolicyStatus `json:"-"`
}

// recorder writes down a path.
type recorder struct {
	path  Path
	begin time.Time
	// applied has the content of applied objects by their kinds and names: only a change of it is a write.
	applied map[string]string
}

func (r *recorder) stage(condition, message string, now time.Time) {
	last := len(r.path.Stages) - 1
	if last < 0 || r.path.Stages[last].Condition != condition {
		r.path.Stages = append(r.path.Stages, Stage{Condition: condition, After: metav1.Duration{Duration: now.Sub(r.begin).Round(time.Second)}, Actions: []Action{}})
		last++
	}
	r.path.Stages[last].Message = message
}

// add appends an action to the current stage. Several pods may do the same, and a check may be repeated
// during a wait.
func (r *recorder) add(action Action) {
	stage := &r.path.Stages[len(r.path.Stages)-1]
	last := len(stage.Actions) - 1
	if last > 0 && action.Kind == Check && stage.Actions[last].Kind == Wait {
		last--
	}
	if last < 0 || stage.Actions[last] != action {
		stage.Actions = append(stage.Actions, action)
	}
}

// wait adds a wait, or makes the last one longer.
func (r *recorder) wait(d time.Duration, why string) {
	stage := &r.path.Stages[len(r.path.Stages)-1]
	if last := len(stage.Actions) - 1; last >= 0 && stage.Actions[last].Kind == Wait && stage.Actions[last].Text == why {
		stage.Actions[last].Takes.Duration += d
		return
	}
	r.add(Action{Kind: Wait, Text: why, Takes: metav1.Duration{Duration: d}})
}

// step records a step. It reports whether the step writes something.
func (r *recorder) step(s step.Step, undo string) (writes bool) {
	action := Action{Kind: Write, By: Operator, Step: reflect.TypeOf(s).Name(), Text: step.Describe(s), Undo: undo}
	switch s := s.(type) {
	case step.Warn:
		action.Kind, action.Text = Warning, s.Note
	case step.Apply:
		if !r.changes(s) {
			return false
		}
	}
	if step.IsCheck(s) {
		action.Kind = Check
	}
	r.add(action)
	return action.Kind == Write
}

// changes reports that an object is not applied like this yet.
func (r *recorder) changes(s step.Apply) bool {
	text, err := json.Marshal(s.Object)
	before, applied := r.applied[step.Name(s.Object)]
	r.applied[step.Name(s.Object)] = string(text)
	return err != nil || !applied || before != string(text)
}

// Snapshot is everything that a plan depends on, except the time.
func (c *Cluster) Snapshot() string {
	state := *c.State
	state.Now = time.Time{}
	text, err := json.Marshal(state)
	c.note(err)
	return string(text)
}

// gateOf is the condition that a plan is about.
func gateOf(status *v1alpha1.ConversionPolicyStatus) metav1.Condition {
	if blocked := apimeta.FindStatusCondition(status.Conditions, v1alpha1.DeletionBlockedCondition); blocked != nil {
		return *blocked
	}
	ready := apimeta.FindStatusCondition(status.Conditions, v1alpha1.ReadyCondition)
	if ready == nil {
		return metav1.Condition{Type: v1alpha1.ReadyCondition}
	}
	if ready.Status == metav1.ConditionTrue {
		if retired := apimeta.FindStatusCondition(status.Conditions, v1alpha1.VersionsRetiredCondition); retired != nil && retired.Status == metav1.ConditionFalse {
			return *retired
		}
		return *ready
	}
	for _, gate := range v1alpha1.Gates {
		if found := apimeta.FindStatusCondition(status.Conditions, gate); found != nil && found.Status != metav1.ConditionTrue && found.Reason == ready.Reason {
			return *found
		}
	}
	return *ready
}
