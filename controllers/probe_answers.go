// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
)

const (
	// probePatience is for how long a policy is left as it is while pods of it are probed
	// for the first time: most answer within milliseconds, and no one is to hear of a
	// probe that is pending for so long. What a pod that hangs must not hold up is done
	// by then: who undoes a foreign write asks no pod.
	probePatience = time.Second
	// answerAge is for how long the answer to a probe is told while the next is under way.
	// It is longer than any time after which one that is not taken for proven is repeated.
	answerAge = time.Minute
)

// probeKey is whom a probe asks, and for what.
type probeKey struct {
	pod types.UID
	fingerprint
}

// podProbe is the latest probe of a pod. It goes on while reconciliations come and go.
type podProbe struct {
	policy  string
	running bool
	// began is when the latest began, and ended when the latest answer came.
	began, ended time.Time
	// answer is the latest; nil while there is none.
	answer *observed.Proof
	// told tells that a reconciliation has had the answer.
	told bool
}

// ask returns the latest answer to a probe. It starts a probe where nothing is under way
// and the answer was told before; a new answer wakes the policy. If there is no
// answer, pending is for how long it is worth to wait for it.
func (p *Prober) ask(policy string, key probeKey, probe func(lifetime) *observed.Proof) (answer *observed.Proof, pending time.Duration) {
	const most = 10_000
	p.mu.Lock()
	defer p.mu.Unlock()
	latest := p.answers[key]
	if latest == nil {
		if len(p.answers) >= most {
			clear(p.answers)
		}
		latest = &podProbe{policy: policy, told: true}
		p.answers[key] = latest
	}
	if time.Since(latest.ended) >= answerAge {
		latest.answer, latest.told = nil, true
	}
	if !latest.running && latest.told {
		latest.running, latest.began = true, time.Now()
		p.background.run(policy, func(life lifetime) { p.finish(life, key, latest, probe(life)) })
	}
	if latest.answer == nil {
		return nil, max(0, probePatience-time.Since(latest.began))
	}
	latest.told = true
	return latest.answer, 0
}

// finish records an answer, and wakes the policy where it was told something else.
func (p *Prober) finish(life lifetime, key probeKey, latest *podProbe, answer *observed.Proof) {
	p.mu.Lock()
	same := answer != nil && latest.answer != nil && *answer == *latest.answer
	latest.answer, latest.ended, latest.running, latest.told = answer, time.Now(), false, same || answer == nil
	current := p.answers[key] == latest
	p.mu.Unlock()
	if current && answer != nil && !same {
		p.background.wake(life, latest.policy)
	}
}
