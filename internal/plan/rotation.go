// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"strings"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/pki"
)

// What converter pods serve and what API servers trust change one after the
// other, so that every API server can verify every pod at any time:
//
//	Serving    pods serve what is by A, the CustomResourceDefinition trusts A
//	Trusting   there is something by B to serve: the Secret says that A and B are
//	           to be trusted, and the CustomResourceDefinition is written
//	Settling   API servers have the settle time to take that up
//	Proving    the Secret has the certificate by B; pods take it up, and prove it
//	           against B alone, each of them
//	Releasing  the Secret says that B alone is to be trusted, and the
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

// readCertificates reads what is served, trusted and offered.
func (s *state) readCertificates() {
	s.source = s.newSource()
	if s.armed {
		s.trusted, _ = pki.ParseBundle(s.CRD.Spec.Conversion.Webhook.ClientConfig.CABundle) // unreadable is not trusted
	}
	s.offered = s.source.offer()
	if s.Certificate == nil {
		return
	}
	s.serving = serving{pair: KeyPair(s.Certificate), seen: s.Certificate.Annotations[TrustedAnnotation]}
	bundle, err := pki.ParseBundle(s.Certificate.Data[CAKey])
	if err != nil {
		// It was made before there was one, or damaged.
		bundle = s.trusted.Unexpired(s.Now).With(s.offered.roots)
	}
	s.serving.bundle = bundle
}

// rotate brings what pods serve and what API servers trust one state further.
func (s *state) rotate() {
	if s.rotated {
		return
	}
	s.rotated = true
	s.source.keep()
	step := WriteCertificate{SecretName: CertificateName(s.Policy.Name), DNSName: s.serverName(),
		Pair: s.serving.pair, CABundle: s.nextBundle(), Trusted: s.nextSeen()}
	step.Lifetime, _ = s.lifetime()
	if s.Certificate != nil {
		step.ResourceVersion = s.Certificate.ResourceVersion
	}
	s.serve(&step)
	if s.differs(&step) {
		s.do(step)
	}
	s.nudge()
}

// differs reports whether there is anything to write. Where there is nothing to
// serve yet, what is to be trusted is written as soon as anybody depends on it.
func (s *state) differs(step *WriteCertificate) bool {
	if step.Signer != nil {
		return true
	}
	if s.Certificate == nil {
		return len(step.CABundle) > 0 && (s.engaged || len(step.Pair.Certificate) > 0)
	}
	return !same(step.Pair, s.serving.pair) || !bytes.Equal(step.CABundle, s.Certificate.Data[CAKey]) || step.Trusted != s.serving.seen
}

func same(a, b pki.KeyPair) bool {
	return bytes.Equal(a.Certificate, b.Certificate) && bytes.Equal(a.Key, b.Key)
}

// serve decides which certificate pods are to have.
func (s *state) serve(step *WriteCertificate) {
	switch {
	case s.offered.wrong != nil:
	case s.servesOffered():
		s.recheckRenewal()
	case s.mayServe():
		step.Pair, step.Signer = s.offered.pair, s.offered.signer
	default:
		s.serveMeanwhile(step)
	}
}

// serveMeanwhile renews what pods have by the authority of before, while API
// servers do not trust the next one yet.
func (s *state) serveMeanwhile(step *WriteCertificate) {
	self, ok := s.source.(selfManaged)
	if !ok {
		return
	}
	if older := self.older(); older != nil && (s.renewalDue() || !s.valid(s.serving.pair, older.roots)) {
		step.Signer = &older.pair
	}
}

// servesOffered reports whether pods have what is offered, and it is not due for renewal.
func (s *state) servesOffered() bool {
	if s.offered.signer != nil {
		return s.valid(s.serving.pair, s.offered.roots) && !s.renewalDue()
	}
	return same(s.serving.pair, s.offered.pair)
}

