// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/pki"
)

// certificatesReady: the converter pods have a serving certificate that the API
// server will accept. A leaf is renewed at two thirds of its life, under the
// same authority, so that the CustomResourceDefinition need not change.
func certificatesReady(s *state) outcome {
	name := AuthorityName(s.Policy.Name)
	if s.Authority == nil {
		s.do(IssueAuthority{SecretName: name})
		return waiting(v1alpha1.ReasonIssuing, "issuing a certificate authority")
	}
	authority := KeyPair(s.Authority)
	if err := pki.CheckAuthority(authority, s.Now); err != nil {
		return stalled(v1alpha1.ReasonInvalidAuthority, fmt.Sprintf(
			"Secret %s/%s: %s; delete the Secret and a new certificate authority is issued", s.Settings.Namespace, name, err))
	}
	server := ServerName(s.Policy.Name, s.Settings.Namespace)
	issue := IssueCertificate{SecretName: CertificateName(s.Policy.Name), DNSName: server, Authority: s.Authority}
	if s.Certificate == nil || pki.CheckLeaf(KeyPair(s.Certificate), authority.Certificate, server, s.Now) != nil {
		s.do(issue)
		return waiting(v1alpha1.ReasonIssuing, "issuing a serving certificate for "+server)
	}
	s.watchExpiry(issue)
	return passed(v1alpha1.ReasonIssued, "the serving certificate is valid for "+server)
}

// watchExpiry renews a leaf that is due and asks to be called when it will be.
// The caller has checked that both certificates parse.
func (s *state) watchExpiry(issue IssueCertificate) {
	leaf, leafErr := pki.ParseCertificate(s.Certificate.Data[corev1.TLSCertKey])
	authority, authorityErr := pki.ParseCertificate(s.Authority.Data[corev1.TLSCertKey])
	if leafErr != nil || authorityErr != nil {
		return
	}
	s.plan.Status.Certificate = &v1alpha1.CertificateStatus{
		NotAfter:   metav1.NewTime(leaf.NotAfter),
		CANotAfter: metav1.NewTime(authority.NotAfter),
	}
	due := pki.RenewalTime(leaf)
	if !s.Now.Before(due) {
		s.do(issue)
		return
	}
	s.recheck(due.Sub(s.Now))
}

// KeyPair reads a Secret of type kubernetes.io/tls.
func KeyPair(secret *corev1.Secret) pki.KeyPair {
	return pki.KeyPair{Certificate: secret.Data[corev1.TLSCertKey], Key: secret.Data[corev1.TLSPrivateKeyKey]}
}
