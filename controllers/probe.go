// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

const (
	// probeTimeout bounds the probe of one pod, including all version pairs.
	probeTimeout = 5 * time.Second
	// probesAtOnce bounds how many pods of a policy are probed at the same time.
	probesAtOnce = 8
)

// Prober probes converter pods in the background, and caches which pods passed. A pod that proved
// a ruleset under a certificate is probed again at the end of the lifetime of that proof
// (reprobe.go).
type Prober struct {
	// probe sends a probe to one pod, and own to a converter that a user runs.
	probe func(context.Context, probe.Target) (probe.Result, error)
	own   func(context.Context, probe.OwnTarget) ([]string, error)

	// lifetime is the time after which a pod with a proof is probed again.
	lifetime   time.Duration
	background *background

	mu     sync.Mutex
	proven map[podKey]proven
	// rulesets are the hashes of the rulesets that pods serve, as they reported last.
	rulesets map[types.UID]podRulesets
	// reports are what pods reported about failed conversions (live_failures.go).
	reports map[podKey]podReport
	// Canary objects of rulesets, by ruleset hash.
	canaries map[string][]probe.Canary
	// answers are the latest probes of pods without a cached proof (probe_answers.go).
	answers map[probeKey]*podProbe
}

// proven is the proof of a pod, with its warning.
type proven struct {
	probeRequest
	warning string
	// since is the time of the latest successful probe.
	since time.Time
}

// podRulesets are the rulesets that a pod serves. Those of a pod of a fleet are recorded once for all
// policies.
type podRulesets struct {
	// policy that the pod is for alone, or the label of the fleet.
	policy string
	hashes []string
	// failed is why it cannot serve others, by hash.
	failed map[string]string
}

// podKey identifies a pod as one policy sees it: a pod of a fleet has proofs for many policies.
type podKey struct {
	policy string
	pod    types.UID
}

// revisions are those of a policy's rulesets that a pod of a fleet serves, and why others cannot be
// served. They are nil if the pod was not asked yet.
func (r podRulesets) revisions(fleet string, known []names.Revision) (served []string, failed map[string]string) {
	if r.hashes == nil {
		return nil, nil
	}
	served = []string{}
	for _, revision := range known {
		if revision.Fleet != fleet || slices.Contains(served, revision.String()) {
			continue
		}
		if _, found := slices.BinarySearch(r.hashes, revision.Hash); found {
			served = append(served, revision.String())
		} else if reason := r.failed[revision.Hash]; reason != "" {
			failed = map[string]string{revision.String(): reason}
		}
	}
	return served, failed
}

// fingerprint is a hash of everything that a proof depends on.
type fingerprint [sha256.Size]byte

// NewProber returns a Prober that connects to pods, and renews each proof after its lifetime.
func NewProber(lifetime time.Duration) *Prober {
	return &Prober{probe: probe.Pod, own: probe.Own, lifetime: lifetime, proven: map[podKey]proven{},
		canaries: map[string][]probe.Canary{}, answers: map[probeKey]*podProbe{}}
}

// observe adds the known proofs of ready pods with the current ruleset, and probes the other pods
// in the background. While a pod is probed for the first time, pending is the time to wait for its
// answer.
func (p *Prober) observe(state *observed.Cluster, trust plan.Trust) (pending time.Duration) {
	p.retainPods(state.Policy.Name, state.Pods)
	if state.Policy.Spec.Converter.Declarative == nil {
		return p.observeOwn(state, trust)
	}
	if trust.RulesetHash == "" || state.Certificate == nil {
		return 0
	}
	target, err := p.target(state, trust)
	scope, fleet := p.scopeOf(state), observed.FleetOf(state.Policy)
	for i := range state.Pods {
		pod := &state.Pods[i]
		switch {
		case !pod.Ready || pod.Image || pod.Fleet != fleet || p.lacks(*pod, trust.RulesetHash):
		case err != nil:
			pod.Proof = &observed.Proof{Reason: string(probe.ReasonCanaryFailed), Message: err.Error()}
		default:
			pending = max(pending, p.proofOf(pod, trust, p.rulesetRequests(*pod, target, scope)))
		}
	}
	return pending
}

