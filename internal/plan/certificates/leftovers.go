// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"slices"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
)

// A policy that changes to another source of certificates, or to another kind of converter,
// leaves Secrets behind: the key of the previous authority, certificates of cert-manager, and
// Secrets that previous pods mounted. The operator keeps them until the change is complete,
// because it may be reverted, and deletes them then, because an unused key can only be stolen.

// UnusedSecrets are the names of Secrets that the policy no longer uses, sorted. The operator
// or cert-manager created them for the policy.
func UnusedSecrets(policy *v1alpha1.ConversionPolicy) []string {
	certificates, converter := policy.Spec.Certificates, policy.Spec.Converter
	var unused []string
	fleet := observed.FleetOf(policy) != ""
	if fleet || converter.None != nil || certificates.CertManager != nil || certificates.Secret != nil || certificates.Injected != nil {
		unused = append(unused, names.AuthoritySecret(policy.Name))
	}
	if converter.None != nil || certificates.CertManager == nil {
		unused = append(unused, names.IssuedSecret(policy.Name))
	}
	for _, mounted := range []string{names.CertificateSecret(policy.Name), names.ExternalCertificateSecret(policy.Name)} {
		if fleet || converter.None != nil || mounted != observed.CertificateSecret(policy) {
			unused = append(unused, mounted)
		}
	}
	slices.Sort(unused)
	return slices.DeleteFunc(unused, func(name string) bool { return name == SourceSecret(policy) })
}
