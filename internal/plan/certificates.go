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
// server will accept. Keeping it so is upkeep (rotation.go) and waits for no gate.
func certificatesReady(s *state) outcome {
	if s.none() {
		return s.notNeeded()
	}
	s.rotate()
	if wrong := s.offered.wrong; wrong != nil {
		if s.usable() {
			wrong.message += "; meanwhile converter pods serve the certificate of before, until it expires"
		}
		return *wrong
	}
	if s.injected() {
		if wrong := s.injectedWrong(); wrong != nil {
			return *wrong
		}
	} else if !s.usable() {
		return waiting(v1alpha1.ReasonIssuing, "issuing a serving certificate for "+s.serverName())
	}
	if s.Certificate == nil {
		return waiting(v1alpha1.ReasonIssuing, "taking over the serving certificate for "+s.serverName())
	}
	return passed(s.rotationReason())
}

// caBundle is what the CustomResourceDefinition must trust so that API servers can
// verify every converter pod, now and on the way to the next certificate: what the
// Secret that pods mount says, or what somebody else has injected. It is empty
// where nothing is known yet.
func (o Observed) caBundle() []byte {
	if there := o.bundleThere(); o.injected() && len(there) > 0 {
		return there
	}
	if o.Certificate == nil {
		return nil
	}
	return o.Certificate.Data[CAKey]
}

// bundleThere is caBundle of the CustomResourceDefinition, whoever wrote it.
func (o Observed) bundleThere() []byte {
	if o.CRD == nil || o.CRD.Spec.Conversion == nil || o.CRD.Spec.Conversion.Webhook == nil || o.CRD.Spec.Conversion.Webhook.ClientConfig == nil {
		return nil
	}
	return o.CRD.Spec.Conversion.Webhook.ClientConfig.CABundle
}

// injected reports whether somebody else writes caBundle.
func (o Observed) injected() bool { return o.Policy.Spec.Certificates.Injected != nil }

// usable reports whether who trusts caBundle accepts what pods have.
func (s *state) usable() bool {
	trusted, err := pki.ParseBundle(s.caBundle())
	return err == nil && s.valid(s.serving.pair, trusted)
}

// Trust is what converter pods must be verified by, unless something else comes first.
type Trust struct {
	// Drifted tells that somebody else wrote spec.conversion since the policy did,
	// which is to be undone without waiting for pods.
	Drifted bool
	// CABundle is, or will be, in the CustomResourceDefinition.
	CABundle []byte
	// Successor is what it is going to be next; empty where that is the same.
	Successor []byte
	// PlanHash is the plan that API servers ask for, or will; empty where there is none.
	PlanHash string
}

// TrustOf returns what converter pods must be verified by.
func TrustOf(observed Observed) Trust {
	s := newState(observed)
	trust := Trust{Drifted: s.drifted, CABundle: s.caBundle(), Successor: s.successor(), PlanHash: s.planHash}
	if s.planHash == "" && s.armed {
		trust.PlanHash = s.named()
	}
	return trust
}

// rotationReason is how far the rotation is, as reason and message.
func (s *state) rotationReason() (reason, message string) {
	serves := "the serving certificate is valid for " + s.serverName()
	if self, ok := s.source.(selfManaged); ok && self.awaitsMigration() {
		return v1alpha1.ReasonAwaitingMigration, serves + "; its authority is replaced once the migration has ended"
	}
	switch state := s.rotationState(); state {
	case v1alpha1.RotationTrusting:
		return string(state), serves + "; the CustomResourceDefinition is to trust the next authority besides"
	case v1alpha1.RotationSettling:
		return string(state), fmt.Sprintf("%s; API servers have %s to trust the next authority before it is used", serves, s.Settings.Settle)
	case v1alpha1.RotationProving:
		return string(state), serves + "; waits until every converter pod serves it, and then stops trusting the authority of before"
	case v1alpha1.RotationReleasing:
		return string(state), serves + "; the CustomResourceDefinition is to stop trusting the authority of before"
	}
	return v1alpha1.ReasonIssued, serves
}

// rotationState is how far the change from one authority to another is.
func (s *state) rotationState() v1alpha1.RotationState {
	switch {
	case !s.armed || s.injected() || s.offered.wrong != nil:
		return v1alpha1.RotationServing
	case s.servesOffered() && !s.serving.bundle.Same(s.offered.roots):
		return v1alpha1.RotationProving
	case s.servesOffered() && s.trustsOtherThan(s.caBundle()):
		return v1alpha1.RotationReleasing
	case s.servesOffered() || s.offered.signer != nil && s.valid(s.serving.pair, s.offered.roots):
		return v1alpha1.RotationServing
	case !s.offeredTrusted(s.trusted):
		return v1alpha1.RotationTrusting
	}
	return v1alpha1.RotationSettling
}

// reportCertificates writes what is served, and how far a rotation is, into the status.
func (s *state) reportCertificates() {
	s.plan.Status.Certificate = nil
	if s.none() && !s.engaged {
		s.plan.Status.Rotation = nil
		return
	}
	leaf, err := pki.ParseCertificate(s.serving.pair.Certificate)
	if err != nil || len(s.serving.bundle) == 0 {
		s.plan.Status.Rotation = nil
		return
	}
	s.plan.Status.Certificate = &v1alpha1.CertificateStatus{
		NotAfter: metav1.NewTime(leaf.NotAfter), CANotAfter: metav1.NewTime(s.serving.bundle.NotAfter())}
	rotation := &v1alpha1.RotationStatus{State: s.rotationState(), Since: metav1.NewTime(s.Now), Next: s.nextRotation()}
	if before := s.plan.Status.Rotation; before != nil && before.State == rotation.State {
		rotation.Since = before.Since
	}
	s.plan.Status.Rotation = rotation
}

// nextRotation is when time brings the next step; nil where something else does.
func (s *state) nextRotation() *metav1.Time {
	switch s.rotationState() {
	case v1alpha1.RotationSettling:
		if since, known := s.seenSince(); known {
			return &metav1.Time{Time: since.Add(s.Settings.Settle)}
		}
	case v1alpha1.RotationServing:
		if self, ok := s.source.(selfManaged); ok && self.current() != nil {
			return &metav1.Time{Time: self.replaceAt(self.current())}
		}
	}
	return nil
}

// CertificateHash identifies a serving certificate.
func CertificateHash(certificate []byte) string { return hash(string(certificate))[:16] }

// KeyPair reads a Secret of type kubernetes.io/tls.
func KeyPair(secret *corev1.Secret) pki.KeyPair {
	return pki.KeyPair{Certificate: secret.Data[corev1.TLSCertKey], Key: secret.Data[corev1.TLSPrivateKeyKey]}
}
