// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/url"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

// observeOwn adds the proofs of converters that users run. Proofs of pods of an image are cached,
// because an image does not change. Users may change other converters at any time, so every
// reconciliation probes those.
func (p *Prober) observeOwn(state *observed.Cluster, trust plan.Trust) (pending time.Duration) {
	if state.CRD == nil || state.Certificate == nil {
		return 0
	}
	target, pods := ownTarget(state), state.Pods
	image := state.Policy.Spec.Converter.Image != nil
	if !image {
		pods = state.External.Endpoints
	}
	scope := p.scopeOf(state)
	if !image {
		scope.lasts = 0
	}
	for i := range pods {
		pod := &pods[i]
		if pod.Ready && (!image || pod.Image) {
			pending = max(pending, p.proofOf(pod, trust, p.ownRequests(*pod, target, scope)))
		}
	}
	return pending
}

// ownTarget returns the probe of a converter that a user runs.
func ownTarget(state *observed.Cluster) probe.OwnTarget {
	converter := state.Policy.Spec.Converter.WithDefaults()
	target := probe.OwnTarget{
		ServerName: observed.ExternalServerName(*converter),
		Canaries:   ownCanaries(state.CRD),
	}
	switch {
	case converter.Image != nil:
		target.ServerName = names.ServerName(state.Policy.Name, state.Settings.Namespace)
		target.Path = string(converter.Image.Path)
	case converter.Service != nil:
		target.Path = string(converter.Service.Path)
	case converter.URL != nil:
		if parsed, err := url.Parse(string(converter.URL.URL)); err == nil {
			target.Path = parsed.EscapedPath()
		}
	}
	if versions := converter.ConversionReviewVersions; len(versions) > 0 {
		target.ReviewVersion = string(versions[0]) // API servers support both, and use the first
	}
	return target
}

// ownCanaries returns canary objects made from the schemas of the versions in use.
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

// ownRequests returns the probe requests to a converter that a user runs.
func (p *Prober) ownRequests(pod observed.Pod, target probe.OwnTarget, scope probeScope) probeRequests {
	target.Address = pod.Address()
	return func(caBundle []byte) probeRequest {
		to := target
		to.CABundle = caBundle
		return probeRequest{probeScope: scope, pod: pod.UID, proof: ownFingerprint(to, scope.leaf), send: func(ctx context.Context) (string, error) {
			warnings, err := p.own(ctx, to)
			return strings.Join(warnings, "; "), err
		}}
	}
}

func ownFingerprint(target probe.OwnTarget, leaf []byte) fingerprint {
	return sha256.Sum256(fmt.Appendf(nil, "%q", []any{
		target.Address, target.ServerName, target.Path, target.ReviewVersion, target.CABundle, leaf, target.Canaries}))
}
