// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/pki"
)

// upkeep keeps alive what a CustomResourceDefinition depends on. No gate may
// keep it from that: a policy that is suspended, or whose rules were broken by
// an edit, still has a converter that must not expire, vanish or be bypassed.
func (s *state) upkeep() {
	s.renew()
	if !s.engaged || s.Policy.Spec.Suspend {
		return
	}
	if s.Rules.Plan == nil && len(s.carried) > 0 && s.authorityValid() {
		s.applyWorkload()
	}
	s.rearm()
	s.answerDrift()
}

// renew issues a serving certificate that is due, under the same authority, so
// that the CustomResourceDefinition need not change.
func (s *state) renew() {
	if !s.authorityValid() || s.Certificate == nil {
		return
	}
	authority := s.Authority.Data[corev1.TLSCertKey]
	if pki.CheckLeaf(KeyPair(s.Certificate), authority, s.serverName(), s.Now) != nil {
		if s.engaged {
			s.issueLeaf()
		}
		return
	}
	leaf, leafErr := pki.ParseCertificate(s.Certificate.Data[corev1.TLSCertKey])
	root, rootErr := pki.ParseCertificate(authority)
	if leafErr != nil || rootErr != nil {
		return
	}
	s.plan.Status.Certificate = &v1alpha1.CertificateStatus{
		NotAfter: metav1.NewTime(leaf.NotAfter), CANotAfter: metav1.NewTime(root.NotAfter),
	}
	if due := pki.RenewalTime(leaf); s.Now.Before(due) {
		s.recheck(due.Sub(s.Now))
		return
	}
	s.issueLeaf()
}

func (s *state) authorityValid() bool {
	return s.Authority != nil && pki.CheckAuthority(KeyPair(s.Authority), s.Now) == nil
}

func (s *state) issueLeaf() {
	if !s.issued {
		s.issued = true
		s.do(IssueCertificate{SecretName: CertificateName(s.Policy.Name), DNSName: s.serverName(), Authority: s.Authority})
	}
}

func (s *state) serverName() string { return ServerName(s.Policy.Name, s.Settings.Namespace) }

// rearm names another plan where no pod has the one that is named any more, as
// when plans were deleted. What others wrote is drift's business (drift.go).
func (s *state) rearm() {
	if s.drifted || !s.armed || s.answers(namedPlan(s.CRD)) || !s.CRD.DeletionTimestamp.IsZero() || !s.authorityValid() {
		return
	}
	if !s.Policy.DeletionTimestamp.IsZero() && s.inUse().reason == "" {
		return // it is being restored
	}
	if hash := s.answerable(); hash != "" {
		s.switchCRD(hash)
	}
}