// fillRulesets adds which rulesets pods serve, of those that the policy has.
func (p *Prober) fillRulesets(state *observed.Cluster) {
	var known []names.Revision
	for _, stored := range state.Revisions {
		known = append(known, names.RevisionOf(stored.Hash))
	}
	for _, active := range state.Policy.Status.ActiveRevisions {
		known = append(known, names.RevisionOf(active.Revision))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range state.Pods {
		switch pod := &state.Pods[i]; {
		case pod.Image:
		case pod.Fleet == "":
			pod.Revisions, pod.FailedRulesets = p.rulesets[pod.UID].hashes, p.rulesets[pod.UID].failed
		default:
			pod.Revisions, pod.FailedRulesets = p.rulesets[pod.UID].revisions(pod.Fleet, known)
		}
	}
}

// recordRulesets records which rulesets a pod serves.
func (p *Prober) recordRulesets(pod types.UID, rulesets podRulesets) {
	slices.Sort(rulesets.hashes)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rulesets == nil {
		p.rulesets = map[types.UID]podRulesets{}
	}
	p.rulesets[pod] = rulesets
}

// lacks reports that a pod of a fleet is known to lack a ruleset.
func (p *Prober) lacks(pod observed.Pod, hash string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.rulesets[pod.UID].hashes
	_, found := slices.BinarySearch(known, hash)
	return pod.Fleet != "" && known != nil && !found
}

// target returns what every converter pod of a policy has to answer to: the current or next
// caBundle, and the canary objects of its ruleset. While the rules are invalid there are no canary
// objects; then the pods only show that they serve the previous ruleset.
func (p *Prober) target(state *observed.Cluster, trust plan.Trust) (probe.Target, error) {
	target := probe.Target{
		CABundle:    trust.CABundle,
		ServerName:  state.ServerName(),
		CRD:         state.Policy.Name,
		RulesetHash: trust.RulesetHash,

		FailuresToken: failuresToken(state.Certificate),
		APIVersion:    state.CRD.Spec.Group + "/" + state.CRD.Spec.Versions[0].Name,
	}
	if state.Rules.Ruleset == nil {
		return target, nil
	}
	var err error
	target.Canaries, err = p.canariesOf(state.Rules.Ruleset)
	return target, err
}

// probeRequest is a probe of a pod or an endpoint with one caBundle.
type probeRequest struct {
	probeScope
	pod types.UID
	// proof identifies everything that the answer depends on.
	proof fingerprint
	// send sends the probe. It returns a warning about a pod that passes.
	send func(context.Context) (warning string, err error)
}

// probeScope is what the probe requests to all pods of a policy have in common.
type probeScope struct {
	policy string
	// leaf is the serving certificate of the pods.
	leaf []byte
	// lasts is the time after which a pod with a proof is probed again. If it is zero, every
	// reconciliation probes the pod.
	lasts time.Duration
}

// scopeOf returns the scope of the probes of a policy. During a migration proofs last for a
// shorter time, because wrong conversions are stored then.
func (p *Prober) scopeOf(state *observed.Cluster) probeScope {
	lasts := p.lifetime
	if slices.ContainsFunc(state.Runs, func(run observed.Run) bool { return !observed.JobEnded(run.Job) }) {
		lasts /= migrationFactor
	}
	return probeScope{policy: state.Policy.Name, leaf: state.Certificate.Data[corev1.TLSCertKey], lasts: lasts}
}

// probeRequests returns the probe request to one pod with a caBundle.
type probeRequests func(caBundle []byte) probeRequest

// rulesetRequests returns the requests to a converter pod of the operator. They have no warnings.
func (p *Prober) rulesetRequests(pod observed.Pod, target probe.Target, scope probeScope) probeRequests {
	target.Address = pod.Address()
	return func(caBundle []byte) probeRequest {
		to := target
		to.CABundle = caBundle
		return probeRequest{probeScope: scope, pod: pod.UID, proof: fingerprintOf(to, scope.leaf), send: func(ctx context.Context) (string, error) {
			result, err := p.probe(ctx, to)
			if result.RulesetHashes != nil {
				of := scope.policy
				if pod.Fleet != "" {
					of = names.Fleet(pod.Fleet)
				}
				p.recordRulesets(pod.UID, podRulesets{of, result.RulesetHashes, result.RulesetFailures})
			}
			if err == nil {
				p.recordReport(scope.policy, pod.UID, result.Failures, time.Now())
			}
			return "", err
		}}
	}
}

// proofOf adds the known proof of a pod, or probes it in the background.
func (p *Prober) proofOf(pod *observed.Pod, trust plan.Trust, requestFor probeRequests) (pending time.Duration) {
	current, next := requestFor(trust.CABundle), requestFor(trust.Successor)
	wanted := current
	if len(trust.Successor) > 0 {
		wanted = next
	}
	if warning, known := p.recall(wanted); known {
		pod.Proof = &observed.Proof{Warning: warning, Successor: len(trust.Successor) > 0}
		return 0
	}
	key := probeKey{current.pod, sha256.Sum256(slices.Concat(current.proof[:], next.proof[:]))}
	name := pod.Name
	pod.Proof, pending = p.probeInBackground(current.policy, key, func(life lifetime) *observed.Proof {
		if !life.probes.acquire(life) {
			return nil
		}
		defer life.probes.release()
		return p.verify(life, name, trust, requestFor)
	})
	return pending
}

// verify probes a pod with the next caBundle, if there is one. If the pod does not serve a
// certificate of the next authority yet, verify probes it with the current caBundle.
func (p *Prober) verify(ctx context.Context, name string, trust plan.Trust, requestFor probeRequests) *observed.Proof {
	if len(trust.Successor) > 0 {
		proof := p.prove(ctx, requestFor(trust.Successor))
		if proof == nil || proof.Reason != string(probe.ReasonTLSVerificationFailed) {
			if proof != nil {
				proof.Successor = proof.Reason == "" || proof.Reason == string(probe.ReasonCanaryFailed)
			}
			return proof
		}
	}
	proof := p.prove(ctx, requestFor(trust.CABundle))
	if proof != nil && proof.Reason != "" && proof.Reason != string(probe.ReasonWrongRuleset) {
		ctrl.LoggerFrom(ctx).Info("Converter failed its probe", "endpoint", name, "reason", proof.Message)
	}
	return proof
}

// prove sends a request, unless its proof is cached. It returns nil if the probe was cancelled.
func (p *Prober) prove(ctx context.Context, request probeRequest) *observed.Proof {
	if warning, known := p.recall(request); known {
		return &observed.Proof{Warning: warning}
	}
	bounded, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	warning, err := request.send(bounded)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return &observed.Proof{Reason: reasonOf(err), Message: err.Error()}
	}
	p.remember(request, warning)
	return &observed.Proof{Warning: warning}
}

// canariesOf caches the results of probe.Canaries: compiling the expressions of a ruleset takes
// milliseconds, and reconciliations are frequent.
func (p *Prober) canariesOf(rules *conversion.Ruleset) ([]probe.Canary, error) {
	const most = 1000
	hash := rules.Hash()
	p.mu.Lock()
	canaries, known := p.canaries[hash]
	p.mu.Unlock()
	if known {
		return canaries, nil
	}
	canaries, err := probe.Canaries(rules)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.canaries) >= most {
		clear(p.canaries)
	}
	p.canaries[hash] = canaries
	return canaries, nil
}

func fingerprintOf(target probe.Target, leaf []byte) fingerprint {
	return sha256.Sum256(fmt.Appendf(nil, "%q", []string{
		target.Address, target.ServerName, target.RulesetHash, string(target.CABundle), string(leaf)}))
}

// reasonOf returns the condition reason of a failed probe.
func reasonOf(err error) string {
	if failure, ok := errors.AsType[*probe.Error](err); ok {
		return string(failure.Reason)
	}
	return string(probe.ReasonUnexpectedAnswer)
}
