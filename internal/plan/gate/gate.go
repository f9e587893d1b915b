// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gate has what a gate on the way to Ready says, and what it wants done.
package gate

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/conversion-operator/conversion-operator/internal/plan/step"
)

// Outcome is what a gate says. Without a reason it says nothing.
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

// Abnormal is the outcome of a condition that exists only while something is wrong.
func Abnormal(reason, message string) Outcome {
	return Outcome{Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

// Work is what is to be done, in this order, and when to look again.
type Work struct {
	Steps []step.Step
	// RecheckAfter is when to look again where no event tells; zero for never.
	RecheckAfter time.Duration
}

// Do adds steps.
func (w *Work) Do(steps ...step.Step) { w.Steps = append(w.Steps, steps...) }

// Recheck asks for another look after the duration, or earlier, and not within a second.
func (w *Work) Recheck(after time.Duration) {
	after = max(after, time.Second)
	if w.RecheckAfter == 0 || after < w.RecheckAfter {
		w.RecheckAfter = after
	}
}

// Due reports whether nothing is left of a wait, and asks for another look when it ends.
func (w *Work) Due(left time.Duration) bool {
	if left > 0 {
		w.Recheck(left)
	}
	return left <= 0
}

// Take returns what has been added since the last time, and begins again.
func (w *Work) Take() Work {
	taken := *w
	*w = Work{}
	return taken
}

// Add appends the work of another client.
func (w *Work) Add(other Work) {
	w.Do(other.Steps...)
	if other.RecheckAfter > 0 {
		w.Recheck(other.RecheckAfter)
	}
}

// Event tells of one thing that happened.
type Event struct {
	// Reason of the condition that changed, or of what happened to a migration.
	Reason string
	// Action is the type of the condition, or "Migrate".
	Action  string
	Note    string
	Warning bool
	// CRD is the CustomResourceDefinition whose author is to see it too; empty for none.
	CRD types.UID
}
