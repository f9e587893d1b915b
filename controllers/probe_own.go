// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/crds"
	"github.com/conversion-operator/conversion-operator/internal/plan"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

// observeOwn fills in the proofs of converters that users bring. Pods of an image
// are remembered, as they do not change; the client that runs another converter may change
// it at any time, so every reconciliation has it probed.
func (p *Prober) observeOwn(state *observed.Cluster, trust plan.Trust) (pending time.Duration) {
	if state.CRD == nil || state.Certificate == nil {
		return 0
	}
	target, pods := ownTarget(state), state.Pods
	image := state.Policy.Spec.Converter.Image != nil
	if !image {
		pods = state.External.Endpoints
	}
	about := p.about(state)
	if !image {
		about.lasts = 0
	}
	for i := range pods {
		pod := &pods[i]
		if pod.Ready && (!image || pod.Image) {
			pending = max(pending, p.proofOf(pod, trust, p.ofOwn(*pod, target, about)))
		}
	}
	return pending
}

// ownTarget is what a converter that a user brings must answer.
func ownTarget(state *observed.Cluster) probe.OwnTarget {
	converter := state.Policy.Spec.Converter
	target := probe.OwnTarget{
		ServerName: observed.ExternalServerName(converter),
		Canaries:   ownCanaries(state.CRD),
	}
	var versions []v1alpha1.ReviewVersion
	switch {
	case converter.Image != nil:
		target.ServerName = names.ServerName(state.Policy.Name, state.Settings.Namespace)
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

// ofOwn are the probe requests to a converter that a user brings.
func (p *Prober) ofOwn(pod observed.Pod, target probe.OwnTarget, about probeScope) probeRequests {
	target.Address = net.JoinHostPort(pod.IP, strconv.Itoa(int(pod.Port)))
	return func(caBundle []byte) probeRequest {
		to := target
		to.CABundle = caBundle
		return probeRequest{probeScope: about, pod: pod.UID, proof: ownFingerprint(to, about.leaf), send: func(ctx context.Context) (string, error) {
			warnings, err := p.Own(ctx, to)
			return strings.Join(warnings, "; "), err
		}}
	}
}

func ownFingerprint(target probe.OwnTarget, leaf []byte) fingerprint {
	return sha256.Sum256(fmt.Appendf(nil, "%q", []any{
		target.Address, target.ServerName, target.Path, target.ReviewVersion, target.CABundle, leaf, target.Canaries}))
}
