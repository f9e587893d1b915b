// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "github.com/conversion-operator/conversion-operator/api/v1alpha1"

// upkeep keeps alive what a CustomResourceDefinition depends on. No gate may
// keep it from that: a policy that is suspended, or whose rules were broken by
// an edit, still has a converter that must not expire, vanish or be bypassed.
func (s *state) upkeep() {
	if (s.engaged || s.Certificate != nil && !s.none()) && !s.lettingGo() {
		s.rotate()
	}
	if !s.engaged || s.Policy.Spec.Suspend {
		return
	}
	if s.Policy.Spec.Converter.Declarative != nil && s.Rules.Plan == nil && len(s.carried) > 0 && s.Certificate != nil {
		s.applyWorkload()
	}
	if !s.lettingGo() {
		s.trustInAdmission()
	}
	s.rearm()
	s.answerDrift()
}

// serverName is the name that API servers verify.
func (s *state) serverName() string {
	if external := ExternalServerName(s.Policy.Spec.Converter); external != "" {
		return external
	}
	return ServerName(s.Policy.Name, s.Settings.Namespace)
}

// CertificateSecret names the Secret of a policy's serving certificate.
func CertificateSecret(policy *v1alpha1.ConversionPolicy) string {
	if ExternalServerName(policy.Spec.Converter) != "" {
		return ExternalCertificateName(policy.Name)
	}
	return CertificateName(policy.Name)
}

// rearm names another plan where no pod has the one that is named any more, as
// when plans were deleted. What others wrote is drift's business (drift.go).
func (s *state) rearm() {
	lost := s.armed && s.pointsHere() && !s.answers(s.named())
	if s.none() || s.drifted || !lost || !s.CRD.DeletionTimestamp.IsZero() || !s.usable() || s.lettingGo() {
		return
	}
	if hash := s.answerable(); hash != "" {
		s.switchCRD(hash)
	}
}
