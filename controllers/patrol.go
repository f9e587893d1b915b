// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan"
)

// A pod that has proven itself may answer wrongly later, and no event would tell.
// So everybody is asked again at the end of a proof's life. That is done beside all
// reconciliations, and brings one about only where there is something to say: pods
// that answer as before cost a handshake and a few canaries, and no look at their
// policy.

const (
	// watchful is how many times more often pods are asked during a migration.
	watchful = 10
	// patrolsAtOnce bounds the pods that are asked again at the same time.
	patrolsAtOnce = 4
)

// patrol asks again until ctx ends.
func (p *Prover) patrol(ctx context.Context) error {
	ticker := time.NewTicker(max(p.lifetime/watchful, 100*time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		var group errgroup.Group
		group.SetLimit(patrolsAtOnce)
		for _, old := range p.aged() {
			group.Go(func() error {
				p.renew(ctx, old)
				return nil
			})
		}
		_ = group.Wait() // to be told no is no error
	}
}

// aged are the proofs at the end of their lives.
func (p *Prover) aged() []proven {
	p.mu.Lock()
	defer p.mu.Unlock()
	var aged []proven
	for _, of := range p.proven {
		if time.Since(of.since) >= of.lasts {
			aged = append(aged, of)
		}
	}
	return aged
}

// renew asks for a proof once more. After one that fails nothing is taken for proven
// any more of all pods of the policy: it is looked at anew, and what is done about
// the pod depends on the others.
func (p *Prover) renew(ctx context.Context, old proven) {
	bounded, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	before := p.heardOf(old.pod)
	warning, err := old.ask(bounded)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		ctrl.LoggerFrom(ctx).Info("Converter that was proven fails its probe", "policy", old.policy, "reason", err.Error())
		p.keep(old.policy, nil)
	default:
		p.remember(old.exam, warning)
		told := p.heardOf(old.pod)
		if warning == old.warning && sameFailures(before.failures, told.failures) && sameOversized(before.oversized, told.oversized, plan.OversizedLag) {
			return
		}
	}
	select {
	case p.doubted <- event.GenericEvent{Object: &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: old.policy}}}:
	case <-ctx.Done():
	}
}

// recall reports whether the same was proven before, and what is to be said of it.
func (p *Prover) recall(e exam) (warning string, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, known := p.proven[e.pod]
	if !known || last.proof != e.proof || e.lasts == 0 {
		return "", false
	}
	last.lasts = e.lasts
	p.proven[e.pod] = last
	return last.warning, true
}

// remember who has passed. It forgets everything once it knows too much: to ask a
// pod again costs little.
func (p *Prover) remember(e exam, warning string) {
	const most = 10_000
	if e.lasts == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.proven) >= most {
		clear(p.proven)
	}
	p.proven[e.pod] = proven{e, warning, time.Now()}
}

// keep forgets what pods of a policy have proven, but for those.
func (p *Prover) keep(policy string, pods []plan.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for uid, of := range p.proven {
		if of.policy == policy && !slices.ContainsFunc(pods, func(pod plan.Pod) bool { return pod.UID == uid }) {
			delete(p.proven, uid)
		}
	}
	for uid, of := range p.heard {
		if of.policy == policy && !slices.ContainsFunc(pods, func(pod plan.Pod) bool { return pod.UID == uid }) {
			delete(p.heard, uid)
		}
	}
}
