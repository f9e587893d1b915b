// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
)

// A converter pod that is called by API servers, and answers wrongly, is worse than
// one that is gone: what it converts is wrong, or fails, while a good pod stands
// beside it. So it is evicted, and its Deployment starts another. That is done to one
// pod at a time, only where all others are there and have just proven themselves,
// and within the PodDisruptionBudget, which counts what else goes on in the cluster.
// A pod that has not lived for long is left alone: whatever makes pods go wrong so
// soon would do it again, and an eviction now and then is the most it may cost.
// Where nobody answers rightly, or where somebody else runs the converter, the
// condition says so, and no more.

// lives is how many lifetimes of a proof a pod must have lived before it is evicted.
const lives = 2

// inCharge tells that what API servers call is what the policy wants.
func (s *state) inCharge() bool { return s.armed && s.named() == s.planHash }

// answersWrongly reports that a pod that API servers call answers, and wrongly. One
// that does not answer fails what is asked of it, which does no harm to objects.
func (s *state) answersWrongly() bool {
	return s.inCharge() && slices.ContainsFunc(s.answering(), func(pod Pod) bool {
		return pod.Proof != nil && slices.Contains([]string{"CanaryFailed", "UnexpectedAnswer", "WrongPlan"}, pod.Proof.Reason)
	})
}

// replace evicts a pod that has failed its proof where that is safe, and says what
// is done about it, or what is to be done.
func (s *state) replace(pod Pod) string {
	if !s.inCharge() {
		return ""
	}
	const harm = "; API servers call it, so that some conversions fail or are wrong: "
	if s.external() {
		return harm + "whoever runs it has to mend or remove it"
	}
	switch others := s.othersProven(pod); {
	case others == 0:
		return "; no other pod answers rightly, so that none is evicted, and conversions fail or are wrong: " + s.howToReplace()
	case others < int(replicas(s.Policy))-1 || len(s.Ending) > 0:
		return harm + "it is evicted once all others are ready and have proven themselves"
	case s.Now.Sub(pod.Created) < lives*s.Settings.ProofLifetime:
		s.recheck(pod.Created.Add(lives * s.Settings.ProofLifetime).Sub(s.Now))
		return harm + fmt.Sprintf("it is evicted once it is %s old, as what went wrong so soon may do so again: see its log", lives*s.Settings.ProofLifetime)
	case s.Evictable == 0:
		return harm + fmt.Sprintf("it is evicted once the PodDisruptionBudget %s/%s allows it", s.Settings.Namespace, ChildName(s.Policy.Name))
	}
	s.do(EvictPod{Name: pod.Name, UID: pod.UID, Note: s.called(pod) + ": " + pod.Proof.Message})
	return harm + "it is evicted, and its Deployment starts another"
}

// othersProven counts the ready pods beside one that answer as they must.
func (s *state) othersProven(than Pod) int {
	count := 0
	for _, pod := range s.answering() {
		if pod.Name != than.Name && pod.Proof != nil && pod.Proof.Reason == "" {
			count++
		}
	}
	return count
}

// howToReplace is what users can do where the operator cannot.
func (s *state) howToReplace() string {
	if s.Policy.Spec.Converter.Image != nil {
		return fmt.Sprintf("see the log of the pods, and correct spec.converter.image; or restart them with kubectl -n %s delete pods -l %s=%s",
			s.Settings.Namespace, PlanLabel, s.planHash)
	}
	return fmt.Sprintf("see the log of the pods, and restart them with kubectl -n %s rollout restart deployment %s",
		s.Settings.Namespace, ChildName(s.Policy.Name))
}
