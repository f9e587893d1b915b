// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// In a rotation from authority A to authority B, the serving certificate and caBundle change
// one after the other, so that every API server can verify every pod at any time:
//
//	Idle         pods serve a certificate of A, and caBundle has A
//	AddingCA     ca.crt of the Secret has A and B, and the CustomResourceDefinition is changed
//	Propagating  API servers have the propagation delay to trust B
//	Verifying    the Secret has a certificate of B; every pod serves it, and passes a
//	             handshake with a client that trusts only B
//	RemovingCA   ca.crt of the Secret has only B, and the CustomResourceDefinition is changed
//
// All state is in the Secret that pods mount: the certificate; ca.crt, the desired caBundle;
// and an annotation with the observed caBundle and the time since when it is unchanged. Any
// manager can continue from there. If the same authority renews the certificate, pods serve it
// at once, and the CustomResourceDefinition does not change.

const (
	// TrustedAnnotation has the hash of the observed caBundle and the time since when it is
	// unchanged, on the Secret that pods mount.
	TrustedAnnotation = "conversion-operator.io/trusted"

	// longestWait limits the wait for a distant time, in case the clock jumps.
	longestWait = time.Hour
)

// serving is the content of the Secret that pods mount.
type serving struct {
	pair pki.KeyPair
	// bundle has the authorities that API servers must trust while pods mount the pair.
	bundle pki.Bundle
	// seen is the value of TrustedAnnotation.
	seen string
}

// rotate takes the serving certificate and caBundle one state further.
func (c *Certificates) rotate() {
	if c.OfFleet {
		return
	}
	c.source.maintain()
	write := step.WriteCertificate{SecretName: c.Secrets.Serving, DNSName: c.ServerName,
		Pair: c.serving.pair, CABundle: c.nextBundle(), Trusted: c.nextSeen()}
	write.Lifetime, _ = c.lifetime()
	if c.Certificate != nil {
		write.ResourceVersion = c.Certificate.ResourceVersion
	}
	c.serve(&write)
	if c.differs(&write) {
		c.work.Do(write)
	}
	c.refreshPods()
}

// differs reports that the Secret must be written. Before there is a certificate, it is written
// as soon as the CustomResourceDefinition depends on caBundle.
func (c *Certificates) differs(write *step.WriteCertificate) bool {
	if write.Signer != nil {
		return true
	}
	if c.Certificate == nil {
		return len(write.CABundle) > 0 && (c.EverActive || len(write.Pair.Certificate) > 0)
	}
	return !same(write.Pair, c.serving.pair) || !bytes.Equal(write.CABundle, c.Certificate.Data[observed.CAKey]) || write.Trusted != c.serving.seen
}

func same(a, b pki.KeyPair) bool {
	return bytes.Equal(a.Certificate, b.Certificate) && bytes.Equal(a.Key, b.Key)
}

// serve decides which certificate pods serve.
func (c *Certificates) serve(write *step.WriteCertificate) {
	switch {
	case c.offered.wrong != nil:
	case c.servesOffered():
		c.recheckRenewal(c.offered.roots)
	case c.mayServe():
		write.Pair, write.Signer = c.offered.pair, c.offered.signer
	default:
		c.serveMeanwhile(write)
	}
}

// serveMeanwhile renews the serving certificate with the previous authority while API servers
// do not trust the next one yet.
func (c *Certificates) serveMeanwhile(write *step.WriteCertificate) {
	self, ok := c.source.(selfManaged)
	if !ok {
		return
	}
	older := self.older()
	if older == nil {
		return
	}
	c.recheckRenewal(older.roots)
	if c.renewalDue(older.roots) || !c.valid(c.serving.pair, older.roots) {
		write.Signer = &older.pair
	}
}

// servesOffered reports that pods have the offered certificate, and it is not due for renewal.
func (c *Certificates) servesOffered() bool {
	if c.offered.signer != nil {
		return c.valid(c.serving.pair, c.offered.roots) && !c.renewalDue(c.offered.roots)
	}
	return same(c.serving.pair, c.offered.pair)
}

// mayServe reports that pods may serve the offered certificate: API servers accept it, or they
// refuse the current one anyway.
func (c *Certificates) mayServe() bool {
	trusted := c.trusted
	switch {
	case !c.EverActive || c.Refused() || c.nothingServes() || c.cannotWait():
		return true
	case !c.Active:
		trusted = c.serving.bundle // the caBundle after the activation
	}
	if c.offered.signer != nil {
		renewal := c.valid(c.serving.pair, c.offered.roots)
		return renewal || trusted.Contains(c.offered.roots) && c.propagated()
	}
	return c.valid(c.offered.pair, trusted) && c.propagated()
}

