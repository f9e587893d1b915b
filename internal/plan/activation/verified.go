// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package activation

import (
	"cmp"
	"fmt"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/converter"
	"github.com/conversion-operator/conversion-operator/internal/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
)

// Verified decides whether every ready converter pod answered a TLS handshake against the exact bytes
// of caBundle, and a conversion of each version pair. And what takes longer, where the
// CustomResourceDefinition is to be written: proofs.go.
func (a *Activation) Verified() gate.Outcome {
	if a.None() {
		return converter.NotNeeded()
	}
	proven, warning := 0, ""
	for _, pod := range a.converter.Answering() {
		if pod.Proof == nil {
			a.Recheck(observed.ProbeAgain)
			return gate.Waiting(v1alpha1.ReasonProbing, fmt.Sprintf("%s: probe pending", a.converter.Name(pod)))
		}
		if pod.Proof.Reason != "" {
			a.Recheck(observed.ProbeAgain)
			says, work := a.converter.Replace(pod)
			a.Add(work)
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
