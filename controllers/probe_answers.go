// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
)

const (
	// firstProbeWait is how long a policy waits for the first probe of its pods. Most pods answer
	// within milliseconds, and the status need not report a probe that has been pending for such a
	// short time. Reconciliations that revert a foreign write probe no pods, so a pod that hangs
	// does not delay them.
	firstProbeWait = time.Second
	// answerAge is how long the latest answer stays valid while the next probe is running. It is
	// longer than the interval between probes of pods without a proof.
	answerAge = time.Minute
)

// probeKey identifies a pod and what is asked of it.
type probeKey struct {
	pod types.UID
	fingerprint
}

// podProbe is the latest probe of a pod. It outlives reconciliations.
type podProbe struct {
	policy  string
	running bool
	// began is the start of the latest probe, and ended the time of the latest answer.
	began, ended time.Time
	// answer is the latest; nil if there is none.
	answer *observed.Proof
	// delivered is true after a reconciliation read the answer.
	delivered bool
}

// probeInBackground returns the latest answer to a probe. It starts a probe if none is running and
// the latest answer was delivered. A new answer wakes the policy. If there is no answer yet,
// pending is the time to wait for it.
func (p *Prober) probeInBackground(policy string, key probeKey, probe func(lifetime) *observed.Proof) (answer *observed.Proof, pending time.Duration) {
	const most = 10_000
	p.mu.Lock()
	defer p.mu.Unlock()
	latest := p.answers[key]
	if latest == nil {
		if len(p.answers) >= most {
			clear(p.answers)
		}
		latest = &podProbe{policy: policy, delivered: true}
		p.answers[key] = latest
	}
	if time.Since(latest.ended) >= answerAge {
		latest.answer, latest.delivered = nil, true
	}
	if !latest.running && latest.delivered {
		latest.running, latest.began = true, time.Now()
		p.background.run(policy, func(life lifetime) { p.finish(life, key, latest, probe(life)) })
	}
	if latest.answer == nil {
		return nil, max(0, firstProbeWait-time.Since(latest.began))
	}
	latest.delivered = true
	return latest.answer, 0
}

// finish records an answer, and wakes the policy if the answer changed. The first answers of several pods
// wake it once: the last one does, or the end of firstProbeWait.
func (p *Prober) finish(life lifetime, key probeKey, latest *podProbe, answer *observed.Proof) {
	p.mu.Lock()
	same := answer != nil && latest.answer != nil && *answer == *latest.answer
	latest.answer, latest.ended, latest.running, latest.delivered = answer, time.Now(), false, same || answer == nil
	current, more := p.answers[key] == latest, p.expectsMore(latest.policy)
	p.mu.Unlock()
	if current && answer != nil && !same && !more {
		p.background.wake(life, latest.policy)
	}
}

// expectsMore reports that a pod of the policy is about to give its first answer, which wakes the policy.
func (p *Prober) expectsMore(policy string) bool {
	for _, other := range p.answers {
		if other.policy == policy && other.running && other.answer == nil && time.Since(other.began) < firstProbeWait {
			return true
		}
	}
	return false
}