// mayServe reports whether API servers can verify what is offered. What they
// refuse anyhow may be replaced at once.
func (s *state) mayServe() bool {
	trusted := s.trusted
	switch {
	case !s.engaged || s.refused():
		return true
	case !s.armed:
		trusted = s.serving.bundle // what it will be armed with
	}
	if s.offered.signer != nil {
		renewal := s.valid(s.serving.pair, s.offered.roots)
		return trusted.Contains(s.offered.roots) && (renewal || s.settled())
	}
	return s.valid(s.offered.pair, trusted) && s.settled()
}

// refused reports that pods have, or are about to take up, a certificate that API
// servers do not accept. One that is no certificate is not taken up by any pod.
func (s *state) refused() bool {
	return s.armed && len(s.trusted) > 0 && pki.CheckPair(s.serving.pair) == nil && !s.valid(s.serving.pair, s.trusted)
}

// settled reports whether every API server knows what the CustomResourceDefinition trusts.
func (s *state) settled() bool {
	if s.Certificate == nil {
		return true // nobody knows, and pods that start wait for it
	}
	since, known := s.seenSince()
	left := since.Add(s.Settings.Settle).Sub(s.Now)
	if known && left > 0 {
		s.recheck(left)
	}
	return known && left <= 0
}

// seenSince is since when the CustomResourceDefinition has been seen with the
// caBundle that it has.
func (s *state) seenSince() (time.Time, bool) {
	sum, text, _ := strings.Cut(s.serving.seen, " ")
	since, err := time.Parse(time.RFC3339, text)
	return since, err == nil && sum == s.bundleHash()
}

// nextSeen is what TrustedAnnotation is to be. What somebody else writes there is
// not recorded: once it is put right, API servers know the same as before.
func (s *state) nextSeen() string {
	if _, known := s.seenSince(); known || !s.armed {
		return s.serving.seen
	}
	if s.Certificate == nil || s.injected() || bytes.Equal(s.armedBundle(), s.serving.bundle.Encode()) {
		return s.bundleHash() + " " + s.Now.UTC().Format(time.RFC3339)
	}
	return s.serving.seen
}

func (s *state) bundleHash() string { return hash(string(s.armedBundle()))[:16] }

// armedBundle is caBundle of the CustomResourceDefinition; where somebody has
// dropped its conversion, what it is armed with again.
func (s *state) armedBundle() []byte {
	if !s.armed {
		return s.serving.bundle.Encode()
	}
	return s.bundleThere()
}

// nextBundle is what API servers are to trust: what is served and what is offered,
// until every pod serves what is offered.
func (s *state) nextBundle() []byte {
	bundle, roots := s.serving.bundle, s.offered.roots
	switch {
	case s.offered.wrong != nil:
	case s.injected() && !s.servesOffered():
		bundle = bundle.With(roots)
	case !s.engaged, s.injected(), s.Certificate == nil && !s.armed:
		bundle = roots
	case s.Certificate == nil:
		bundle = s.trusted.Unexpired(s.Now).With(roots)
	case !s.mayWriteBundle():
	case !s.offeredTrusted(bundle):
		bundle = bundle.Unexpired(s.Now).With(roots)
	case s.servesOffered() && !bundle.Same(roots) && s.allProven():
		bundle = roots
	}
	return bundle.Encode()
}

// valid reports whether who trusts the bundle accepts the certificate.
func (s *state) valid(pair pki.KeyPair, trusted pki.Bundle) bool {
	return pki.CheckLeaf(pair, trusted, s.serverName(), s.Now) == nil
}

// renewalDue reports whether what is served is to be renewed by its authority.
func (s *state) renewalDue() bool {
	at, known := s.renewAt()
	return known && !s.Now.Before(at)
}

func (s *state) recheckRenewal() {
	if at, known := s.renewAt(); known && s.offered.signer != nil {
		s.recheck(min(at.Sub(s.Now), longestWait))
	}
}

func (s *state) renewAt() (time.Time, bool) {
	leaf, err := pki.ParseCertificate(s.serving.pair.Certificate)
	if err != nil {
		return time.Time{}, false
	}
	lasts, before := s.lifetime()
	return pki.RenewalTime(leaf, lasts, before), true
}
