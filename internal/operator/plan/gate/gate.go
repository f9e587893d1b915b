// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gate has the result of a gate on the way to Ready: its outcome, the steps that
// it asks for, and when it must be evaluated again.
package gate

import (
	"fmt"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// Outcome is the condition that a gate reports. Without a reason it reports none.
type Outcome struct {
	Status  metav1.ConditionStatus
	Reason  string
	Message string
	// Stop keeps the gates behind this one closed.
	Stop bool
	// Stalled means that nothing goes on until a client changes something.
	Stalled bool
}

// Passed opens the next gate.
func Passed(reason, message string) Outcome {
	return Outcome{Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

// Undecided opens the next gate although the condition is not known to hold.
func Undecided(reason, message string) Outcome {
	return Outcome{Status: metav1.ConditionUnknown, Reason: reason, Message: message}
}

// Pending opens the next gate although the condition does not hold yet: a policy whose
// version soaks for a week is as ready as it can be.
func Pending(reason, message string) Outcome {
	return Outcome{Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

// Waiting stops until an event that is expected to come.
func Waiting(reason, message string) Outcome {
	return Outcome{Status: metav1.ConditionFalse, Reason: reason, Message: message, Stop: true}
}

// Unknown stops like Waiting, where the condition cannot be judged yet.
func Unknown(reason, message string) Outcome {
	return Outcome{Status: metav1.ConditionUnknown, Reason: reason, Message: message, Stop: true}
}

// Stalled stops until a client changes something.
func Stalled(reason, message string) Outcome {
	return Outcome{Status: metav1.ConditionFalse, Reason: reason, Message: message, Stop: true, Stalled: true}
}

// NotNeeded passes a gate that does not apply to a policy without a converter.
func NotNeeded() Outcome {
	return Passed(v1alpha1.ReasonNotNeeded, "spec.converter.type None converts nothing")
}

// Abnormal is the outcome of a condition that exists only while something is wrong.
func Abnormal(reason, message string) Outcome {
	return Outcome{Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

// Decision is the result of one gate: its outcome, and the work that follows from it.
type Decision struct {
	Outcome
	Work
}

// Work is a list of steps, in order, and the time of the next reconciliation.
type Work struct {
	Steps []step.Step
	// RecheckAfter is when to reconcile again if no event does; zero for never.
	RecheckAfter time.Duration
}

// Do appends steps.
func (w *Work) Do(steps ...step.Step) { w.Steps = append(w.Steps, steps...) }

// Recheck asks for a reconciliation after the duration at the latest. It waits a second
// at least.
func (w *Work) Recheck(after time.Duration) {
	after = max(after, time.Second)
	if w.RecheckAfter == 0 || after < w.RecheckAfter {
		w.RecheckAfter = after
	}
}

// Due reports whether a wait is over. If it is not, Due asks for a reconciliation at its end.
func (w *Work) Due(left time.Duration) bool {
	if left > 0 {
		w.Recheck(left)
	}
	return left <= 0
}

// DueCheck reports that a background check of a subject must be started: none has run for the
// subject, or the last one failed and its wait is over. If the wait is not over, DueCheck asks for a
// reconciliation at its end.
func (w *Work) DueCheck(check *observed.BackgroundCheck, subject string, now time.Time) bool {
	return check == nil || check.Subject != subject || !check.Running && check.Reason != "" && w.Due(check.Due(now))
}

// Take empties the work and returns what was in it.
func (w *Work) Take() Work {
	taken := *w
	*w = Work{}
	return taken
}

// Decide returns an outcome with all work that was added on the way to it.
func (w *Work) Decide(outcome Outcome) Decision { return Decision{outcome, w.Take()} }

// Add appends other work.
func (w *Work) Add(other Work) {
	w.Do(other.Steps...)
	if other.RecheckAfter > 0 {
		w.Recheck(other.RecheckAfter)
	}
}

// Event is one Kubernetes event.
type Event struct {
	// Reason of the condition that changed, or of what happened to a migration.
	Reason string
	// Action is the type of the condition, or what happened to a run, such as "StartRun".
	Action  string
	Note    string
	Warning bool
	// CRD is the CustomResourceDefinition whose author is to see it too; empty for none.
	CRD types.UID
}

// Flag is the condition Reconciling or Stalled, which repeats Ready if it is set.
func Flag(set bool, ready Outcome) Outcome {
	if set {
		return Outcome{Status: metav1.ConditionTrue, Reason: ready.Reason, Message: ready.Message}
	}
	return Outcome{Status: metav1.ConditionFalse, Reason: ready.Reason}
}

// Condition is the condition of a type that reports the outcome about a generation. If its status
// changed, it did so now.
func (o Outcome) Condition(of string, generation int64, now time.Time) metav1.Condition {
	return metav1.Condition{Type: of, Status: o.Status, Reason: o.Reason, Message: o.Message,
		ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now)}
}

// Changed reports that a condition changed in a way that has an event: its status or reason did, or
// there was none before.
func Changed(old *metav1.Condition, now metav1.Condition) bool {
	return old == nil || old.Status != now.Status || old.Reason != now.Reason
}

// Note is the text of the event about a condition.
func Note(condition metav1.Condition) string {
	text := condition.Type + " is " + string(condition.Status)
	if condition.Message != "" {
		text += ": " + condition.Message
	}
	return text
}

// Recovery is the event for the end of a condition that exists only during a problem.
type Recovery struct{ Condition, Note string }

// Recovered returns the events of the conditions that were True before, and are gone.
func Recovered(of []Recovery, before, after []metav1.Condition) (events []Event) {
	for _, end := range of {
		if apimeta.IsStatusConditionTrue(before, end.Condition) && apimeta.FindStatusCondition(after, end.Condition) == nil {
			events = append(events, Event{Reason: v1alpha1.ReasonResolved, Action: end.Condition, Note: end.Note})
		}
	}
	return events
}

// What a condition message has room for: the first errors, the rest of which shows up
// as those are corrected; and the first fields of a list.
const (
	MaxErrors = 10
	MaxFields = 3
	// maxLine bounds each error and warning, in bytes: people read them in one line.
	maxLine = 600
)

// Errors is the first errors in one line.
func Errors(errors field.ErrorList) string {
	lines := make([]string, 0, MaxErrors+1)
	for i, err := range errors {
		if i == MaxErrors {
			lines = append(lines, fmt.Sprintf("and %d more", len(errors)-MaxErrors))
			break
		}
		lines = append(lines, Cut(err.Error()))
	}
	return strings.Join(lines, "; ")
}

// FirstOf is the first names, and how many there are besides.
func FirstOf(names []string, most int) string {
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// Cut is a line that is not too long for a message.
func Cut(line string) string { return CutTo(line, maxLine) }

// CutTo cuts a text to a number of bytes.
func CutTo(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("...")], "") + "..."
}

// FieldManager names the field manager that wrote something; empty if it is unknown.
func FieldManager(name string) string {
	if name == "" {
		return "an unknown field manager"
	}
	return fmt.Sprintf("field manager %q", name)
}
