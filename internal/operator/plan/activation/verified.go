// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package activation

import (
	"cmp"
	"fmt"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
)

// Verified is the gate ConversionVerified: every endpoint, live objects and an API server
// have verified the conversion.
func (a *Activation) Verified() gate.Decision { return a.work.Decide(a.verified()) }

// verified passes when every ready converter pod has answered a TLS handshake against the
// exact bytes of caBundle, and a conversion of each version pair. Before a change of the
// CustomResourceDefinition it also asks for proofs that take longer (proofs.go).
func (a *Activation) verified() gate.Outcome {
	if a.None() {
		return gate.NotNeeded()
	}
	proven, warning := 0, ""
	for _, pod := range a.converter.ReadyEndpoints() {
		if pod.Proof == nil {
			a.work.Recheck(observed.ProbeAgain)
			return gate.Waiting(v1alpha1.ReasonProbing, fmt.Sprintf("%s: probe pending", a.converter.Name(pod)))
		}
		if pod.Proof.Reason != "" {
			a.work.Recheck(observed.ProbeAgain)
			says, work := a.converter.Replace(pod)
			a.work.Add(work)
			return gate.Waiting(pod.Proof.Reason, fmt.Sprintf("%s: %s", a.converter.Name(pod), pod.Proof.Message)+a.converter.Meanwhile()+says)
		}
		proven++
		warning = cmp.Or(warning, pod.Proof.Warning)
	}
	wanted := a.converter.Conversion(a.converter.Wanted)
	a.recall(wanted)
	if a.toSwitch(wanted) {
		if proof := a.prove(wanted); proof.Stop {
			return proof
		}
	}
	if warning != "" {
		warning = "; warning: " + gate.Cut(warning)
	}
	return gate.Passed(v1alpha1.ReasonVerified, a.converter.Answered(proven)+a.proofs(wanted)+warning)
}
