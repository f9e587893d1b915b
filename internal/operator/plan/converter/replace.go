// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converter

import (
	"fmt"
	"slices"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// A converter pod that serves traffic and answers incorrectly does more harm than a missing
// pod. So the operator evicts it, and the Deployment replaces it: one pod at a time, only
// if all other pods are ready and verified, and within the PodDisruptionBudget. A young pod
// stays, because its replacement would probably fail as soon; this limits the number of
// evictions. If no pod answers correctly, or if users run the converter, the operator only
// reports it.

// lives is the age of a pod, in lifetimes of a proof, before it is evicted.
const lives = 2

// AnswersWrongly reports that a pod that serves traffic answers incorrectly. A pod that does not
// answer makes requests fail, which does no harm to stored objects.
func (c *Converter) AnswersWrongly() bool {
	return c.InCharge() && slices.ContainsFunc(c.ReadyEndpoints(), func(pod observed.Pod) bool {
		return pod.Proof != nil && slices.Contains([]string{v1alpha1.ReasonCanaryFailed, v1alpha1.ReasonUnexpectedAnswer, v1alpha1.ReasonWrongRuleset}, pod.Proof.Reason)
	})
}

// Replace evicts a pod that has failed its probe if that is safe. It says what the operator
// does about the pod, or what users can do.
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
	case others < int(c.replicas())-1 || len(c.EndingOf(c.Fleet())) > 0:
		return harm + "the operator evicts it once all other pods are ready and verified", work
	case c.Now.Sub(pod.Created) < lives*c.Settings.ProofLifetime:
		work.Recheck(pod.Created.Add(lives * c.Settings.ProofLifetime).Sub(c.Now))
		return harm + fmt.Sprintf("the operator evicts it once it is %s old, because a replacement may fail as soon: see its log", lives*c.Settings.ProofLifetime), work
	case c.evictable() == 0:
		return harm + fmt.Sprintf("the operator evicts it once PodDisruptionBudget %s/%s allows that", c.Settings.Namespace, c.podsName()), work
	}
	work.Do(step.EvictPod{Name: pod.Name, UID: pod.UID, Note: c.Name(pod) + ": " + pod.Proof.Message})
	return harm + "the operator evicts it, and its Deployment replaces it", work
}

// othersProven counts the other ready pods that passed their probes.
func (c *Converter) othersProven(than observed.Pod) int {
	count := 0
	for _, pod := range c.ReadyEndpoints() {
		if pod.Name != than.Name && pod.Proof != nil && pod.Proof.Reason == "" {
			count++
		}
	}
	return count
}
