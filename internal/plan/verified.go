// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
)

// probeAgain is when a pod that failed its probe is asked again.
const probeAgain = 3 * time.Second

// conversionVerified: every ready converter pod answered a TLS handshake
// against the exact bytes of caBundle, and a conversion of each version pair. And
// what takes longer, where the CustomResourceDefinition is to be written:
// proofs.go.
func conversionVerified(s *state) outcome {
	if s.none() {
		return s.notNeeded()
	}
	proven, warning := 0, ""
	for _, pod := range s.answering() {
		if pod.Proof == nil {
			s.recheck(probeAgain)
			return waiting(v1alpha1.ReasonProbing, fmt.Sprintf("%s is still to be probed", s.called(pod)))
		}
		if pod.Proof.Reason != "" {
			s.recheck(probeAgain)
			return waiting(pod.Proof.Reason, fmt.Sprintf("%s: %s", s.called(pod), pod.Proof.Message)+s.meanwhile()+s.replace(pod))
		}
		proven++
		warning = cmp.Or(warning, pod.Proof.Warning)
	}
	wanted := s.conversion(s.planHash)
	s.recall(wanted)
	if s.toSwitch(wanted) {
		if proof := s.prove(wanted); proof.stop {
			return proof
		}
	}
	if warning != "" {
		warning = "; warning: " + cut(warning)
	}
	return passed(v1alpha1.ReasonProven, s.answered(proven)+s.proofs(wanted)+warning)
}

// answered says who has answered.
func (s *state) answered(proven int) string {
	versions := len(crds.VersionsInUse(s.CRD))
	pairs := versions * (versions - 1)
	if s.Rules.Plan != nil {
		pairs = len(s.Rules.Plan.Pairs())
	}
	if s.external() {
		return fmt.Sprintf("%s answered over TLS at %d endpoints for %d version pairs", s.where(), proven, pairs)
	}
	return fmt.Sprintf("%d converter pods answered over TLS for %d version pairs", proven, pairs)
}

// answering are the ready pods that API servers may call, or the endpoints of a
// converter that somebody else runs.
func (s *state) answering() []Pod {
	return slices.DeleteFunc(slices.Clone(s.answerers()), func(pod Pod) bool {
		return !pod.Ready || !s.external() && !slices.Contains(pod.Plans, s.planHash)
	})
}

func (s *state) called(pod Pod) string {
	if s.external() {
		return "endpoint " + pod.Name + " of " + s.where()
	}
	return "converter pod " + pod.Name
}
