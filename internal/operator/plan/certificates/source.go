// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"slices"

	"k8s.io/utils/ptr"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
)

// source provides the certificates of a policy. Each type of spec.certificates has one. The
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
	if c.OfFleet {
		return ofFleet{c}
	}
	switch c.Spec.Type {
	case v1alpha1.CertificatesCertManager:
		return certManager{c, *c.Spec.CertManager}
	case v1alpha1.CertificatesSecret:
		return foreignSecret{c, c.Spec.Secret.Name}
	case v1alpha1.CertificatesInjected:
		return injection{c, ptr.Deref(c.Spec.Injected, v1alpha1.InjectedCertificates{}).SecretName}
	}
	return selfManaged{c, ptr.Deref(c.Spec.SelfManaged, v1alpha1.SelfManagedCertificates{})}
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
	switch certificates.Type {
	case v1alpha1.CertificatesCertManager:
		return issued
	case v1alpha1.CertificatesSecret:
		return certificates.Secret.Name
	case v1alpha1.CertificatesInjected:
		return ptr.Deref(certificates.Injected, v1alpha1.InjectedCertificates{}).SecretName
	}
	return ""
}

// ofFleet is the certificate of a fleet, which the fleet issues and rotates. A policy of the fleet
// keeps only caBundle of its CustomResourceDefinition up to date.
type ofFleet struct{ *Certificates }

func (ofFleet) maintain() {}

func (f ofFleet) offer() offer {
	if f.Certificate == nil {
		return offer{wrong: new(gate.Waiting(v1alpha1.ReasonIssuing, "waiting for the serving certificate of the fleet"))}
	}
	roots, err := pki.ParseBundle(f.Certificate.Data[observed.CAKey])
	if err != nil {
		return offer{wrong: new(gate.Waiting(v1alpha1.ReasonIssuing, "waiting for the certificate authority of the fleet"))}
	}
	return offer{roots: roots, pair: observed.KeyPair(f.Certificate)}
}

// A policy that changes to another source of certificates, or to another kind of converter,
// leaves Secrets behind: the key of the previous authority, certificates of cert-manager, and
// Secrets that previous pods mounted. The operator keeps them until the change is complete,
// because it may be reverted, and deletes them then, because an unused key can only be stolen.

// UnusedSecrets are the names of Secrets that the policy no longer uses, sorted. The operator
// or cert-manager created them for the policy.
func UnusedSecrets(policy *v1alpha1.ConversionPolicy) []string {
	certificates, none := policy.Spec.Certificates.Type, policy.Spec.Converter.Type == v1alpha1.ConverterNone
	var unused []string
	fleet := observed.FleetOf(policy) != ""
	if fleet || none || certificates != "" && certificates != v1alpha1.CertificatesSelfManaged {
		unused = append(unused, names.AuthoritySecret(policy.Name))
	}
	if none || certificates != v1alpha1.CertificatesCertManager {
		unused = append(unused, names.IssuedSecret(policy.Name))
	}
	for _, mounted := range []string{names.CertificateSecret(policy.Name), names.ExternalCertificateSecret(policy.Name)} {
		if fleet || none || mounted != observed.CertificateSecret(policy) {
			unused = append(unused, mounted)
		}
	}
	slices.Sort(unused)
	return slices.DeleteFunc(unused, func(name string) bool { return name == SourceSecret(policy) })
}
