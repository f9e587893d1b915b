// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/plan"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

const (
	// probeTimeout bounds the probe of one pod, all its version pairs included.
	probeTimeout = 5 * time.Second
	// probesAtOnce bounds the pods of a policy that are probed at the same time.
	probesAtOnce = 8
)

// Prober probes converter pods in the background, and remembers the pods that have
// proven themselves. One that has proven a ruleset under a certificate is re-probed
// only at the end of the proof's lifetime (reprobe.go).
type Prober struct {
	// Probe asks one pod.
	Probe func(context.Context, probe.Target) (probe.Result, error)
	// Own asks a converter that a user brings.
	Own func(context.Context, probe.OwnTarget) ([]string, error)

	// lifetime is that of a proof: after it, the pod is probed again.
	lifetime   time.Duration
	background *background

	mu     sync.Mutex
	proven map[types.UID]proven
	// heard is what pods told of failed conversions (live_failures.go).
	heard map[types.UID]heard
	// canary objects are those of rulesets, by their hashes.
	canaries map[string][]probe.Canary
	// answers are those of probes that have proven nothing that is remembered (probe_answers.go).
	answers map[probeKey]*podProbe
}

// proven is what a pod has proven, and the warning about it.
type proven struct {
	probeRequest
	warning string
	// since is when it was proven last.
	since time.Time
}

// fingerprint is all that a proof depends on.
type fingerprint [sha256.Size]byte

// NewProber returns a Prober that asks over the network, and again after the lifetime
// of a proof.
func NewProber(lifetime time.Duration) *Prober {
	return &Prober{Probe: probe.Pod, Own: probe.Own, lifetime: lifetime, proven: map[types.UID]proven{},
		canaries: map[string][]probe.Canary{}, answers: map[probeKey]*podProbe{}}
}

// observe fills in the proofs of the ready pods that have the current ruleset, as far
// as they are known, and has the others probed in the background. It returns for how
// long it is worth to wait for a pod that is probed for the first time.
func (p *Prober) observe(state *observed.Cluster, trust plan.Trust) (pending time.Duration) {
	p.keep(state.Policy.Name, state.Pods)
	if state.Policy.Spec.Converter.Declarative == nil {
		return p.observeOwn(state, trust)
	}
	if trust.RulesetHash == "" || state.Certificate == nil {
		return 0
	}
	target, err := p.target(state, trust)
	about := p.about(state)
	for i := range state.Pods {
		pod := &state.Pods[i]
		switch {
		case !pod.Ready || !slices.Contains(pod.Revisions, trust.RulesetHash):
		case err != nil:
			pod.Proof = &observed.Proof{Reason: string(probe.ReasonCanaryFailed), Message: err.Error()}
		default:
			pending = max(pending, p.proofOf(pod, trust, p.ofRules(*pod, target, about)))
		}
	}
	return pending
}

