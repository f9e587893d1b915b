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

	"github.com/conversion-operator/conversion-operator/internal/operator/plan/health"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
)

// A pod with a proof may answer wrongly later, and no event reports that. So every pod is re-probed
// at the end of the lifetime of its proof. This runs outside reconciliations, and wakes a policy
// only if an answer changed: an unchanged pod costs a handshake and a few canary objects.

const (
	// migrationFactor is how many times more often pods are re-probed during a migration.
	migrationFactor = 10
	// reprobesAtOnce bounds how many pods are re-probed at the same time.
	reprobesAtOnce = 4
)

// reprobe renews expired proofs until ctx ends.
func (p *Prober) reprobe(ctx context.Context) error {
	return every(ctx, max(p.lifetime/migrationFactor, 100*time.Millisecond), func(context.Context) {
		var group errgroup.Group
		group.SetLimit(reprobesAtOnce)
		for _, old := range p.expired() {
			group.Go(func() error {
				p.renew(p.background.lifetimeOf(old.policy), old)
				return nil
			})
		}
		_ = group.Wait() // failed probes return no error
	})
}

// expired returns the proofs at the end of their lifetime.
func (p *Prober) expired() []proven {
	p.mu.Lock()
	defer p.mu.Unlock()
	var expired []proven
	for _, of := range p.proven {
		if time.Since(of.since) >= of.lasts {
			expired = append(expired, of)
		}
	}
	return expired
}

// renew probes a pod again. If the probe fails, renew forgets the proofs of all pods of the
// policy, so that all are probed: what is done about a failing pod depends on the others.
func (p *Prober) renew(ctx context.Context, old proven) {
	bounded, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	before := p.reportOf(old.policy, old.pod)
	warning, err := old.send(bounded)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		ctrl.LoggerFrom(ctx).Info("Converter that was proven fails its probe", "reason", err.Error())
		p.forget(old.policy)
	default:
		p.remember(old.probeRequest, warning)
		after := p.reportOf(old.policy, old.pod)
		if warning == old.warning && sameFailures(before.failures, after.failures) && sameOversized(before.oversized, after.oversized, health.OversizedLag) {
			return
		}
	}
	p.background.wake(ctx, old.policy)
}

// recall reports whether the proof of the same request is cached, and its warning.
func (p *Prober) recall(request probeRequest) (warning string, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, known := p.proven[podKey{request.policy, request.pod}]
	if !known || last.proof != request.proof || request.lasts == 0 {
		return "", false
	}
	last.lasts = request.lasts
	p.proven[podKey{request.policy, request.pod}] = last
	return last.warning, true
}

// remember caches the proof of a pod. It clears the cache when there are too many proofs; probing
// again costs little.
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
	p.proven[podKey{request.policy, request.pod}] = proven{request, warning, time.Now()}
}

// retainPods forgets the pods of a policy that no longer exist. Endpoints of converters that users
// run have no uid, and are forgotten with their policy.
func (p *Prober) retainPods(policy string, pods []observed.Pod) {
	p.forgetPods(policy, func(uid types.UID) bool {
		return uid != "" && !slices.ContainsFunc(pods, func(pod observed.Pod) bool { return pod.UID == uid })
	})
}

// forget drops everything about the pods of a policy.
func (p *Prober) forget(policy string) {
	p.forgetPods(policy, func(types.UID) bool { return true })
}

func (p *Prober) forgetPods(policy string, gone func(types.UID) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.proven, func(key podKey, _ proven) bool { return key.policy == policy && gone(key.pod) })
	maps.DeleteFunc(p.reports, func(key podKey, _ podReport) bool { return key.policy == policy && gone(key.pod) })
	maps.DeleteFunc(p.rulesets, func(uid types.UID, of podRulesets) bool { return of.policy == policy && gone(uid) })
	maps.DeleteFunc(p.answers, func(key probeKey, of *podProbe) bool { return of.policy == policy && gone(key.pod) })
}
