// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

const (
	// DefaultCADuration is the default lifetime of an authority.
	DefaultCADuration = 10 * 365 * 24 * time.Hour
	// DefaultDuration is the default lifetime of a serving certificate.
	DefaultDuration = 90 * 24 * time.Hour

	// NextCertificateKey is the key of the successor's certificate in the Secret of an
	// authority.
	NextCertificateKey = "next.crt"
	// NextKeyKey is the key of the successor's private key there.
	NextKeyKey = "next.key"

	// TriggerAnnotation has the rotationTrigger of the latest authority, on that Secret.
	TriggerAnnotation = "conversion-operator.io/rotation-trigger"
)

// selfManaged issues certificates with an authority of the policy. During a rotation there are
// two: the current one renews the serving certificate until API servers trust the next one.
type selfManaged struct {
	*Certificates
	spec v1alpha1.SelfManagedCertificates
}

// authority can sign certificates.
type authority struct {
	pair pki.KeyPair
	// roots is its certificate.
	roots pki.Bundle
}

func (m selfManaged) offer() offer {
	signer := cmp.Or(m.next(), m.current())
	if signer == nil {
		return offer{wrong: new(gate.Waiting(v1alpha1.ReasonIssuing, "issuing a certificate authority"))}
	}
	return offer{roots: signer.roots, signer: &signer.pair}
}

// current is the authority, or nil if there is none that can sign.
func (m selfManaged) current() *authority {
	return m.authority(corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
}

// next is the successor of the authority, or nil.
func (m selfManaged) next() *authority { return m.authority(NextCertificateKey, NextKeyKey) }

func (m selfManaged) authority(certificate, key string) *authority {
	if m.Authority == nil {
		return nil
	}
	pair := pki.KeyPair{Certificate: m.Authority.Data[certificate], Key: m.Authority.Data[key]}
	roots, err := pki.ParseBundle(pair.Certificate)
	if err != nil || pki.CheckAuthority(pair, m.Now) != nil {
		return nil
	}
	return &authority{pair, roots}
}

// maintain issues the first authority, and its successor when that is due.
func (m selfManaged) maintain() {
	current, next := m.current(), m.next()
	switch {
	case m.Paused:
	case current == nil && next == nil:
		m.work.Do(m.issue(false))
	case next != nil && (current == nil || m.released(next)):
		m.work.Do(step.PromoteAuthority{SecretName: m.Authority.Name, ResourceVersion: m.Authority.ResourceVersion, Authority: next.pair})
	case next == nil && m.due(current) && m.mayReplace(current):
		m.work.Do(m.issue(true))
	}
}

func (m selfManaged) issue(next bool) step.IssueAuthority {
	issue := step.IssueAuthority{SecretName: m.Secrets.Authority, Next: next,
		Lifetime: duration(m.spec.CADuration, DefaultCADuration), Trigger: m.spec.RotationTrigger}
	if m.Authority != nil {
		issue.ResourceVersion = m.Authority.ResourceVersion
	}
	return issue
}

// due reports that an authority must be replaced. If it is not due, it is checked again then.
func (m selfManaged) due(current *authority) bool {
	if trigger := m.spec.RotationTrigger; trigger != "" && trigger != m.Authority.Annotations[TriggerAnnotation] {
		return true
	}
	return m.work.Due(min(m.replaceAt(current).Sub(m.Now), longestWait))
}

// replaceAt is the time at which an authority is replaced.
func (m selfManaged) replaceAt(current *authority) time.Time {
	return pki.RenewalTime(current.roots[0], duration(m.spec.CADuration, DefaultCADuration), 0)
}

// mayReplace postpones a rotation until after a migration, which it would end, unless the
// authority expires soon.
func (m selfManaged) mayReplace(current *authority) bool {
	return !m.EverActive || !m.Migrates || pki.Urgent(current.roots[0], m.Now)
}

// awaitsMigration reports that a due rotation waits for a migration.
func (m selfManaged) awaitsMigration() bool {
	current := m.current()
	return m.next() == nil && current != nil && m.due(current) && !m.mayReplace(current)
}

// older is the current authority during a rotation, if it can still issue certificates that
// API servers trust; or nil. If it issued the serving certificate, they trust the next one as well.
func (m selfManaged) older() *authority {
	current := m.current()
	if m.next() == nil || current == nil || m.Active && !m.trusted.Contains(current.roots) && !m.valid(m.serving.pair, current.roots) {
		return nil
	}
	return current
}

// released reports that only the next authority is in use.
func (m selfManaged) released(next *authority) bool {
	return m.serving.bundle.Same(next.roots) && (!m.Active || m.trusted.Same(next.roots)) && m.valid(m.serving.pair, next.roots)
}

// lifetime is the lifetime of a serving certificate, and the time before its end at which it
// is renewed; zero for a third of its lifetime.
func (c *Certificates) lifetime() (lasts, before time.Duration) {
	spec := c.Spec.SelfManaged
	if spec == nil {
		return DefaultDuration, 0
	}
	return duration(spec.Duration, DefaultDuration), duration(spec.RenewBefore, 0)
}

func duration(set *metav1.Duration, otherwise time.Duration) time.Duration {
	if set == nil {
		return otherwise
	}
	return set.Duration
}
