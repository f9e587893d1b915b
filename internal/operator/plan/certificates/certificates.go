// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1 "k8s.io/api/core/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
)

// Input is what certificates depend on: those of a policy, or those of a fleet.
type Input struct {
	Settings observed.Settings
	Now      time.Time
	// Spec is the source of certificates, and Before the state of the rotation that was reported
	// last.
	Spec   v1alpha1.Certificates
	Before *v1alpha1.CertificateStatus
	// Paused tells that nothing is issued, requested or rotated.
	Paused bool
	// NotNeeded tells that nothing converts.
	NotNeeded bool
	// ServerName is the name in the serving certificate.
	ServerName string
	// Secrets are the names of Secrets. Labels and Annotations are on everything that is created.
	Secrets             Secrets
	Labels, Annotations map[string]string

	// Authority is the Secret of the certificate authority, Certificate the one that pods mount,
	// and Source the one of another client. Each is nil if it does not exist.
	Authority, Certificate, Source *corev1.Secret
	// Request is the state of the request to cert-manager.
	Request observed.Request
	// Pods serve the certificate, if the operator runs them. Ending are being deleted.
	Pods   []observed.Pod
	Ending []observed.EndingPod
	// ServingEndpoints are the pods, or endpoints of a converter that users run.
	ServingEndpoints []observed.Pod

	// Active tells that a CustomResourceDefinition converts through a converter with these
	// certificates, and EverActive that one does, or did until another client changed it.
	Active, EverActive bool
	// Trusted is caBundle of each CustomResourceDefinition that converts through it; nil for one that
	// is unknown.
	Trusted [][]byte
	// Migrates tells that a migration runs, which a change of the CustomResourceDefinition ends.
	Migrates bool
	// InUse tells that certificates are renewed no matter which gate stops: pods serve one,
	// or API servers trust one. Before that, they are issued when their gate is reached.
	InUse bool
	// OfFleet tells that a fleet keeps the certificate, and the policy only uses it.
	OfFleet bool
}

// Secrets are the names of the Secrets of the authority, of the serving certificate, and of the
// certificate that cert-manager is asked for.
type Secrets struct{ Authority, Serving, Issued string }

// Certificates decides about the serving certificate of a policy or a fleet, and about caBundle.
type Certificates struct {
	Input
	// work that was decided and not handed out yet.
	work gate.Work

	source  source
	offered offer
	// serving is the content of the Secret that pods mount, and trusted are the authorities that
	// every CustomResourceDefinition trusts while the converter is active.
	serving serving
	trusted pki.Bundle
	// verified are the results of valid: many decisions ask for the same.
	verified map[[3]string]bool
}

// InputOf are the certificates of a policy whose converter has this state.
func InputOf(cluster observed.Cluster) Input {
	policy := cluster.Policy
	return Input{
		Settings: cluster.Settings, Now: cluster.Now, Spec: policy.Spec.Certificates, Before: policy.Status.Certificate,
		Paused: policy.Spec.Paused, NotNeeded: cluster.None(), ServerName: cluster.ServerName(),
		Secrets: Secrets{names.AuthoritySecret(policy.Name), observed.CertificateSecret(policy), names.IssuedSecret(policy.Name)},
		Labels:  cluster.Labels(names.ConverterComponent), Annotations: cluster.Annotations(),
		Authority: cluster.Authority, Certificate: cluster.Certificate, Source: cluster.Source, Request: cluster.Request,
		Pods: cluster.Pods, Ending: cluster.Ending,
		Trusted: [][]byte{cluster.ActiveCABundle()}, Migrates: cluster.Migrates(),
	}
}

// Gather reads the certificates that are served, trusted and offered.
func Gather(in Input) *Certificates {
	c := &Certificates{Input: in, verified: map[[3]string]bool{}}
	c.source = c.newSource()
	if c.Certificate != nil {
		c.serving.pair = observed.KeyPair(c.Certificate)
	}
	if c.Active {
		c.Trusted = distinct(c.Trusted)
		c.Trusted = c.counted()
		c.trusted = trustedByAll(c.Trusted)
	}
	c.offered = c.source.offer()
	if c.Certificate == nil {
		return c
	}
	c.serving.seen = c.Certificate.Annotations[TrustedAnnotation]
	bundle, err := pki.ParseBundle(c.Certificate.Data[observed.CAKey])
	if err != nil {
		// The Secret has none, or it is damaged.
		bundle = c.trusted.Unexpired(c.Now).With(c.offered.roots)
	}
	c.serving.bundle = bundle
	return c
}

