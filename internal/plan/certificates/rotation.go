// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/pki"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/plan/step"
)

// What converter pods serve and what API servers trust change one after the
// other, so that every API server can verify every pod at any time:
//
//	Serving    pods serve what is by A, the CustomResourceDefinition trusts A
//	AddingCA   there is something by B to serve: the Secret says that A and B are
//	           to be trusted, and the CustomResourceDefinition is written
//	Propagating   API servers have the propagation delay to take that up
//	Verifying    the Secret has the certificate by B; pods take it up, and prove it
//	           against B alone, each of them
//	RemovingCA  the Secret says that B alone is to be trusted, and the
//	           CustomResourceDefinition is written a second time
//
// All of it is in the Secret that pods mount: the certificate; ca.crt, which is
// what caBundle is to be; and an annotation with the caBundle that the
// CustomResourceDefinition was seen with, and since when. A manager may end
// anywhere, and another goes on from what it finds. A certificate that the same
// authority renews is served at once, and writes no CustomResourceDefinition.

const (
	// TrustedAnnotation is, on the Secret that pods mount, the hash of the caBundle
	// that the CustomResourceDefinition was seen with, and since when.
	TrustedAnnotation = "conversion-operator.io/trusted"

	// longestWait bounds waits for a time that is far away, in case the clock jumps.
	longestWait = time.Hour
)

// serving is what the Secret that pods mount says.
type serving struct {
	pair pki.KeyPair
	// bundle is what API servers must trust while pods mount this.
	bundle pki.Bundle
	// seen is the value of TrustedAnnotation.
	seen string
}

// rotate brings what pods serve and what API servers trust one state further.
func (c *Certificates) rotate() {
	c.source.maintain()
	write := step.WriteCertificate{SecretName: observed.CertificateSecret(c.Policy), DNSName: c.ServerName(),
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

// differs reports whether there is anything to write. If there is nothing to
// serve yet, what is to be trusted is written as soon as any client depends on it.
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

// serve decides which certificate pods are to have.
func (c *Certificates) serve(write *step.WriteCertificate) {
	switch {
	case c.offered.wrong != nil:
	case c.servesOffered():
		c.recheckRenewal()
	case c.mayServe():
		write.Pair, write.Signer = c.offered.pair, c.offered.signer
	default:
		c.serveMeanwhile(write)
	}
}

// serveMeanwhile renews what pods have by the previous authority, while API
// servers do not trust the next one yet.
func (c *Certificates) serveMeanwhile(write *step.WriteCertificate) {
	self, ok := c.source.(selfManaged)
	if !ok {
		return
	}
	if older := self.older(); older != nil && (c.renewalDue() || !c.valid(c.serving.pair, older.roots)) {
		write.Signer = &older.pair
	}
}

// servesOffered reports whether pods have what is offered, and it is not due for renewal.
func (c *Certificates) servesOffered() bool {
	if c.offered.signer != nil {
		return c.valid(c.serving.pair, c.offered.roots) && !c.renewalDue()
	}
	return same(c.serving.pair, c.offered.pair)
}

// mayServe reports whether API servers can verify what is offered. What they
// refuse anyhow may be replaced at once.
func (c *Certificates) mayServe() bool {
	trusted := c.trusted
	switch {
	case !c.EverActive || c.refused() || c.nothingServes():
		return true
	case !c.Active:
		trusted = c.serving.bundle // what it will be active with
	}
	if c.offered.signer != nil {
		renewal := c.valid(c.serving.pair, c.offered.roots)
		return trusted.Contains(c.offered.roots) && (renewal || c.propagated())
	}
	return c.valid(c.offered.pair, trusted) && c.propagated()
}

// nothingServes reports that there is nothing to lose: no certificate, and no pod
// that might have one in memory, as when the operator's namespace was deleted.
func (c *Certificates) nothingServes() bool {
	ready := slices.ContainsFunc(c.Pods, func(pod observed.Pod) bool { return pod.Ready })
	return !ready && pki.CheckPair(c.serving.pair) != nil
}

// refused reports that pods have, or are about to take up, a certificate that API
// servers do not accept. One that is no certificate is not taken up by any pod.
func (c *Certificates) refused() bool {
	return c.Active && len(c.trusted) > 0 && pki.CheckPair(c.serving.pair) == nil && !c.valid(c.serving.pair, c.trusted)
}

// propagated reports whether every API server knows what the CustomResourceDefinition trusts.
func (c *Certificates) propagated() bool {
	if c.Certificate == nil {
		return true // no one knows, and pods that start wait for it
	}
	since, known := c.seenSince()
	left := since.Add(c.Settings.PropagationDelay).Sub(c.Now)
	if known && left > 0 {
		c.work.Recheck(left)
	}
	return known && left <= 0
}

// seenSince is since when the CustomResourceDefinition has been seen with the
// caBundle that it has.
func (c *Certificates) seenSince() (time.Time, bool) {
	sum, text, _ := strings.Cut(c.serving.seen, " ")
	since, err := time.Parse(time.RFC3339, text)
	return since, err == nil && sum == c.bundleHash()
}

// nextSeen is what TrustedAnnotation is to be. What another client writes there is
// not recorded: once it is put right, API servers know the same as before.
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

// Bundle is caBundle of the CustomResourceDefinition; where a client has
// dropped its conversion, what it is active with again.
func (c *Certificates) Bundle() []byte {
	if !c.Active {
		return c.serving.bundle.Encode()
	}
	return c.ActiveCABundle()
}

// nextBundle is what API servers are to trust: what is served and what is offered,
// until every pod serves what is offered.
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

// valid reports whether who trusts the bundle accepts the certificate.
func (c *Certificates) valid(pair pki.KeyPair, trusted pki.Bundle) bool {
	return pki.CheckLeaf(pair, trusted, c.ServerName(), c.Now) == nil
}

// renewalDue reports whether what is served is to be renewed by its authority.
func (c *Certificates) renewalDue() bool {
	at, known := c.renewAt()
	return known && !c.Now.Before(at)
}

func (c *Certificates) recheckRenewal() {
	if at, known := c.renewAt(); known && c.offered.signer != nil {
		c.work.Recheck(min(at.Sub(c.Now), longestWait))
	}
}

func (c *Certificates) renewAt() (time.Time, bool) {
	leaf, err := pki.ParseCertificate(c.serving.pair.Certificate)
	if err != nil {
		return time.Time{}, false
	}
	lasts, before := c.lifetime()
	return pki.RenewalTime(leaf, lasts, before), true
}
