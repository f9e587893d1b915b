// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package activation

import (
	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/certificates"
	"github.com/conversion-operator/conversion-operator/internal/plan/converter"
	"github.com/conversion-operator/conversion-operator/internal/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/plan/step"
)

// Activation of a policy's converter.
type Activation struct {
	observed.Cluster
	gate.Work
	// Status is the activation's part of the policy's.
	Status Status

	converter    *converter.Converter
	certificates *certificates.Certificates
	// drift is what was decided about what another client wrote.
	drift gate.Outcome
	// repair is the converter that spec.conversion is pointed at without waiting for a
	// gate; empty where nothing is repaired.
	repair string
}

// Status is the activation's part of a policy's status.
type Status struct {
	Drift             *v1alpha1.DriftStatus
	UnconvertedWindow *v1alpha1.UnconvertedWindow
	Verification      *v1alpha1.VerificationStatus
}

// Look begins with what the status remembers.
func Look(by *converter.Converter, with *certificates.Certificates) *Activation {
	status := &by.Policy.Status
	a := &Activation{Cluster: by.Cluster, converter: by, certificates: with,
		Status: Status{Drift: status.Drift.DeepCopy(), UnconvertedWindow: status.UnconvertedWindow.DeepCopy(), Verification: status.Verification.DeepCopy()}}
	if !by.EverActive {
		a.Status.Drift = nil
	}
	return a
}

// Repair points spec.conversion at a converter that answers, where it names none, or
// where another client wrote it. Evidence of a migration is recorded with that, as the
// repair changes the CustomResourceDefinition again.
func (a *Activation) Repair(evidence *v1alpha1.MigrationEvidence) {
	if a.Drifted() {
		a.answerDrift(evidence)
	} else {
		a.reactivate()
	}
}

// Drifted tells that another client changed spec.conversion since it was activated.
func (a *Activation) Drifted() bool { return a.converter.Drifted }

// reactivate names another ruleset where no pod has the one that is named any more, as
// when rulesets were deleted.
func (a *Activation) reactivate() {
	c := a.converter
	lost := c.Active && a.PointsHere() && !c.Answers(c.Named())
	if a.None() || !lost || !a.CRD.DeletionTimestamp.IsZero() || !a.certificates.Usable() {
		return
	}
	a.repairBy(c.Answerable())
}

// repairBy writes spec.conversion; not where the identity is empty.
func (a *Activation) repairBy(identity string) {
	if a.repair = identity; identity != "" {
		a.point(identity)
	}
}

// point points the CustomResourceDefinition at a converter.
func (a *Activation) point(identity string) {
	// A repair does not wait for that, and comes after it.
	a.refuseTooLarge()
	a.Do(step.SwitchCRD{Pin: step.PinOf(a.CRD), Conversion: a.converter.Conversion(identity)})
}