// target is what every converter pod of a policy must answer: the bytes that are,
// or will be, in caBundle, and the canary objects of its ruleset. While the rules are broken
// there are none, and pods show that they answer by the previous ruleset.
func (p *Prober) target(state *observed.Cluster, trust plan.Trust) (probe.Target, error) {
	target := probe.Target{
		CABundle:    trust.CABundle,
		ServerName:  names.ServerName(state.Policy.Name, state.Settings.Namespace),
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

// probeRequest is what a pod, or an endpoint, is asked by a client that trusts one caBundle.
type probeRequest struct {
	probeScope
	pod types.UID
	// proof is all that the answer depends on.
	proof fingerprint
	// send returns a warning about a pod that passes.
	send func(context.Context) (warning string, err error)
}

// probeScope is what the probe requests to a policy's pods have in common.
type probeScope struct {
	policy string
	// leaf is the certificate that pods are to serve.
	leaf []byte
	// lasts is the time after which a pod that has passed is probed again; zero where
	// every reconciliation has it probed.
	lasts time.Duration
}

// about makes proofs last, and less so during a migration: what is converted
// wrongly then is stored.
func (p *Prober) about(state *observed.Cluster) probeScope {
	lasts := p.lifetime
	if slices.ContainsFunc(state.Runs, func(run observed.Run) bool { return !observed.JobEnded(run.Job) }) {
		lasts /= migrationFactor
	}
	return probeScope{policy: state.Policy.Name, leaf: state.Certificate.Data[corev1.TLSCertKey], lasts: lasts}
}

// probeRequests are those to one pod, by caBundle.
type probeRequests func(caBundle []byte) probeRequest

// ofRules are those to a converter pod with rules, which passes without a warning.
func (p *Prober) ofRules(pod observed.Pod, target probe.Target, about probeScope) probeRequests {
	target.Address = net.JoinHostPort(pod.IP, strconv.Itoa(int(pod.Port)))
	return func(caBundle []byte) probeRequest {
		to := target
		to.CABundle = caBundle
		return probeRequest{probeScope: about, pod: pod.UID, proof: fingerprintOf(to, about.leaf), send: func(ctx context.Context) (string, error) {
			result, err := p.Probe(ctx, to)
			if err == nil {
				p.hear(about.policy, pod.UID, result.Failures, time.Now())
			}
			return "", err
		}}
	}
}

// proofOf fills in what is known of a pod, and has the rest found out in the background.
func (p *Prober) proofOf(pod *observed.Pod, trust plan.Trust, by probeRequests) (pending time.Duration) {
	current, next := by(trust.CABundle), by(trust.Successor)
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
	pod.Proof, pending = p.ask(current.policy, key, func(life lifetime) *observed.Proof {
		if !life.probes.enter(life) {
			return nil
		}
		defer life.probes.leave()
		return p.verify(life, name, trust, by)
	})
	return pending
}

// verify asks by what caBundle is going to be next, where that is something else,
// and by what it is now where the pod is not that far.
func (p *Prober) verify(ctx context.Context, name string, trust plan.Trust, by probeRequests) *observed.Proof {
	if len(trust.Successor) > 0 {
		proof := p.take(ctx, by(trust.Successor))
		if proof == nil || proof.Reason != string(probe.ReasonTLSVerificationFailed) {
			if proof != nil {
				proof.Successor = proof.Reason == "" || proof.Reason == string(probe.ReasonCanaryFailed)
			}
			return proof
		}
	}
	proof := p.take(ctx, by(trust.CABundle))
	if proof != nil && proof.Reason != "" {
		ctrl.LoggerFrom(ctx).Info("Converter failed its probe", "endpoint", name, "reason", proof.Message)
	}
	return proof
}

// take sends a request, unless the same was proven before and lasts. A probe that was
// cancelled says nothing.
func (p *Prober) take(ctx context.Context, request probeRequest) *observed.Proof {
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

// canariesOf remembers what newCanaries made: to compile a ruleset's expressions
// takes milliseconds, and policies are reconciled again and again.
func (p *Prober) canariesOf(rules *conversion.Ruleset) ([]probe.Canary, error) {
	const most = 1000
	hash := rules.Hash()
	p.mu.Lock()
	canaries, known := p.canaries[hash]
	p.mu.Unlock()
	if known {
		return canaries, nil
	}
	canaries, err := newCanaries(rules)
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

// newCanaries makes one for each version pair, with the operator's own answer,
// that the pods' are compared with.
func newCanaries(rules *conversion.Ruleset) ([]probe.Canary, error) {
	converter, err := conversion.NewConverter(rules)
	if err != nil {
		return nil, err
	}
	var canaries []probe.Canary
	for _, pair := range rules.Pairs() {
		object := converter.Canary(pair[0], pair[1])
		expected, err := converter.Convert(nil, object, pair[1])
		if err != nil {
			return nil, fmt.Errorf("convert a canary from %s to %s: %w", pair[0], pair[1], err)
		}
		canaries = append(canaries, probe.Canary{
			DesiredAPIVersion: rules.Group + "/" + pair[1], Object: object, Expected: expected})
	}
	return canaries, nil
}

func fingerprintOf(target probe.Target, leaf []byte) fingerprint {
	return sha256.Sum256(fmt.Appendf(nil, "%q", []string{
		target.Address, target.ServerName, target.RulesetHash, string(target.CABundle), string(leaf)}))
}

// reasonOf is the condition reason of a failed probe.
func reasonOf(err error) string {
	if failure, ok := errors.AsType[*probe.Error](err); ok {
		return string(failure.Reason)
	}
	return string(probe.ReasonUnexpectedAnswer)
}
