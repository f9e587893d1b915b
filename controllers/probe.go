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

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/plan"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

const (
	// probeTimeout bounds the probe of one pod, all its version pairs included.
	probeTimeout = 5 * time.Second
	// probesAtOnce bounds the pods that are probed at the same time.
	probesAtOnce = 8
)

// Prover asks converter pods for proof, and remembers the pods that gave it. A
// pod that has proven a plan under a certificate is asked again in the background
// only (patrol.go).
type Prover struct {
	// Probe asks one pod.
	Probe func(context.Context, probe.Target) (probe.Result, error)
	// Own asks a converter that a user brings.
	Own func(context.Context, probe.OwnTarget) ([]string, error)

	// lifetime is that of a proof: after it, the pod is asked again.
	lifetime time.Duration

	mu     sync.Mutex
	proven map[types.UID]proven
	// heard is what pods told of failed conversions (live_failures.go).
	heard map[types.UID]heard
	// canaries are those of plans, by their hashes.
	canaries map[string][]probe.Canary

	questions questions
	// doubted are the policies of pods that have failed when they were asked again.
	doubted chan event.GenericEvent
}

// proven is what a pod has proven, and what is to be said of it.
type proven struct {
	exam
	warning string
	// since is when it was proven last.
	since time.Time
}

// fingerprint is all that a proof depends on.
type fingerprint [sha256.Size]byte

// NewProver returns a Prover that asks over the network, and again after the lifetime
// of a proof.
func NewProver(lifetime time.Duration) *Prover {
	return &Prover{Probe: probe.Pod, Own: probe.Own, lifetime: lifetime, proven: map[types.UID]proven{},
		canaries: map[string][]probe.Canary{}, doubted: make(chan event.GenericEvent)}
}

// prove fills in the proofs of the ready pods that have the current plan.
func (r *ConversionPolicyReconciler) prove(ctx context.Context, observed *plan.Observed, trust plan.Trust) {
	r.Prover.keep(observed.Policy.Name, observed.Pods)
	if observed.Policy.Spec.Converter.Declarative == nil {
		r.proveOwn(ctx, observed, trust)
		return
	}
	if trust.PlanHash == "" || observed.Certificate == nil {
		return
	}
	target, err := r.Prover.target(observed, trust)
	about := r.Prover.about(observed)
	current := trust.PlanHash
	var group errgroup.Group
	group.SetLimit(probesAtOnce)
	for i := range observed.Pods {
		pod := &observed.Pods[i]
		switch {
		case !pod.Ready || !slices.Contains(pod.Plans, current):
		case err != nil:
			pod.Proof = &plan.Proof{Reason: string(probe.ReasonCanaryFailed), Message: err.Error()}
		default:
			by := r.Prover.ofPlan(*pod, target, about)
			group.Go(func() error {
				pod.Proof = r.Prover.examine(ctx, pod.Name, trust, by)
				return nil
			})
		}
	}
	_ = group.Wait() // no probe returns an error: it becomes the pod's proof
}

// target is what every converter pod of a policy must answer: the bytes that are,
// or will be, in caBundle, and the canaries of its plan. While the rules are broken
// there are none, and pods show that they answer by the rules of before.
func (p *Prover) target(observed *plan.Observed, trust plan.Trust) (probe.Target, error) {
	target := probe.Target{
		CABundle:    trust.CABundle,
		ServerName:  plan.ServerName(observed.Policy.Name, observed.Settings.Namespace),
		RulesetHash: trust.PlanHash,

		FailuresToken: failuresToken(observed.Certificate),
		APIVersion:    observed.CRD.Spec.Group + "/" + observed.CRD.Spec.Versions[0].Name,
	}
	if observed.Rules.Ruleset == nil {
		return target, nil
	}
	var err error
	target.Canaries, err = p.canariesOf(observed.Rules.Ruleset)
	return target, err
}

// exam is what a pod, or an endpoint, is asked by who trusts one caBundle.
type exam struct {
	topic
	pod types.UID
	// proof is all that the answer depends on.
	proof fingerprint
	// ask returns what is to be said of who passes.
	ask func(context.Context) (warning string, err error)
}

// topic is what the exams of a policy's pods have in common.
type topic struct {
	policy string
	// leaf is the certificate that pods are to serve.
	leaf []byte
	// lasts is the time after which who has passed is asked again; zero where that is
	// each time.
	lasts time.Duration
}

// about makes proofs last, and less so during a migration: what is converted
// wrongly then is stored.
func (p *Prover) about(observed *plan.Observed) topic {
	lasts := p.lifetime
	if slices.ContainsFunc(observed.Runs, func(run plan.Run) bool { return !plan.JobEnded(run.Job) }) {
		lasts /= watchful
	}
	return topic{policy: observed.Policy.Name, leaf: observed.Certificate.Data[corev1.TLSCertKey], lasts: lasts}
}

// exams are those of one pod, by caBundle.
type exams func(caBundle []byte) exam

// ofPlan are those of a converter pod with rules, which passes without more words.
func (p *Prover) ofPlan(pod plan.Pod, target probe.Target, about topic) exams {
	target.Address = net.JoinHostPort(pod.IP, strconv.Itoa(int(pod.Port)))
	return func(caBundle []byte) exam {
		to := target
		to.CABundle = caBundle
		return exam{topic: about, pod: pod.UID, proof: fingerprintOf(to, about.leaf), ask: func(ctx context.Context) (string, error) {
			result, err := p.Probe(ctx, to)
			if err == nil {
				p.hear(about.policy, pod.UID, result.Failures, time.Now())
			}
			return "", err
		}}
	}
}

// examine waits for a moment for what verify finds out.
func (p *Prover) examine(ctx context.Context, name string, trust plan.Trust, by exams) *plan.Proof {
	current, next := by(trust.CABundle), by(trust.Successor)
	asked := question{current.pod, sha256.Sum256(slices.Concat(current.proof[:], next.proof[:]))}
	return p.questions.ask(ctx, asked, func() *plan.Proof { return p.verify(ctx, name, trust, by) })
}

// verify asks by what caBundle is going to be next, where that is something else,
// and by what it is now where the pod is not that far.
func (p *Prover) verify(ctx context.Context, name string, trust plan.Trust, by exams) *plan.Proof {
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

// take asks, unless the same was proven before and lasts. A probe that was cut
// short by the manager's own end says nothing.
func (p *Prover) take(ctx context.Context, e exam) *plan.Proof {
	if warning, known := p.recall(e); known {
		return &plan.Proof{Warning: warning}
	}
	bounded, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	warning, err := e.ask(bounded)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return &plan.Proof{Reason: reasonOf(err), Message: err.Error()}
	}
	p.remember(e, warning)
	return &plan.Proof{Warning: warning}
}

// canariesOf remembers what newCanaries made: to compile a plan's expressions takes
// milliseconds, and policies are looked at again and again.
func (p *Prover) canariesOf(rules *conversion.Ruleset) ([]probe.Canary, error) {
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
