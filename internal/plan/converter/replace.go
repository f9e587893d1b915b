// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converter

import (
	"fmt"
	"slices"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/plan/step"
)

// A converter pod that is called by API servers, and answers wrongly, is worse than
// one that is gone: what it converts is wrong, or fails, while a good pod stands
// beside it. So the operator evicts it, and its Deployment replaces it. That is done to one
// pod at a time, only where all others are there and have just proven themselves,
// and within the PodDisruptionBudget, which counts what else goes on in the cluster.
// A pod that has not lived for long is left alone: whatever makes pods go wrong so
// soon would do it again, and an eviction now and then is the most it may cost.
// If nothing answers rightly, or where users run the converter, the
// condition says so, and no more.

// lives is how many lifetimes of a proof a pod must have lived before it is evicted.
const lives = 2

// AnswersWrongly reports that a pod that API servers call answers, and wrongly. One
// that does not answer fails what is asked of it, which does no harm to objects.
func (c *Converter) AnswersWrongly() bool {
	return c.InCharge() && slices.ContainsFunc(c.ReadyEndpoints(), func(pod observed.Pod) bool {
		return pod.Proof != nil && slices.Contains([]string{v1alpha1.ReasonCanaryFailed, v1alpha1.ReasonUnexpectedAnswer, v1alpha1.ReasonWrongRuleset}, pod.Proof.Reason)
	})
}

// Replace evicts a pod that has failed its proof where that is safe, and says what
// is done about it, or what is to be done.
func (c *Converter) Replace(pod observed.Pod) (says string, work gate.Work) {
	if !c.InCharge() {
		return "", work
	}
	const harm = "; it serves traffic: conversions may fail or be incorrect: "
	hint, evicts := c.kind.howToReplace()
	if !evicts {
		return harm + hint, work
	}
	switch others := c.othersProven(pod); {
	case others == 0:
		return "; no other pod answers correctly, so the operator evicts none, and conversions fail or are incorrect: " + hint, work
	case others < int(replicas(c.Policy))-1 || len(c.Ending) > 0:
		return harm + "the operator evicts it once all other pods are ready and verified", work
	case c.Now.Sub(pod.Created) < lives*c.Settings.ProofLifetime:
		work.Recheck(pod.Created.Add(lives * c.Settings.ProofLifetime).Sub(c.Now))
		return harm + fmt.Sprintf("the operator evicts it once it is %s old, because a replacement may fail as soon: see its log", lives*c.Settings.ProofLifetime), work
	case c.Evictable == 0:
		return harm + fmt.Sprintf("the operator evicts it once PodDisruptionBudget %s/%s allows that", c.Settings.Namespace, names.Child(c.Policy.Name)), work
	}
	work.Do(step.EvictPod{Name: pod.Name, UID: pod.UID, Note: c.Name(pod) + ": " + pod.Proof.Message})
	return harm + "the operator evicts it, and its Deployment replaces it", work
}

// othersProven counts the ready pods beside one that answer as they must.
func (c *Converter) othersProven(than observed.Pod) int {
	count := 0
	for _, pod := range c.ReadyEndpoints() {
		if pod.Name != than.Name && pod.Proof != nil && pod.Proof.Reason == "" {
			count++
		}
	}
	return count
}
