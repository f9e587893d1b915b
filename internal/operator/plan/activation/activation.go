// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package activation

import (
	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/certificates"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/converter"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
)

// Input is what the activation depends on.
type Input struct {
	Converter    *converter.Converter
	Certificates *certificates.Certificates
	// Evidence of a migration, if there is any.
	Evidence *v1alpha1.MigrationEvidence
	// Repairs tells that the operator may repair spec.conversion without waiting for gates:
	// the converter was active, and the policy is neither paused nor giving it up.
	Repairs bool
}

// Activation decides about spec.conversion of the CustomResourceDefinition.
type Activation struct {
	observed.Cluster
	// Status is the activation's part of the status of the policy.
	Status Status

	converter    *converter.Converter
	certificates *certificates.Certificates
	evidence     *v1alpha1.MigrationEvidence
	repairs      bool
	// answer to a foreign write of spec.conversion; empty if there is none, or if the
	// operator cannot answer it yet.
	answer v1alpha1.DriftAnswer
	// repair is the identity of the converter that spec.conversion must name without
	// waiting for a gate; empty if nothing is to be repaired.
	repair string
	// work that was decided and not handed out yet.
	work gate.Work
}

// Status is the activation's part of a policy's status.
type Status struct {
	Drift             *v1alpha1.DriftStatus
	UnconvertedWindow *v1alpha1.UnconvertedWindow
	Verification      *v1alpha1.VerificationStatus
}

// Gather reads the status, and determines what must be repaired.
func Gather(in Input) *Activation {
	by, status := in.Converter, &in.Converter.Policy.Status
	a := &Activation{Cluster: by.Cluster, converter: by, certificates: in.Certificates, evidence: in.Evidence, repairs: in.Repairs,
		Status: Status{Drift: status.Drift.DeepCopy(), UnconvertedWindow: status.UnconvertedWindow.DeepCopy(), Verification: status.Verification.DeepCopy()}}
	if !by.EverActive {
		a.Status.Drift = nil
	}
	switch {
	case !in.Repairs:
	case a.Drifted():
		a.answer, a.repair = a.answerDrift()
	case by.Disowned:
		a.answer, a.repair = v1alpha1.DriftKept, by.Named()
	default:
		a.repair = a.replacement()
	}
	return a
}

// Upkeep repairs spec.conversion and the admission of large objects, and measures the
// unconverted window. It waits for no gate.
func (a *Activation) Upkeep() gate.Work {
	if a.repairs {
		a.updateAdmissionCABundle()
		a.recordDrift()
		if a.repair != "" {
			a.point(a.repair)
		}
	}
	a.measureWindow()
	return a.work.Take()
}

// Drifted tells that another client changed spec.conversion since it was activated.
func (a *Activation) Drifted() bool { return a.converter.Drifted }

// replacement is the converter to name if no pod has the active ruleset any more, for
// example because rulesets were deleted; empty if nothing needs to be replaced.
func (a *Activation) replacement() string {
	c := a.converter
	if a.None() || !c.Lost() || !a.CRD.DeletionTimestamp.IsZero() {
		return ""
	}
	if identity := c.Answerable(); a.usable(identity) {
		return identity
	}
	return ""
}

// usable reports that API servers will accept the certificate of the pods of a revision.
func (a *Activation) usable(identity string) bool {
	if a.converter.AtWantedPlace(identity) {
		return a.certificates.Usable()
	}
	return a.converter.Certified(identity)
}

// point points the CustomResourceDefinition at a converter. API servers refuse objects
// that are too large before that; a repair does not wait until they do.
func (a *Activation) point(identity string) {
	a.refuseTooLarge()
	a.work.Add(a.converter.Switch(a.converter.Conversion(identity), false))
}