// nothingServes reports that there is no valid certificate, and no pod that may have one in
// memory, for example because the operator's namespace was deleted.
func (c *Certificates) nothingServes() bool {
	ready := slices.ContainsFunc(c.Pods, func(pod observed.Pod) bool { return pod.Ready })
	return !ready && pki.CheckPair(c.serving.pair) != nil
}

// Refused reports that all API servers refuse the certificate of pods. Pods ignore a Secret without
// a valid certificate.
func (c *Certificates) Refused() bool {
	return c.Active && pki.CheckPair(c.serving.pair) == nil && !slices.ContainsFunc(c.Trusted, func(text []byte) bool {
		bundle, err := pki.ParseBundle(text)
		if err != nil {
			bundle = c.serving.bundle // it is unknown
		}
		return c.valid(c.serving.pair, bundle)
	})
}

// propagated reports that every API server has the current caBundle.
func (c *Certificates) propagated() bool {
	if c.Certificate == nil {
		return true // unknown, and pods wait for the Secret
	}
	since, known := c.seenSince()
	return known && c.work.Due(since.Add(c.Settings.PropagationDelay).Sub(c.Now))
}

// seenSince is the time since when the CustomResourceDefinition has its current caBundle.
func (c *Certificates) seenSince() (time.Time, bool) {
	sum, text, _ := strings.Cut(c.serving.seen, " ")
	since, err := time.Parse(time.RFC3339, text)
	return since, err == nil && sum == c.bundleHash()
}

// nextSeen is the next value of TrustedAnnotation. A caBundle of another client is not recorded:
// after its repair, API servers have the same caBundle as before.
func (c *Certificates) nextSeen() string {
	if _, known := c.seenSince(); known || !c.Active {
		return c.serving.seen
	}
	if c.Certificate == nil || c.Injected() || bytes.Equal(c.Bundle(), c.serving.bundle.Encode()) {
		return c.bundleHash() + " " + c.Now.UTC().Format(time.RFC3339)
	}
	return c.serving.seen
}

func (c *Certificates) bundleHash() string { return names.Hash(string(c.Bundle()))[:16] }

// Bundle is caBundle of the CustomResourceDefinition. If another client removed the conversion,
// it is the one that a repair restores.
func (c *Certificates) Bundle() []byte {
	if !c.Active {
		return c.serving.bundle.Encode()
	}
	return c.active()
}

// nextBundle has the authorities that API servers must trust: those of the current and of the
// offered certificate, until every pod serves the offered one.
func (c *Certificates) nextBundle() []byte {
	bundle, roots := c.serving.bundle, c.offered.roots
	switch {
	case c.offered.wrong != nil:
	case c.Injected() && !c.servesOffered():
		bundle = bundle.With(roots)
	case !c.EverActive, c.Injected(), c.Certificate == nil && (!c.Active || c.nothingServes()):
		bundle = roots
	case c.Certificate == nil:
		bundle = c.trusted.Unexpired(c.Now).With(roots)
	case !c.mayWriteBundle():
	case !c.offeredTrusted(bundle):
		bundle = bundle.Unexpired(c.Now).With(roots)
	case c.servesOffered() && !bundle.Same(roots) && c.allProven():
		bundle = roots
	}
	return bundle.Encode()
}

// valid reports that clients which trust the bundle accept the certificate.
func (c *Certificates) valid(pair pki.KeyPair, trusted pki.Bundle) bool {
	key := [3]string{string(pair.Certificate), string(pair.Key), string(trusted.Encode())}
	is, known := c.verified[key]
	if !known {
		is = pki.CheckLeaf(pair, trusted, c.ServerName, c.Now) == nil
		c.verified[key] = is
	}
	return is
}

// renewalDue reports that an authority must renew the serving certificate. No certificate outlives
// its authority, so that one which ends together with it cannot be renewed.
func (c *Certificates) renewalDue(by pki.Bundle) bool {
	at, known := c.renewAt(by)
	return known && !c.Now.Before(at)
}

func (c *Certificates) recheckRenewal(by pki.Bundle) {
	if c.offered.signer == nil {
		return
	}
	if at, known := c.renewAt(by); known {
		c.work.Recheck(min(at.Sub(c.Now), longestWait))
	}
}

func (c *Certificates) renewAt(by pki.Bundle) (time.Time, bool) {
	leaf, err := pki.ParseCertificate(c.serving.pair.Certificate)
	if err != nil || !leaf.NotAfter.Before(by.NotAfter()) {
		return time.Time{}, false
	}
	lasts, before := c.lifetime()
	return pki.RenewalTime(leaf, lasts, before), true
}
