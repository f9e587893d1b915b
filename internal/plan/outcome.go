// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// outcome is what a gate says. Without a reason it says nothing.
type outcome struct {
	status  metav1.ConditionStatus
	reason  string
	message string
	// stop keeps the gates behind this one closed.
	stop bool
	// stalled means that nothing goes on until somebody changes something.
	stalled bool
	// gate is the condition that stopped.
	gate string
}

// passed opens the next gate.
func passed(reason, message string) outcome {
	return outcome{status: metav1.ConditionTrue, reason: reason, message: message}
}

// undecided opens the next gate although the condition is not known to hold.
func undecided(reason, message string) outcome {
	return outcome{status: metav1.ConditionUnknown, reason: reason, message: message}
}

// waiting stops until an event that is expected to come.
func waiting(reason, message string) outcome {
	return outcome{status: metav1.ConditionFalse, reason: reason, message: message, stop: true}
}

// unknown stops like waiting, where the condition cannot be judged yet.
func unknown(reason, message string) outcome {
	return outcome{status: metav1.ConditionUnknown, reason: reason, message: message, stop: true}
}

// stalled stops until somebody changes something.
func stalled(reason, message string) outcome {
	return outcome{status: metav1.ConditionFalse, reason: reason, message: message, stop: true, stalled: true}
}

func (s *state) report(condition string, o outcome) {
	apimeta.SetStatusCondition(&s.plan.Status.Conditions, metav1.Condition{
		Type: condition, Status: o.status, Reason: o.reason, Message: o.message,
		ObservedGeneration: s.Policy.Generation,
		LastTransitionTime: metav1.NewTime(s.Now),
	})
}

// summarize sets Ready, Reconciling and Stalled as kstatus reads them: at most
// one of the last two is True, and both are False once Ready is True.
func (s *state) summarize(last outcome) {
	ready := outcome{status: metav1.ConditionTrue, reason: v1alpha1.ReasonSucceeded, message: s.success()}
	if valid := apimeta.FindStatusCondition(s.plan.Status.Conditions, v1alpha1.PlanValidCondition); valid != nil &&
		valid.Reason == v1alpha1.ReasonVersionNotInCRD {
		ready.reason, ready.message = v1alpha1.ReasonArmedAhead, valid.Message
	}
	if last.status == metav1.ConditionFalse && !last.stop {
		ready.message += "; " + last.message
	}
	if last.stop {
		ready = outcome{status: metav1.ConditionFalse, reason: last.reason, message: last.message}
	}
	suspended := last.reason == v1alpha1.ReasonSuspended
	if suspended {
		ready.status = metav1.ConditionUnknown
	}
	s.report(v1alpha1.ReadyCondition, ready)
	s.report(v1alpha1.ReconcilingCondition, flag(last.stop && !last.stalled && !suspended, ready))
	s.report(v1alpha1.StalledCondition, flag(last.stalled, ready))
}

func flag(set bool, ready outcome) outcome {
	if set {
		return outcome{status: metav1.ConditionTrue, reason: ready.reason, message: ready.message}
	}
	return outcome{status: metav1.ConditionFalse, reason: ready.reason}
}

func (s *state) success() string {
	crd := s.plan.Status.CRD
	if crd == nil {
		return ""
	}
	if s.none() {
		return "nothing needs to be converted; objects are written at " + crd.StorageVersion
	}
	return "conversion is armed and proven; objects are written at " + crd.StorageVersion
}
