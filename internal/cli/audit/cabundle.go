// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
)

const cureBundle = "write the certificate authority of the webhook's certificate into spec.conversion.webhook.clientConfig.caBundle"

// caBundle checks what API servers trust. A bundle whose certificates have all
// expired verifies nothing: API servers also check the expiry of an authority.
func caBundle(o *Observed) []Finding {
	config := o.ClientConfig()
	if config == nil {
		return nil
	}
	if len(bytes.TrimSpace(config.CABundle)) == 0 {
		if config.Service == nil {
			return nil // at a URL, a certificate of a public authority is normal
		}
		return o.emptyBundle()
	}
	bundle, err := pki.ParseBundle(config.CABundle)
	if err != nil {
		return []Finding{o.certain(CABundleInvalid, "", "caBundle holds no certificates that an API server can read: "+err.Error(), o.curedByInjector(cureBundle))}
	}
	last := slices.MaxFunc(bundle, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) }).NotAfter
	switch {
	case last.Before(o.Now):
		return []Finding{o.certain(CABundleExpired, "", "the last certificate of caBundle expired at "+day(last), o.curedByInjector("renew the authority and the webhook's certificate, and "+cureBundle))}
	case last.Before(o.Now.Add(o.Soon)):
		return []Finding{o.certain(CABundleExpiring, "", "the last certificate of caBundle expires at "+day(last), o.curedByInjector("renew the authority and the webhook's certificate in time, and "+cureBundle))}
	}
	return nil
}

// emptyBundle is less severe if the webhook works, or if a file has yet to be filled
// in by an injector.
func (o *Observed) emptyBundle() []Finding {
	finding := o.certain(CABundleEmpty, "",
		"caBundle is empty: API servers verify the webhook with public authorities, which issue no certificates for Services", o.curedByInjector(cureBundle))
	switch {
	case o.proven():
		finding.Evidence = "caBundle is empty, but the webhook works, because this API server trusts its authority in another way"
		return []Finding{finding.as(SeverityNote, Certain)}
	case !o.Live && crds.Injector(o.CRD) != "":
		return nil
	case !o.Live:
		return []Finding{finding.as(SeverityNote, Possible)}
	}
	return []Finding{finding}
}

// curedByInjector names the injector that should have done it.
func (o *Observed) curedByInjector(cure string) string {
	if injector := crds.Injector(o.CRD); injector != "" {
		return fmt.Sprintf("the annotation %s=%s asks an injector to do it: check that the injector runs, and that the source exists. Or %s", injector, o.CRD.Annotations[injector], cure)
	}
	return cure
}

// handshake checks the served certificate against caBundle.
func handshake(o *Observed) []Finding {
	switch {
	case o.Handshake == nil:
		return nil
	case o.Handshake.Refused != "":
		return []Finding{o.certain(CABundleForeign, "",
			fmt.Sprintf("caBundle does not verify the certificate that %s serves: %s", o.Handshake.Address, o.Handshake.Refused), o.curedByInjector(cureBundle))}
	case o.Handshake.NotAfter.Before(o.Now.Add(o.Soon)):
		return []Finding{o.certain(CertificateExpiring, "",
			fmt.Sprintf("the certificate that %s serves expires at %s", o.Handshake.Address, day(o.Handshake.NotAfter)), "renew the webhook's certificate, and check that the webhook loads it")}
	}
	return nil
}

func day(at time.Time) string { return at.UTC().Format(time.RFC3339) }
