// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"slices"
	"sync"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/operator/plan"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// Each change of caBundle makes every API server drop and rebuild its storage of that kind, and cuts
// the watches of clients. When the authority of a fleet is replaced, all policies of the fleet want
// such a change at the same time. So those that can wait are written one after the other, over all
// policies. Rotations wait until each CustomResourceDefinition has changed, however long that takes.

const (
	// bundlePause is the time between two changes of caBundle.
	bundlePause = 200 * time.Millisecond
	// turnLasts is how long a policy may use its turn. A policy that no longer wants it does not say so.
	turnLasts = time.Minute
)

// bundleWrites has the turns of policies to change caBundle. It is in memory only.
type bundleWrites struct {
	mu   sync.Mutex
	next time.Time
	// turns that were given and not used yet, by policy.
	turns map[string]time.Time
}

// pace removes the writes of caBundle from a plan whose turn has not come, and has the policy
// reconciled again then.
func (b *bundleWrites) pace(policy string, decided plan.Plan, now time.Time) plan.Plan {
	waits := func(s step.Step) bool {
		write, is := s.(step.SwitchCRD)
		return is && write.MayWait
	}
	if !slices.ContainsFunc(decided.Steps, waits) {
		return decided
	}
	left := b.turn(policy, now)
	if left <= 0 {
		return decided
	}
	decided.Steps = slices.DeleteFunc(slices.Clone(decided.Steps), waits)
	if decided.RecheckAfter == 0 || left < decided.RecheckAfter {
		decided.RecheckAfter = left
	}
	return decided
}

// turn is the time until a policy may change caBundle. A turn whose time has come is used by that.
func (b *bundleWrites) turn(policy string, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	turn, given := b.turns[policy]
	if !given || now.Sub(turn) > turnLasts {
		turn = now
		if b.next.After(now) {
			turn = b.next
		}
		b.next = turn.Add(bundlePause)
	}
	if b.turns == nil {
		b.turns = map[string]time.Time{}
	}
	b.turns[policy] = turn
	if !turn.After(now) {
		delete(b.turns, policy)
	}
	return turn.Sub(now)
}

// forget drops the turn of a policy that no longer exists.
func (b *bundleWrites) forget(policy string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.turns, policy)
}
