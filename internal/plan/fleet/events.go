// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/plan/workload"
)

// recoveries are the events for the end of conditions that exist only during a problem.
var recoveries = []gate.Recovery{
	workload.RedundancyRecovery,
	{Condition: v1alpha1.RotationBlockedCondition, Reason: v1alpha1.ReasonRotationUnblocked, Note: "rotation unblocked: the rotation of certificates continues, or is complete"},
}

// underWay are the reasons of conditions that become True without help.
var underWay = []string{v1alpha1.ReasonIssuing, v1alpha1.ReasonNoPodsReady}

// Events returns the events between two states of a fleet: one for each condition whose status or
// reason changed, except the summaries.
func Events(before, after v1alpha1.ConverterFleetStatus) (events []gate.Event) {
	for _, now := range after.Conditions {
		switch now.Type {
		case v1alpha1.ReadyCondition, v1alpha1.ReconcilingCondition, v1alpha1.StalledCondition:
			continue
		}
		if !gate.Changed(apimeta.FindStatusCondition(before.Conditions, now.Type), now) {
			continue
		}
		events = append(events, gate.Event{Reason: now.Reason, Action: now.Type, Note: gate.Note(now),
			Warning: slices.Contains(v1alpha1.Abnormal, now.Type) || now.Status == metav1.ConditionFalse && !slices.Contains(underWay, now.Reason)})
	}
	return append(events, gate.Recovered(recoveries, before.Conditions, after.Conditions)...)
}
