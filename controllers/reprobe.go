// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/conversion-operator/conversion-operator/internal/plan/health"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
)

// A pod that has proven itself may answer wrongly later, and no event would tell.
// So every pod is re-probed at the end of a proof's lifetime. That is done beside all
// reconciliations, and wakes a policy only where something has changed: pods that answer
// as before cost a handshake and a few canary objects, and no reconciliation.

const (
	// migrationFactor is how many times more often pods are probed during a migration.
	migrationFactor = 10
	// reprobesAtOnce bounds the pods that are re-probed at the same time.
	reprobesAtOnce = 4
)

// reprobe probes again until ctx ends.
func (p *Prober) reprobe(ctx context.Context) error {
	ticker := time.NewTicker(max(p.lifetime/migrationFactor, 100*time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		var group errgroup.Group
		group.SetLimit(reprobesAtOnce)
		for _, old := range p.aged() {
			group.Go(func() error {
				p.renew(p.background.of(old.policy), old)
				return nil
			})
		}
		_ = group.Wait() // a pod that fails is no error
	}
}

// aged are the proofs at the end of their lifetime.
func (p *Prober) aged() []proven {
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

// renew asks for a proof again. After one that fails, no pod of the policy is taken for
// proven any more: all are probed, because what is done about one depends on the others.
func (p *Prober) renew(ctx context.Context, old proven) {
	bounded, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	before := p.heardOf(old.pod)
	warning, err := old.send(bounded)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		ctrl.LoggerFrom(ctx).Info("Converter that was proven fails its probe", "reason", err.Error())
		p.forget(old.policy)
	default:
		p.remember(old.probeRequest, warning)
		told := p.heardOf(old.pod)
		if warning == old.warning && sameFailures(before.failures, told.failures) && sameOversized(before.oversized, told.oversized, health.OversizedLag) {
			return
		}
	}
	p.background.wake(ctx, old.policy)
}

// recall reports whether the same was proven before, and the warning about it.
func (p *Prober) recall(request probeRequest) (warning string, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, known := p.proven[request.pod]
	if !known || last.proof != request.proof || request.lasts == 0 {
		return "", false
	}
	last.lasts = request.lasts
	p.proven[request.pod] = last
	return last.warning, true
}

// remember a pod that has passed. It forgets all of them once they are too many: to
// probe a pod again costs little.
func (p *Prober) remember(request probeRequest, warning string) {
	const most = 10_000
	if request.lasts == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.proven) >= most {
		clear(p.proven)
	}
	p.proven[request.pod] = proven{request, warning, time.Now()}
}

// keep forgets the pods of a policy but those that there are. Endpoints of converters
// that users run have no uid, and are forgotten with their policy.
func (p *Prober) keep(policy string, pods []observed.Pod) {
	p.drop(policy, func(uid types.UID) bool {
		return uid != "" && !slices.ContainsFunc(pods, func(pod observed.Pod) bool { return pod.UID == uid })
	})
}

// forget all pods of a policy.
func (p *Prober) forget(policy string) {
	p.drop(policy, func(types.UID) bool { return true })
}

func (p *Prober) drop(policy string, gone func(types.UID) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.proven, func(uid types.UID, of proven) bool { return of.policy == policy && gone(uid) })
	maps.DeleteFunc(p.heard, func(uid types.UID, of heard) bool { return of.policy == policy && gone(uid) })
	maps.DeleteFunc(p.answers, func(key probeKey, of *podProbe) bool { return of.policy == policy && gone(key.pod) })
}
