// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/activation"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/converter"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
)

// Health reports problems of active conversions.
type Health struct {
	observed.Cluster
	// work that was decided and not handed out yet.
	work gate.Work
	// Status is the part of the status about these problems.
	Status Status

	converter  *converter.Converter
	activation *activation.Activation
}

// Status is the health's part of a policy's status.
type Status struct {
	ConversionFailures []v1alpha1.ConversionFailure
	OversizedObjects   []v1alpha1.OversizedObject
	Verification       *v1alpha1.VerificationStatus
	// Conditions by their types. One without a reason is removed; a missing one stays unchanged.
	Conditions map[string]gate.Outcome
}

// Gather reads the status.
func Gather(converts *converter.Converter, activates *activation.Activation) *Health {
	return &Health{Cluster: converts.Cluster, converter: converts, activation: activates,
		Status: Status{OversizedObjects: slices.Clone(converts.Policy.Status.OversizedObjects), Conditions: map[string]gate.Outcome{}}}
}

// Report reports failed conversions, oversized objects, pods on one node, pods that may need what they
// convert, and failed samples, and has samples taken again when that is due. Verified tells that the
// active converter is verified and nothing is being changed.
func (h *Health) Report(verified bool) gate.Work {
	h.reportFailures()
	h.reportOversized()
	h.reportRedundancy()
	h.reportBootstrap()
	h.resample(verified)
	return h.work.Take()
}

// report sets a condition.
func (h *Health) report(condition string, outcome gate.Outcome) {
	h.Status.Conditions[condition] = outcome
}

// forget removes a condition.
func (h *Health) forget(condition string) { h.Status.Conditions[condition] = gate.Outcome{} }

// reportRedundancy reports pods of the policy that are all on one node. A fleet reports its own.
func (h *Health) reportRedundancy() {
	decided := h.converter.Redundancy().Decide()
	h.report(v1alpha1.NotRedundantCondition, decided.Outcome)
	if !h.Policy.Spec.Paused {
		h.work.Add(decided.Work)
	}
}
