// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/pki"
)

// certificatesReady: the converter pods have a serving certificate that the API
// server will accept. Renewal is upkeep (upkeep.go) and closes no gate.
func certificatesReady(s *state) outcome {
	if s.none() {
		return s.notNeeded()
	}
	name := AuthorityName(s.Policy.Name)
	if s.Authority == nil {
		if s.trusted() {
			return stalled(v1alpha1.ReasonAuthorityLost, fmt.Sprintf(
				"Secret %[1]s/%[2]s with the certificate authority is gone. Conversions work until the serving certificate expires. "+
					"Restore the Secret from a backup; or delete the Secret %[3]s too, and a new authority is issued, while conversions fail for up to two minutes",
				s.Settings.Namespace, name, CertificateSecret(s.Policy)))
		}
		s.do(IssueAuthority{SecretName: name})
		return waiting(v1alpha1.ReasonIssuing, "issuing a certificate authority")
	}
	authority := KeyPair(s.Authority)
	if err := pki.CheckAuthority(authority, s.Now); err != nil {
		return stalled(v1alpha1.ReasonInvalidAuthority, fmt.Sprintf(
			"Secret %s/%s: %s. Restore the Secret from a backup; or delete it, and the Secret %s, and a new authority is issued, "+
				"while conversions that are in use fail for up to two minutes", s.Settings.Namespace, name, err, CertificateSecret(s.Policy)))
	}
	if s.Certificate == nil || pki.CheckLeaf(KeyPair(s.Certificate), authority.Certificate, s.serverName(), s.Now) != nil {
		s.issueLeaf()
		return waiting(v1alpha1.ReasonIssuing, "issuing a serving certificate for "+s.serverName())
	}
	return passed(v1alpha1.ReasonIssued, "the serving certificate is valid for "+s.serverName())
}

// trusted reports whether the CustomResourceDefinition trusts what the pods serve.
func (s *state) trusted() bool {
	if !s.armed || s.Certificate == nil {
		return false
	}
	bundle := s.CRD.Spec.Conversion.Webhook.ClientConfig.CABundle
	return pki.CheckLeaf(KeyPair(s.Certificate), bundle, s.serverName(), s.Now) == nil
}

// KeyPair reads a Secret of type kubernetes.io/tls.
func KeyPair(secret *corev1.Secret) pki.KeyPair {
	return pki.KeyPair{Certificate: secret.Data[corev1.TLSCertKey], Key: secret.Data[corev1.TLSPrivateKeyKey]}
}
