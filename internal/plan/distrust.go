// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/pki"
)

// distrusted says why the certificate authority, valid as it is, must not be used
// now, or nil. Both cases would make an API server refuse what it signs.
func (s *state) distrusted() *outcome {
	switch {
	case s.replacedAuthority():
		return new(stalled(v1alpha1.ReasonAuthorityMismatch, fmt.Sprintf(
			"Secret %[1]s/%[2]s has another certificate authority than the one that the CustomResourceDefinition trusts. "+
				"Conversions work until the serving certificate expires. Restore the Secret from a backup; or delete the Secret %[3]s, "+
				"and a certificate of the authority that is there now is issued, while conversions fail for up to two minutes",
			s.Settings.Namespace, AuthorityName(s.Policy.Name), CertificateName(s.Policy.Name))))
	case s.issuedAhead():
		return new(stalled(v1alpha1.ReasonClockSkew, fmt.Sprintf(
			"Secret %[1]s/%[2]s: by the API server's clock, its certificate authority is not valid yet. The clock of the operator's node was ahead "+
				"when it was issued. Correct the clock, and delete the Secrets %[2]s and %[3]s: new ones are issued",
			s.Settings.Namespace, AuthorityName(s.Policy.Name), CertificateName(s.Policy.Name))))
	}
	return nil
}

// replacedAuthority reports that the Secret's authority is not the one by which
// the API server trusts what the pods serve. To sign a certificate with it would
// be to serve before trusting.
func (s *state) replacedAuthority() bool {
	return s.Authority != nil && s.trusted() &&
		!bytes.Contains(s.CRD.Spec.Conversion.Webhook.ClientConfig.CABundle, s.Authority.Data[corev1.TLSCertKey])
}

// issuedAhead compares our clock, which is in the certificate, with the API
// server's, which is in the Secret's creation. The converter is armed by it already
// where API servers accept it.
func (s *state) issuedAhead() bool {
	if s.armed || s.Authority == nil || s.Authority.CreationTimestamp.IsZero() {
		return false
	}
	certificate, err := pki.ParseCertificate(s.Authority.Data[corev1.TLSCertKey])
	if err != nil {
		return false
	}
	ahead := pki.IssueTime(certificate).Sub(s.Authority.CreationTimestamp.Time)
	return ahead > 0 && s.Now.Add(-ahead).Before(certificate.NotBefore)
}
