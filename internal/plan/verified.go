// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// probeAgain is when a pod that failed its probe is asked again.
const probeAgain = 3 * time.Second

// conversionVerified: every ready converter pod answered a TLS handshake
// against the exact bytes of caBundle, and a conversion of each version pair. And
// what takes longer, where the CustomResourceDefinition is to be written:
// proofs.go.
func conversionVerified(s *state) outcome {
	proven := 0
	for _, pod := range s.Pods {
		if !pod.Ready {
			continue
		}
		if pod.Proof == nil {
			s.recheck(probeAgain)
			return waiting(v1alpha1.ReasonProbing, fmt.Sprintf("converter pod %s is still to be probed", pod.Name))
		}
		if pod.Proof.Reason != "" {
			s.recheck(probeAgain)
			return waiting(pod.Proof.Reason, fmt.Sprintf("converter pod %s: %s", pod.Name, pod.Proof.Message)+s.meanwhile())
		}
		proven++
	}
	wanted := s.conversion(s.planHash)
	s.recall(wanted)
	if s.toSwitch(wanted) {
		if proof := s.prove(wanted); proof.stop {
			return proof
		}
	}
	return passed(v1alpha1.ReasonProven, fmt.Sprintf(
		"%d converter pods answered over TLS for %d version pairs", proven, len(s.Rules.Plan.Pairs()))+s.proofs(wanted))
}
