// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"crypto/x509"
	"slices"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// offeredTrusted reports that clients which trust the bundle accept the offered certificate.
func (c *Certificates) offeredTrusted(bundle pki.Bundle) bool {
	if c.offered.signer != nil {
		return bundle.Contains(c.offered.roots)
	}
	return c.valid(c.offered.pair, bundle)
}

// mayWriteBundle reports that caBundle of the CustomResourceDefinition may change now.
func (c *Certificates) mayWriteBundle() bool {
	return !c.Paused && (!c.Migrates || c.urgent())
}

// urgent reports that certificates cannot wait for the end of a migration.
func (c *Certificates) urgent() bool {
	leaf, err := pki.ParseCertificate(c.serving.pair.Certificate)
	if err != nil || pki.Urgent(leaf, c.Now) || c.Refused() {
		return true
	}
	for _, root := range c.serving.bundle {
		if c.valid(c.serving.pair, pki.Bundle{root}) {
			return pki.Urgent(root, c.Now)
		}
	}
	return true
}

// allProven reports that every pod serves the offered certificate. It has passed a handshake
// with a client that trusts only the offered authority.
func (c *Certificates) allProven() bool {
	for _, pod := range c.ServingEndpoints {
		if pod.Scheduled && (pod.Proof == nil || !pod.Proof.Successor) {
			c.work.Recheck(observed.ProbeAgain)
			return false
		}
	}
	for _, pod := range c.Ending {
		if !c.work.Due(pod.Until.Sub(c.Now)) {
			return false
		}
	}
	return true
}

// Successor is the next caBundle, by which pods must be verified besides the current one.
func (c *Certificates) Successor() []byte {
	if c.offered.wrong != nil || c.Injected() || !c.servesOffered() || c.serving.bundle.Same(c.offered.roots) {
		return nil
	}
	return c.offered.roots.Encode()
}

// refreshPods makes the kubelets of pods that serve a previous certificate read the Secret now.
// By itself a kubelet takes a minute or two.
func (c *Certificates) refreshPods() {
	if c.Certificate == nil || c.Paused {
		return
	}
	wanted := CertificateHash(c.serving.pair.Certificate)
	late := c.Successor() != nil
	for _, pod := range c.Pods {
		if pod.Ready && pod.Certificate != wanted && pod.Proof != nil &&
			(late && !pod.Proof.Successor || pod.Proof.Reason == v1alpha1.ReasonTLSVerificationFailed) {
			c.work.Do(step.RefreshPod{Name: pod.Name, Annotation: names.CertificateAnnotation, Value: wanted})
		}
	}
}

// NextCABundle is what caBundle must become; nil if it need not change. It is used after the gates,
// because a conversion that they write has the same caBundle.
func (c *Certificates) NextCABundle() []byte {
	if !c.TrustsOther() || c.Injected() || !c.mayWriteBundle() {
		return nil
	}
	return c.CABundle()
}

// TrustsOther reports that caBundle must change: it is what the operator wrote last, or no API server
// accepts the serving certificate by it, for example because it was restored from a backup.
func (c *Certificates) TrustsOther() bool {
	wanted := c.CABundle()
	if !c.Active || len(wanted) == 0 || bytes.Equal(c.Bundle(), wanted) {
		return false
	}
	_, left := c.seenSince()
	return left || c.OfFleet || c.Refused()
}

// OnlyAddsTrust reports that the wanted caBundle has all authorities that API servers trust now.
func (c *Certificates) OnlyAddsTrust() bool {
	wanted, err := pki.ParseBundle(c.CABundle())
	return err == nil && wanted.Contains(c.trusted)
}

// Injected reports that another client writes caBundle.
func (c *Certificates) Injected() bool { return c.Spec.Type == v1alpha1.CertificatesInjected }

// CABundle has the authorities that API servers must trust, also during a rotation; empty if there
// is none yet.
func (c *Certificates) CABundle() []byte {
	if active := c.active(); c.Injected() && len(active) > 0 {
		return active
	}
	if c.Certificate == nil {
		return nil
	}
	return c.Certificate.Data[observed.CAKey]
}

// active is caBundle of all CustomResourceDefinitions; nil if it is not the same in all.
func (c *Certificates) active() []byte {
	for _, bundle := range c.Trusted {
		if !bytes.Equal(bundle, c.Trusted[0]) {
			return nil
		}
	}
	if len(c.Trusted) == 0 {
		return nil
	}
	return c.Trusted[0]
}

// differ reports that the known caBundles of CustomResourceDefinitions are not the same.
func (c *Certificates) differ() bool {
	known := slices.DeleteFunc(slices.Clone(c.Trusted), func(text []byte) bool { return text == nil })
	return len(known) > 1 // they are distinct
}

// distinct returns the different ones of bundles. Those of a fleet are the same in most
// CustomResourceDefinitions, and verifying a certificate takes long.
func distinct(bundles [][]byte) [][]byte {
	type content struct {
		known bool
		text  string
	}
	seen := map[content]bool{}
	return slices.DeleteFunc(slices.Clone(bundles), func(text []byte) bool {
		is := content{text != nil, string(text)}
		before := seen[is]
		seen[is] = true
		return before
	})
}

// counted are the caBundles that certificates depend on: those by which API servers accept the serving
// certificate, and unknown ones. If another client changed caBundle of one CustomResourceDefinition,
// its conversions fail whatever is served, and it must not hold up the others. If none accepts the
// certificate, all count.
func (c *Certificates) counted() [][]byte {
	accepts := func(text []byte) bool {
		bundle, err := pki.ParseBundle(text)
		return err == nil && c.valid(c.serving.pair, bundle)
	}
	if !slices.ContainsFunc(c.Trusted, accepts) {
		return c.Trusted
	}
	return slices.DeleteFunc(slices.Clone(c.Trusted), func(text []byte) bool { return text != nil && !accepts(text) })
}

// trustedByAll has the authorities that are in every bundle. An unreadable bundle has none.
func trustedByAll(bundles [][]byte) (all pki.Bundle) {
	for i, text := range bundles {
		bundle, err := pki.ParseBundle(text)
		if err != nil {
			return nil
		}
		if i == 0 {
			all = bundle
			continue
		}
		all = slices.DeleteFunc(all, func(authority *x509.Certificate) bool { return !bundle.Contains(pki.Bundle{authority}) })
	}
	return all
}

// ChangedOver reports that only the certificates of the current source are served and trusted.
func (c *Certificates) ChangedOver() bool {
	return c.offered.wrong == nil && c.servesOffered() && !c.TrustsOther() &&
		(c.Injected() || c.serving.bundle.Same(c.offered.roots))
}
