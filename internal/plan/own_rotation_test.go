// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"testing"
	"time"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/certificates"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
)

// another is how a source comes to something by another authority, and how often the
// operator writes the CustomResourceDefinition for it.
type another struct {
	certificates v1alpha1.Certificates
	change       func(*rollout)
	writes       int
}

func sourcesOfOthers() map[string]another {
	renewed := func(r *rollout) { r.observed.Source = r.theirs("theirs") }
	return map[string]another{
		"selfManaged": {*selfManagedCertificates.DeepCopy(), func(r *rollout) {
			r.observed.Policy.Spec.Certificates.SelfManaged.RotationTrigger = "now"
		}, 2},
		"certManager": {v1alpha1.Certificates{CertManager: &v1alpha1.CertManagerCertificates{
			IssuerRef: v1alpha1.IssuerReference{Name: "company"}}}, renewed, 2},
		"secret":                       {v1alpha1.Certificates{Secret: &v1alpha1.SecretCertificates{Name: "theirs"}}, renewed, 2},
		"injected":                     {v1alpha1.Certificates{Injected: &v1alpha1.InjectedCertificates{SecretName: "theirs"}}, injectAnother, 0},
		"from selfManaged to a Secret": {*selfManagedCertificates.DeepCopy(), useSecret, 2},
		"from a Secret to selfManaged": {v1alpha1.Certificates{Secret: &v1alpha1.SecretCertificates{Name: "theirs"}}, func(r *rollout) {
			r.observed.Policy.Spec.Certificates, r.observed.Source = *selfManagedCertificates.DeepCopy(), nil
		}, 2},
	}
}

// injectAnother is what an injector does that adds an authority before it takes the
// previous one away.
func injectAnother(r *rollout) {
	before := r.observed.Source.Data[observed.CAKey]
	r.observed.Source = r.theirs("theirs")
	r.run(100)
	after := r.observed.Source.Data[observed.CAKey]
	r.inject(slices.Concat(before, after))
	r.run(100)
	r.inject(after)
}

// inject writes caBundle as another client does.
func (r *rollout) inject(bundle []byte) {
	r.observed.CRD.Spec.Conversion.Webhook.ClientConfig.CABundle = bundle
	r.observed.CRD.Generation++
	r.know(bundle)
}

// TestRotationOfOwnConverters is TestRotation for converters that users bring, each
// with each source of certificates: what users run serves a copy of the same
// Secret, which comes to it in its own time. Pods are slow, and managers are killed
// after every step.
func TestRotationOfOwnConverters(t *testing.T) {
	for kind, policy := range map[string]string{"image": imageYAML, "service": serviceYAML, "url": urlYAML} {
		for name, c := range sourcesOfOthers() {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				r := startRollout(t, policy, *c.certificates.DeepCopy())
				if kind == "service" || kind == "url" {
					r.answerAt("10.0.0.1:9443", "")
				}
				if certificates.SourceSecret(r.observed.Policy) != "" {
					r.observed.Source = r.theirs("theirs")
				}
				r.activate()
				r.lag = 8
				c.change(r)
				r.run(1)
				if r.writes != c.writes {
					t.Errorf("caBundle was written %d times, want %d; states %v", r.writes, c.writes, r.states)
				}
				r.rest()
			})
		}
	}
}

// TestAConverterThatKeepsItsCertificate: an endpoint that goes on serving the
// previous certificate is waited for, and both authorities are trusted as long.
func TestAConverterThatKeepsItsCertificate(t *testing.T) {
	for kind, policy := range map[string]string{"image": imageYAML, "service": serviceYAML, "url": urlYAML} {
		t.Run(kind, func(t *testing.T) {
			r := startRollout(t, policy, *selfManagedCertificates.DeepCopy())
			if kind != "image" {
				r.answerAt("10.0.0.1:9443", "")
			}
			r.activate()
			r.lag = 1000
			r.observed.Policy.Spec.Certificates.SelfManaged.RotationTrigger = "now"
			r.run(100)
			if got := r.states[len(r.states)-1]; got != v1alpha1.RotationVerifying || r.writes != 1 {
				t.Errorf("the rotation is %s after %d writes, want Verifying after 1", got, r.writes)
			}
			r.lag = 0
			r.observed.Now = r.observed.Now.Add(time.Minute)
			r.run(100)
			r.rest()
		})
	}
}