// Upkeep renews certificates that are in use, whatever the gates say.
func (c *Certificates) Upkeep() gate.Work {
	if c.InUse {
		c.rotate()
	}
	return c.work.Take()
}

// Ready is the gate CertificatesReady: the converter pods have a serving certificate that
// API servers accept.
func (c *Certificates) Ready() gate.Decision {
	if c.NotNeeded {
		return gate.Decision{Outcome: gate.NotNeeded()}
	}
	if !c.InUse {
		c.rotate()
	}
	return c.work.Decide(c.ready())
}

func (c *Certificates) ready() gate.Outcome {
	if wrong := c.offered.wrong; wrong != nil {
		if c.Usable() {
			wrong.Message += "; converter pods serve the previous certificate until it expires"
		}
		return *wrong
	}
	if c.Injected() {
		if wrong := c.injectedWrong(); wrong != nil {
			return *wrong
		}
	} else if !c.Usable() {
		return gate.Waiting(v1alpha1.ReasonIssuing, "issuing a serving certificate for "+c.ServerName)
	}
	if c.Certificate == nil {
		return gate.Waiting(v1alpha1.ReasonIssuing, "copying the serving certificate for "+c.ServerName)
	}
	return gate.Passed(c.rotationReason())
}

// Usable reports that clients which trust caBundle accept the serving certificate.
func (c *Certificates) Usable() bool {
	trusted, err := pki.ParseBundle(c.CABundle())
	return err == nil && c.valid(c.serving.pair, trusted)
}

// rotationReason is the progress of the rotation as reason and message.
func (c *Certificates) rotationReason() (reason, message string) {
	serves := "the serving certificate is valid for " + c.ServerName
	if c.OfFleet {
		return v1alpha1.ReasonIssued, serves
	}
	if self, ok := c.source.(selfManaged); ok && self.awaitsMigration() {
		return v1alpha1.ReasonRotating, serves + "; the operator replaces its authority after the migration"
	}
	switch c.rotationState() {
	case v1alpha1.RotationAddingCA:
		return v1alpha1.ReasonRotating, serves + "; adding the next authority to the CustomResourceDefinition"
	case v1alpha1.RotationPropagating:
		return v1alpha1.ReasonRotating, fmt.Sprintf("%s; waiting %s for API servers to trust the next authority", serves, c.Settings.PropagationDelay)
	case v1alpha1.RotationVerifying:
		return v1alpha1.ReasonRotating, serves + "; waiting until every converter pod serves it, to remove the previous authority"
	case v1alpha1.RotationRemovingCA:
		return v1alpha1.ReasonRotating, serves + "; removing the previous authority from the CustomResourceDefinition"
	}
	return v1alpha1.ReasonIssued, serves
}

// rotationState is the state of the change from one authority to another.
func (c *Certificates) rotationState() v1alpha1.RotationState {
	switch {
	case !c.Active || c.Injected() || c.offered.wrong != nil:
		return v1alpha1.RotationIdle
	case c.servesOffered() && !c.serving.bundle.Same(c.offered.roots):
		return v1alpha1.RotationVerifying
	case c.servesOffered() && (c.TrustsOther() || c.differ()):
		return v1alpha1.RotationRemovingCA
	case c.servesOffered() || c.offered.signer != nil && c.valid(c.serving.pair, c.offered.roots):
		return v1alpha1.RotationIdle
	case !c.offeredTrusted(c.trusted):
		return v1alpha1.RotationAddingCA
	}
	return v1alpha1.RotationPropagating
}

// Status is the part of the status about the serving certificate and the rotation.
func (c *Certificates) Status() *v1alpha1.CertificateStatus {
	if c.NotNeeded && !c.EverActive {
		return nil
	}
	leaf, err := pki.ParseCertificate(c.serving.pair.Certificate)
	if err != nil || len(c.serving.bundle) == 0 {
		return nil
	}
	certificate := &v1alpha1.CertificateStatus{
		NotAfter: metav1.NewTime(leaf.NotAfter), CANotAfter: metav1.NewTime(c.serving.bundle.NotAfter())}
	if c.OfFleet {
		return certificate
	}
	certificate.Rotation, certificate.RotationTime = c.rotationState(), new(metav1.NewTime(c.Now))
	if before := c.Before; before != nil && before.Rotation == certificate.Rotation {
		certificate.RotationTime = before.RotationTime.DeepCopy()
	}
	return certificate
}

// CertificateHash identifies a serving certificate.
func CertificateHash(certificate []byte) string { return names.Hash(string(certificate))[:16] }
