// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"k8s.io/utils/ptr"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/pki"
	"github.com/conversion-operator/conversion-operator/internal/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
)

// source provides the certificates of a policy. Each member of spec.certificates has one. The
// order in which pods and API servers get them is the same for all sources (rotation.go).
type source interface {
	// offer is the certificate that pods should serve, with the authorities that API servers
	// must trust for it; or what is wrong.
	offer() offer
	// maintain adds the steps that keep the source up to date.
	maintain()
}

// offer is the certificate of a source.
type offer struct {
	// roots are the authorities that API servers must trust.
	roots pki.Bundle
	// pair is served unchanged. Without one, signer issues certificates.
	pair   pki.KeyPair
	signer *pki.KeyPair
	// wrong is the outcome if the source has no usable certificate.
	wrong *gate.Outcome
}

func (c *Certificates) newSource() source {
	certificates := c.Spec
	switch {
	case c.OfFleet:
		return ofFleet{c}
	case certificates.CertManager != nil:
		return certManager{c, *certificates.CertManager}
	case certificates.Secret != nil:
		return foreignSecret{c, certificates.Secret.Name}
	case certificates.Injected != nil:
		return injection{c, certificates.Injected.SecretName}
	case certificates.SelfManaged != nil:
		return selfManaged{c, *certificates.SelfManaged}
	}
	return selfManaged{c, v1alpha1.SelfManagedCertificates{}}
}

// SourceSecret names the Secret of another client that provides the certificates of a policy;
// empty if there is none.
func SourceSecret(policy *v1alpha1.ConversionPolicy) string {
	return sourceSecret(policy.Spec.Certificates, names.IssuedSecret(policy.Name))
}

// SourceSecretOf is SourceSecret of a fleet.
func SourceSecretOf(fleet *v1alpha1.ConverterFleet) string {
	_, _, issued := names.FleetSecrets(fleet.Name)
	return sourceSecret(ptr.Deref(fleet.Spec.Certificates, v1alpha1.Certificates{}), issued)
}

// sourceSecret names the Secret of a source. issued is the one that cert-manager writes.
func sourceSecret(certificates v1alpha1.Certificates, issued string) string {
	switch {
	case certificates.CertManager != nil:
		return issued
	case certificates.Secret != nil:
		return certificates.Secret.Name
	case certificates.Injected != nil:
		return certificates.Injected.SecretName
	}
	return ""
}
