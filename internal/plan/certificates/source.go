// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/pki"
	"github.com/conversion-operator/conversion-operator/internal/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
)

// source is where a policy's certificates come from, one for each member of
// spec.certificates. It says what there is; in which order that comes to pods and
// API servers is the same for all of them, and told in rotation.go.
type source interface {
	// offer is what pods are to serve, and what API servers must trust for it; or
	// what is wrong. It does nothing.
	offer() offer
	// maintain adds the steps that keep the source up to date.
	maintain()
}

// offer is what a source has to serve.
type offer struct {
	// roots are the authorities that API servers must trust.
	roots pki.Bundle
	// pair is to be served unchanged. Without one, certificates are issued by signer.
	pair   pki.KeyPair
	signer *pki.KeyPair
	// wrong says why there is nothing to serve.
	wrong *gate.Outcome
}

func (c *Certificates) newSource() source {
	certificates := c.Policy.Spec.Certificates
	switch {
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

// SourceSecret is the Secret of another client that a policy's certificates come
// from, or empty.
func SourceSecret(policy *v1alpha1.ConversionPolicy) string {
	certificates := policy.Spec.Certificates
	switch {
	case certificates.CertManager != nil:
		return names.IssuedSecret(policy.Name)
	case certificates.Secret != nil:
		return certificates.Secret.Name
	case certificates.Injected != nil:
		return certificates.Injected.SecretName
	}
	return ""
}
