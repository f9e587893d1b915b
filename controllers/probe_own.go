// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
	"github.com/conversion-operator/conversion-operator/internal/plan"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

// proveOwn fills in the proofs of converters that users bring. Pods of an image
// are remembered, as they do not change; whoever runs another converter may change
// it at any time, so it is asked each time.
func (r *ConversionPolicyReconciler) proveOwn(ctx context.Context, observed *plan.Observed, trust plan.Trust) {
	if observed.CRD == nil || observed.Certificate == nil {
		return
	}
	target, pods := ownTarget(observed, trust.CABundle), observed.Pods
	image := observed.Policy.Spec.Converter.Image != nil
	if !image {
		pods = observed.External.Endpoints
	}
	leaf := observed.Certificate.Data[corev1.TLSCertKey]
	var group errgroup.Group
	group.SetLimit(probesAtOnce)
	for i := range pods {
		pod := &pods[i]
		if !pod.Ready || image && !pod.Image {
			continue
		}
		asks, to := *pod, target
		to.Address = net.JoinHostPort(pod.IP, strconv.Itoa(int(pod.Port)))
		asked := question{pod.UID, ownFingerprint(to, slices.Concat(leaf, trust.Successor))}
		group.Go(func() error {
			pod.Proof = r.Prover.questions.ask(ctx, asked, func() *plan.Proof {
				return r.Prover.verifyOwn(ctx, &asks, to, trust.Successor, leaf, image)
			})
			return nil
		})
	}
	_ = group.Wait() // no probe returns an error: it becomes the pod's proof
}

// ownTarget is what a converter that a user brings must answer.
func ownTarget(observed *plan.Observed, caBundle []byte) probe.OwnTarget {
	converter := observed.Policy.Spec.Converter
	target := probe.OwnTarget{
		CABundle:   caBundle,
		ServerName: plan.ExternalServerName(converter),
		Canaries:   ownCanaries(observed.CRD),
	}
	var versions []v1alpha1.ReviewVersion
	switch {
	case converter.Image != nil:
		target.ServerName = plan.ServerName(observed.Policy.Name, observed.Settings.Namespace)
		target.Path, versions = string(converter.Image.Path), converter.Image.ConversionReviewVersions
	case converter.Service != nil:
		target.Path, versions = string(converter.Service.Path), converter.Service.ConversionReviewVersions
	case converter.URL != nil:
		if parsed, err := url.Parse(converter.URL.URL); err == nil {
			target.Path = parsed.EscapedPath()
		}
		versions = converter.URL.ConversionReviewVersions
	}
	if len(versions) > 0 {
		target.ReviewVersion = string(versions[0]) // API servers know both, and take the first
	}
	return target
}

// ownCanaries are made from the schemas of the versions that are in use.
func ownCanaries(crd *apiextensionsv1.CustomResourceDefinition) []probe.OwnCanary {
	var canaries []probe.OwnCanary
	versions := crds.VersionsInUse(crd)
	for _, from := range versions {
		for _, to := range versions {
			if from != to {
				canaries = append(canaries, probe.OwnCanary{
					From: crd.Spec.Group + "/" + from, To: crd.Spec.Group + "/" + to,
					Objects: [][]byte{crds.BareCanary(crd, from), crds.FilledCanary(crd, from)}})
			}
		}
	}
	return canaries
}

// verifyOwn asks by what caBundle is going to be next, where that is something else,
// and by what it is now where the converter is not that far.
func (p *Prover) verifyOwn(ctx context.Context, pod *plan.Pod, target probe.OwnTarget, successor, leaf []byte, remember bool) *plan.Proof {
	if len(successor) > 0 {
		next := target
		next.CABundle = successor
		proof := p.askOwn(ctx, pod, next, leaf, remember)
		if proof == nil || proof.Reason != string(probe.ReasonTLSVerificationFailed) {
			if proof != nil {
				proof.Successor = proof.Reason == "" || proof.Reason == string(probe.ReasonCanaryFailed)
			}
			return proof
		}
	}
	proof := p.askOwn(ctx, pod, target, leaf, remember)
	if proof != nil && proof.Reason != "" {
		ctrl.LoggerFrom(ctx).Info("Converter failed its probe", "endpoint", pod.Name, "reason", proof.Message)
	}
	return proof
}

func (p *Prover) askOwn(ctx context.Context, pod *plan.Pod, target probe.OwnTarget, leaf []byte, remember bool) *plan.Proof {
	wanted := ownFingerprint(target, leaf)
	if remember {
		if warning, known := p.recall(pod.UID, wanted); known {
			return &plan.Proof{Warning: warning}
		}
	}
	bounded, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	warnings, err := p.Own(bounded, target)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return &plan.Proof{Reason: reasonOf(err), Message: err.Error()}
	}
	warning := strings.Join(warnings, "; ")
	if remember {
		p.remember(pod.UID, wanted, warning)
	}
	return &plan.Proof{Warning: warning}
}

func ownFingerprint(target probe.OwnTarget, leaf []byte) fingerprint {
	return sha256.Sum256(fmt.Appendf(nil, "%q", []any{
		target.Address, target.ServerName, target.Path, target.ReviewVersion, target.CABundle, leaf, target.Canaries}))
}
