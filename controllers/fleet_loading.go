// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

// Many policies may wait for the same pods at the same time. One loop for each fleet asks the pods
// which rulesets they have, asks their kubelets to update mounted files, and wakes each policy when
// its ruleset is loaded.

const (
	// loadPoll is the time between two questions to the pods of a fleet.
	loadPoll = 150 * time.Millisecond
	// nudgeAgain is the time after which a kubelet is asked again: it may not have seen the latest
	// change of a shard yet.
	nudgeAgain = time.Second
	// loadsAtMost is how long a policy waits before it is reconciled in any case.
	loadsAtMost = 30 * time.Second
)

// loads are the policies that wait for pods of fleets.
type loads struct {
	mu sync.Mutex
	// waiting is what policies wait for, by fleet and policy. A fleet with an entry has a loop.
	waiting map[string]map[string]load
}

// load is a wait for a ruleset.
type load struct {
	hash  string
	until time.Time
}

// await has a policy wait for a ruleset. It reports true if the fleet had no loop.
func (l *loads) await(fleet, policy, hash string) (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting == nil {
		l.waiting = map[string]map[string]load{}
	}
	if l.waiting[fleet] == nil {
		l.waiting[fleet], first = map[string]load{}, true
	}
	if before, waits := l.waiting[fleet][policy]; !waits || before.hash != hash {
		l.waiting[fleet][policy] = load{hash, time.Now().Add(loadsAtMost)}
	}
	return first
}

// hashes are those that any policy waits for in a fleet. Without any, the fleet's loop ends.
func (l *loads) hashes(fleet string) (hashes []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, waits := range l.waiting[fleet] {
		hashes = append(hashes, waits.hash)
	}
	if len(hashes) == 0 {
		delete(l.waiting, fleet)
	}
	return hashes
}

// done returns the policies whose wait is over, and removes them.
func (l *loads) done(fleet string, loaded func(hash string) bool) (policies []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for policy, waits := range l.waiting[fleet] {
		if loaded(waits.hash) || time.Now().After(waits.until) {
			policies = append(policies, policy)
			delete(l.waiting[fleet], policy)
		}
	}
	return policies
}

// end ends all waits of a fleet.
func (l *loads) end(fleet string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, fleet)
}

// awaitRuleset has the pods of a fleet load a ruleset, and wakes the policy when all ready ones have.
// A ruleset that is not stored yet is awaited later: the fleet wakes the policy when it is.
func (r *ConversionPolicyReconciler) awaitRuleset(policy string, s step.AwaitRuleset) {
	if r.shardWrites.waits(s.Fleet, conversion.StoredName(names.Child(policy), s.Hash)) {
		return
	}
	if r.loads.await(s.Fleet, policy, s.Hash) {
		r.fleetBackground.run(s.Fleet, func(life lifetime) { r.load(life, s.Fleet) })
	}
}

// load is the loop of a fleet. It ends when no policy waits any more.
func (r *ConversionPolicyReconciler) load(ctx context.Context, fleet string) {
	nudged := map[types.UID]time.Time{}
	for {
		hashes := r.loads.hashes(fleet)
		if len(hashes) == 0 {
			return
		}
		served, err := r.askPods(ctx, fleet, hashes, nudged)
		if err != nil {
			ctrl.LoggerFrom(ctx).Info("The pods of a fleet could not be asked which rulesets they have", "reason", err.Error())
		}
		policies := r.loads.done(fleet, func(hash string) bool {
			return len(served) > 0 && !slices.ContainsFunc(served, func(pod podRulesets) bool { return !pod.answered(hash) })
		})
		for _, policy := range policies {
			r.background.wake(ctx, policy)
		}
		select {
		case <-ctx.Done():
			r.loads.end(fleet)
			return
		case <-time.After(loadPoll):
		}
	}
}

// answered reports that a pod has a ruleset, or cannot load it.
func (r podRulesets) answered(hash string) bool {
	_, has := slices.BinarySearch(r.hashes, hash)
	return has || r.failed[hash] != ""
}

// askPods asks the ready pods of a fleet which rulesets they have, and the kubelets of those that
// lack one to update mounted files. A pod that does not answer counts as one without rulesets.
func (r *ConversionPolicyReconciler) askPods(ctx context.Context, fleet string, hashes []string, nudged map[types.UID]time.Time) ([]podRulesets, error) {
	pods, _, err := r.listPods(ctx, names.Fleet(fleet))
	if err != nil {
		return nil, err
	}
	_, serving, _ := names.FleetSecrets(fleet)
	certificate, err := r.secret(ctx, r.Client, serving)
	if err != nil || certificate == nil {
		return nil, err
	}
	var all []podRulesets
	for _, pod := range pods {
		if !pod.Ready {
			continue
		}
		served := r.askPod(ctx, &pod, certificate)
		all = append(all, served)
		lacks := slices.ContainsFunc(hashes, func(hash string) bool { return !served.answered(hash) })
		if lacks && time.Since(nudged[pod.UID]) >= nudgeAgain {
			nudged[pod.UID] = time.Now()
			err := r.refreshPod(ctx, step.RefreshPod{Name: pod.Name, Annotation: names.RulesetAnnotation, Value: time.Now().UTC().Format(time.RFC3339Nano)})
			if err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// certificateProbe has a pod of a fleet show its certificate, and say which rulesets it has.
func (r *ConversionPolicyReconciler) certificateProbe(pod *observed.Pod, caBundle []byte) probe.Target {
	return probe.Target{Address: pod.Address(), CABundle: caBundle, ServerName: names.FleetServerName(pod.Fleet, r.Settings.Namespace)}
}

// askPod asks a pod of a fleet which rulesets it has.
func (r *ConversionPolicyReconciler) askPod(ctx context.Context, pod *observed.Pod, certificate *corev1.Secret) podRulesets {
	bounded, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	result, err := r.Prober.probe(bounded, r.certificateProbe(pod, certificate.Data[observed.CAKey]))
	if err != nil {
		return podRulesets{}
	}
	served := podRulesets{names.Fleet(pod.Fleet), result.RulesetHashes, result.RulesetFailures}
	slices.Sort(served.hashes)
	r.Prober.recordRulesets(pod.UID, served)
	return served
}
