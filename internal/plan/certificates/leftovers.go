// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"slices"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
)

// A policy that changes to another source of certificates, or to another kind of
// converter, leaves Secrets behind: the key of an authority that no one is to trust
// any more, what cert-manager issued, what other pods mounted. They are kept until
// the change is through, as it may be taken back at any time, and deleted then: a key
// that no one needs can only be stolen.

// UnusedSecrets are the names of Secrets that the policy, as it is now, has no use
// for, sorted. The operator made them, or had them made.
func UnusedSecrets(policy *v1alpha1.ConversionPolicy) []string {
	certificates, converter := policy.Spec.Certificates, policy.Spec.Converter
	var unused []string
	if converter.None != nil || certificates.CertManager != nil || certificates.Secret != nil || certificates.Injected != nil {
		unused = append(unused, names.AuthoritySecret(policy.Name))
	}
	if converter.None != nil || certificates.CertManager == nil {
		unused = append(unused, names.IssuedSecret(policy.Name))
	}
	for _, mounted := range []string{names.CertificateSecret(policy.Name), names.ExternalCertificateSecret(policy.Name)} {
		if converter.None != nil || mounted != observed.CertificateSecret(policy) {
			unused = append(unused, mounted)
		}
	}
	slices.Sort(unused)
	return slices.DeleteFunc(unused, func(name string) bool { return name == SourceSecret(policy) })
}
