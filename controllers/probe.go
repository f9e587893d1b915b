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
// pod that has proven a plan under a certificate has no need to do it again.
type Prover struct {
	// Probe asks one pod.
	Probe func(context.Context, probe.Target) (probe.Result, error)
	// Own asks a converter that a user brings.
	Own func(context.Context, probe.OwnTarget) ([]string, error)

	mu     sync.Mutex
	proven map[types.UID]proven
	// canaries are those of plans, by their hashes.
	canaries map[string][]probe.Canary

	questions questions
}

// proven is what a pod has proven, and what is to be said of it.
type proven struct {
	fingerprint
	warning string
}

// fingerprint is all that a proof depends on.
type fingerprint [sha256.Size]byte

// NewProver returns a Prover that asks over the network.
func NewProver() *Prover {
	return &Prover{Probe: probe.Pod, Own: probe.Own, proven: map[types.UID]proven{}, canaries: map[string][]probe.Canary{}}
}

// prove fills in the proofs of the ready pods that have the current plan.
func (r *ConversionPolicyReconciler) prove(ctx context.Context, observed *plan.Observed, trust plan.Trust) {
	if observed.Policy.Spec.Converter.Declarative == nil {
		r.proveOwn(ctx, observed, trust)
		return
	}
	if trust.PlanHash == "" || observed.Certificate == nil {
		return
	}
	target, err := r.Prover.target(observed, trust)
	leaf, current := observed.Certificate.Data[corev1.TLSCertKey], trust.PlanHash
	var group errgroup.Group
	group.SetLimit(probesAtOnce)
	for i := range observed.Pods {
		pod := &observed.Pods[i]
		switch {
		case !pod.Ready || !slices.Contains(pod.Plans, current):
		case err != nil:
			pod.Proof = &plan.Proof{Reason: string(probe.ReasonCanaryFailed), Message: err.Error()}
		default:
			asks, asked := *pod, question{pod.UID, fingerprintOf(target, slices.Concat(leaf, trust.Successor))}
			group.Go(func() error {
				pod.Proof = r.Prover.questions.ask(ctx, asked, func() *plan.Proof {
					return r.Prover.verify(ctx, &asks, target, trust.Successor, leaf)
				})
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
		CABundle:   trust.CABundle,
		ServerName: plan.ServerName(observed.Policy.Name, observed.Settings.Namespace),
		PlanHash:   trust.PlanHash,
		APIVersion: observed.CRD.Spec.Group + "/" + observed.CRD.Spec.Versions[0].Name,
	}
	if observed.Rules.Plan == nil {
		return target, nil
	}
	var err error
	target.Canaries, err = p.canariesOf(observed.Rules.Plan)
	return target, err
}

// verify asks a pod by what caBundle is going to be next, where that is something
// else, and by what it is now where the pod is not that far.
func (p *Prover) verify(ctx context.Context, pod *plan.Pod, target probe.Target, successor, leaf []byte) *plan.Proof {
	if len(successor) > 0 {
		next := target
		next.CABundle = successor
		proof := p.ask(ctx, pod, next, leaf)
		if proof == nil || proof.Reason != string(probe.ReasonTLSVerificationFailed) {
			if proof != nil {
				proof.Successor = proof.Reason == "" || proof.Reason == string(probe.ReasonCanaryFailed)
			}
			return proof
		}
	}
	proof := p.ask(ctx, pod, target, leaf)
	if proof != nil && proof.Reason != "" {
		ctrl.LoggerFrom(ctx).Info("Converter pod failed its probe", "pod", pod.Name, "reason", proof.Message)
	}
	return proof
}

// canariesOf remembers what newCanaries made: to compile a plan's expressions takes
// milliseconds, and policies are looked at again and again.
func (p *Prover) canariesOf(rules *conversion.Plan) ([]probe.Canary, error) {
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
func newCanaries(rules *conversion.Plan) ([]probe.Canary, error) {
	converter, err := conversion.NewConverter(rules)
	if err != nil {
		return nil, err
	}
	var canaries []probe.Canary
	for _, pair := range rules.Pairs() {
		object := converter.Canary(pair[0])
		expected, err := converter.Convert(nil, object, pair[1])
		if err != nil {
			return nil, fmt.Errorf("convert a canary from %s to %s: %w", pair[0], pair[1], err)
		}
		canaries = append(canaries, probe.Canary{
			DesiredAPIVersion: rules.Group + "/" + pair[1], Object: object, Expected: expected})
	}
	return canaries, nil
}

// ask probes one pod, unless it has proven the same before under the same leaf.
// A probe that was cut short by the manager's own end says nothing of the pod.
func (p *Prover) ask(ctx context.Context, pod *plan.Pod, target probe.Target, leaf []byte) *plan.Proof {
	target.Address = net.JoinHostPort(pod.IP, strconv.Itoa(int(pod.Port)))
	proof := fingerprintOf(target, leaf)
	if _, known := p.recall(pod.UID, proof); known {
		return &plan.Proof{}
	}
	bounded, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if _, err := p.Probe(bounded, target); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return &plan.Proof{Reason: reasonOf(err), Message: err.Error()}
	}
	p.remember(pod.UID, proof, "")
	return &plan.Proof{}
}

// recall reports whether a pod has proven the same before, and what is to be said of it.
func (p *Prover) recall(pod types.UID, proof fingerprint) (warning string, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, known := p.proven[pod]
	return last.warning, known && last.fingerprint == proof
}

// remember forgets everything once it knows too much: pods come and go, and to
// ask one of them again costs little.
func (p *Prover) remember(pod types.UID, proof fingerprint, warning string) {
	const most = 10_000
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.proven) >= most {
		clear(p.proven)
	}
	p.proven[pod] = proven{proof, warning}
}

func fingerprintOf(target probe.Target, leaf []byte) fingerprint {
	return sha256.Sum256(fmt.Appendf(nil, "%q", []string{
		target.Address, target.ServerName, target.PlanHash, string(target.CABundle), string(leaf)}))
}

// reasonOf is the condition reason of a failed probe.
func reasonOf(err error) string {
	if failure, ok := errors.AsType[*probe.Error](err); ok {
		return string(failure.Reason)
	}
	return string(probe.ReasonUnexpectedAnswer)
}
