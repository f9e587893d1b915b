// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// converts has two versions, between which a webhook converts.
const converts = "versions: {v1 served storage: {a: string}, v2 served: {b: string}}\n" +
	"spec: {conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {namespace: ns, name: svc}}}}}\n"

func TestCABundle(t *testing.T) {
	trusting := func(bundle []byte, more ...func(*Observed)) func(*Observed) {
		return func(o *Observed) {
			o.ClientConfig().CABundle = bundle
			for _, change := range more {
				change(o)
			}
		}
	}
	injected := func(o *Observed) { o.CRD.Annotations = map[string]string{"cert-manager.io/inject-ca-from": "n/c"} }
	inFile := func(o *Observed) { o.Live = false }
	atURL := func(o *Observed) { *o.ClientConfig() = apiextensionsv1.WebhookClientConfig{URL: new(string)} }
	works := func(o *Observed) { o.Reads = []Read{{Version: "v1", Object: "o"}, {Version: "v2", Object: "o"}} }
	const empty = "Warning Certain CABundleEmpty -: caBundle is empty: API servers verify the webhook with public authorities, which issue no certificates for Services"
	run(t, map[string]check{
		"valid":               {crd: converts, observe: trusting(authority(t, 31))},
		"expires soon":        {crd: converts, observe: trusting(authority(t, 29)), want: []string{"Warning Certain CABundleExpiring -: the last certificate of caBundle expires at 2026-01-30T00:00:00Z"}},
		"expired":             {crd: converts, observe: trusting(authority(t, -1)), want: []string{"Error Certain CABundleExpired -: the last certificate of caBundle expired at 2025-12-31T00:00:00Z"}},
		"one of two expired":  {crd: converts, observe: trusting(append(authority(t, -1), authority(t, 31)...))},
		"unreadable":          {crd: converts, observe: trusting([]byte("x")), want: []string{"Error Certain CABundleInvalid -: caBundle holds no certificates that an API server can read: no PEM block of type CERTIFICATE"}},
		"empty":               {crd: converts, observe: trusting(nil), want: []string{empty}},
		"a newline":           {crd: converts, observe: trusting([]byte("\n")), want: []string{empty}},
		"empty, and injected": {crd: converts, observe: trusting(nil, injected), want: []string{empty}},
		"empty in a file":     {crd: converts, observe: trusting(nil, inFile), want: []string{"Note Possible " + empty[len("Warning Certain "):]}},
		"to be injected":      {crd: converts, observe: trusting(nil, inFile, injected)},
		"empty at a URL":      {crd: converts, observe: trusting(nil, atURL)},
		"empty, and it works": {crd: converts, observe: trusting(nil, works), want: []string{
			"Note Certain CABundleEmpty -: caBundle is empty, but the webhook works, because this API server trusts its authority in another way"}},
	})
}

func TestHandshake(t *testing.T) {
	shook := func(handshake Handshake) func(*Observed) {
		return func(o *Observed) { o.ClientConfig().CABundle, o.Handshake = authority(t, 365), &handshake }
	}
	run(t, map[string]check{
		"verified": {crd: converts, observe: shook(Handshake{Address: "svc.ns.svc:443", NotAfter: now.Add(31 * 24 * time.Hour)})},
		"expires soon": {crd: converts, observe: shook(Handshake{Address: "svc.ns.svc:443", NotAfter: now.Add(29 * 24 * time.Hour)}), want: []string{
			"Warning Certain CertificateExpiring -: the certificate that svc.ns.svc:443 serves expires at 2026-01-30T00:00:00Z"}},
		"refused": {crd: converts, observe: shook(Handshake{Address: "svc.ns.svc:443", Refused: "x509: unknown"}), want: []string{
			"Error Certain CABundleForeign -: caBundle does not verify the certificate that svc.ns.svc:443 serves: x509: unknown"}},
	})
}

// authority is a certificate that is valid for some days from now on.
func authority(t *testing.T, days int) []byte {
	t.Helper()
	pair, err := pki.NewAuthority("authority", now.Add(-90*24*time.Hour), time.Duration(days+90)*24*time.Hour)
	expect.NoError(t, err)
	return pair.Certificate
}
