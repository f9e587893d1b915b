// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"

	"github.com/conversion-operator/conversion-operator/internal/pki"
)

// offeredTrusted reports whether who trusts the bundle can verify what is offered.
func (s *state) offeredTrusted(bundle pki.Bundle) bool {
	if s.offered.signer != nil {
		return bundle.Contains(s.offered.roots)
	}
	return s.valid(s.offered.pair, bundle)
}

// mayWriteBundle reports whether the CustomResourceDefinition may be written for
// the sake of certificates.
func (s *state) mayWriteBundle() bool {
	return !s.Policy.Spec.Suspend && (!s.migrating() || s.urgent())
}

// urgent reports that certificates cannot wait for a migration to end.
func (s *state) urgent() bool {
	leaf, err := pki.ParseCertificate(s.serving.pair.Certificate)
	if err != nil || pki.Urgent(leaf, s.Now) || s.refused() {
		return true
	}
	for _, root := range s.serving.bundle {
		if s.valid(s.serving.pair, pki.Bundle{root}) {
			return pki.Urgent(root, s.Now)
		}
	}
	return true
}

// allProven reports whether every pod has shown that it serves what is offered,
// by a handshake with who trusts nothing else.
func (s *state) allProven() bool {
	for _, pod := range s.answerers() {
		if pod.Scheduled && (pod.Proof == nil || !pod.Proof.Successor) {
			s.recheck(probeAgain)
			return false
		}
	}
	for _, pod := range s.Ending {
		if left := pod.Until.Sub(s.Now); left > 0 {
			s.recheck(left)
			return false
		}
	}
	return true
}

// successor is what pods must prove besides caBundle: what it is going to be.
func (s *state) successor() []byte {
	if s.offered.wrong != nil || s.injected() || !s.servesOffered() || s.serving.bundle.Same(s.offered.roots) {
		return nil
	}
	return s.offered.roots.Encode()
}

// nudge lets the kubelets of pods that serve something else look at the Secret
// now: on its own each would within a minute or two.
func (s *state) nudge() {
	if s.Certificate == nil || s.Policy.Spec.Suspend {
		return
	}
	wanted := CertificateHash(s.serving.pair.Certificate)
	late := s.successor() != nil
	for _, pod := range s.Pods {
		if pod.Ready && pod.Certificate != wanted && pod.Proof != nil &&
			(late && !pod.Proof.Successor || pod.Proof.Reason == untrusted) {
			s.do(NudgePod{Name: pod.Name, Certificate: wanted})
		}
	}
}

// untrusted is the reason of a probe that refused the pod's certificate.
const untrusted = "TLSVerificationFailed"

// trust writes the CustomResourceDefinition where it is to trust something else.
// It comes after the gates: what they write has that in it. What somebody else
// wrote there is theirs to repair.
func (s *state) trust() {
	if !s.rotated || s.drifted || !s.trustsOtherThan(s.caBundle()) || s.switched || s.injected() || !s.mayWriteBundle() {
		return
	}
	if s.migrating() {
		for _, run := range s.Runs {
			s.suspend(run)
		}
	}
	conversion := s.CRD.Spec.Conversion.DeepCopy()
	conversion.Webhook.ClientConfig.CABundle = s.caBundle()
	s.switched = true
	s.do(SwitchCRD{Pin: s.pin(), Conversion: conversion})
}

// trustsOtherThan reports that caBundle is as this policy has left it, and not what it is to be.
func (s *state) trustsOtherThan(wanted []byte) bool {
	if !s.armed || len(wanted) == 0 || bytes.Equal(s.armedBundle(), wanted) {
		return false
	}
	_, left := s.seenSince()
	return left
}
