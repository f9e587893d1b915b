// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// A policy that changes to another source of certificates, or to another kind of
// converter, leaves Secrets behind: the key of an authority that nobody is to trust
// any more, what cert-manager issued, what other pods mounted. They are kept until
// the change is through, as it may be taken back at any time, and deleted then: a key
// that nobody needs can only be stolen.

// UnusedSecrets are the names of Secrets that the policy, as it is now, has no use
// for, sorted. The operator made them, or had them made.
func UnusedSecrets(policy *v1alpha1.ConversionPolicy) []string {
	certificates, converter := policy.Spec.Certificates, policy.Spec.Converter
	var unused []string
	if converter.None != nil || certificates.CertManager != nil || certificates.Secret != nil || certificates.Injected != nil {
		unused = append(unused, AuthorityName(policy.Name))
	}
	if converter.None != nil || certificates.CertManager == nil {
		unused = append(unused, IssuedName(policy.Name))
	}
	for _, mounted := range []string{CertificateName(policy.Name), ExternalCertificateName(policy.Name)} {
		if converter.None != nil || mounted != CertificateSecret(policy) {
			unused = append(unused, mounted)
		}
	}
	slices.Sort(unused)
	return slices.DeleteFunc(unused, func(name string) bool { return name == SourceSecret(policy) })
}

// tidyCertificates deletes what no pod mounts and no API server trusts any more.
func (s *state) tidyCertificates() {
	if len(s.Leftovers) == 0 || !s.changedOver() {
		return
	}
	for _, name := range s.Leftovers {
		s.do(DeleteSecret{name})
	}
}

// changedOver reports that the policy's converter and source are the only ones in
// use, and that API servers have had the time to see that.
func (s *state) changedOver() bool {
	switch {
	case s.CRD == nil || s.Policy.Spec.Suspend || s.drifted || s.switched || !s.Policy.DeletionTimestamp.IsZero():
		return false
	case slices.ContainsFunc(s.plan.Status.ArmedPlans, func(armed v1alpha1.ArmedPlan) bool { return armed.ReplacedTime != nil }):
		return false
	case !s.deploys() && len(s.Pods)+len(s.Ending) > 0:
		return false
	case s.none():
		return s.unconverted()
	}
	return s.inCharge() && s.offered.wrong == nil && s.servesOffered() && !s.trustsOtherThan(s.caBundle()) &&
		(s.injected() || s.serving.bundle.Same(s.offered.roots))
}
