// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	cmv1apply "github.com/cert-manager/cert-manager/pkg/client/applyconfigurations/certmanager/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/pki"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/plan/step"
)

// TestWrongCertificates: whatever is wrong with a Secret of another client is said
// with its cure, and nothing is active by it.
func TestWrongCertificates(t *testing.T) {
	cases := map[string]struct {
		damage func(*world, map[string][]byte)
		reason string
		cure   string
	}{
		"no certificate": {func(_ *world, data map[string][]byte) { delete(data, corev1.TLSCertKey) }, "InvalidCertificate", "into tls.crt"},
		"no key":         {func(_ *world, data map[string][]byte) { delete(data, corev1.TLSPrivateKeyKey) }, "InvalidCertificate", "into tls.key"},
		"no authority":   {func(_ *world, data map[string][]byte) { delete(data, observed.CAKey) }, v1alpha1.ReasonMissingCA, "put the CA certificate"},
		"an authority that is none": {
			func(_ *world, data map[string][]byte) { data[observed.CAKey] = []byte("x") }, "InvalidCertificate", "ca.crt: no PEM block",
		},
		"another key": {func(w *world, data map[string][]byte) {
			data[corev1.TLSPrivateKeyKey] = w.theirs("other").Data[corev1.TLSPrivateKeyKey]
		}, "KeyMismatch", "put the private key of tls.crt into tls.key"},
		"another authority": {func(w *world, data map[string][]byte) { data[observed.CAKey] = w.theirs("other").Data[observed.CAKey] },
			"CAMismatch", "into ca.crt"},
		"another name":     {func(w *world, data map[string][]byte) { w.issue(data, "elsewhere.svc", w.observed.Now) }, "WrongName", "issue it for the DNS name crontabs-"},
		"expired":          {func(w *world, data map[string][]byte) { w.issue(data, "", w.observed.Now.Add(-400*time.Hour)) }, "Expired", "renew it"},
		"not valid yet":    {func(w *world, data map[string][]byte) { w.issue(data, "", w.observed.Now.Add(time.Hour)) }, "NotYetValid", "correct the clock"},
		"a clock behind":   {func(w *world, data map[string][]byte) { w.issue(data, "", w.observed.Now.Add(5*time.Minute)) }, "", ""},
		"nothing is wrong": {func(*world, map[string][]byte) {}, "", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, policyYAML)
			w.observed.Source = w.theirs("theirs")
			c.damage(w, w.observed.Source.Data)
			w.activeBy(v1alpha1.Certificates{Secret: &v1alpha1.SecretCertificates{Name: "theirs"}})
			ready := apimeta.FindStatusCondition(w.observed.Policy.Status.Conditions, v1alpha1.CertificatesReadyCondition)
			active := w.observed.CRD.Spec.Conversion != nil
			if c.reason == "" {
				if !active {
					t.Errorf("nothing is wrong, and it is not active: %s", ready.Message)
				}
				return
			}
			if active || ready.Reason != c.reason || !strings.Contains(ready.Message, c.cure) || !strings.Contains(ready.Message, "conversion-system/theirs") {
				t.Errorf("active: %t; %s: %s; want %s with %q", active, ready.Reason, ready.Message, c.reason, c.cure)
			}
		})
	}
}

// issue puts a certificate for a name, by default the right one, into a Secret.
func (w *world) issue(data map[string][]byte, name string, at time.Time) {
	if name == "" {
		name = names.ServerName(crontabs, "conversion-system")
	}
	authority := w.pair(pki.NewAuthority("theirs", at, 1000*time.Hour))
	leaf := w.pair(pki.IssueLeaf(authority, name, at, 300*time.Hour))
	data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey], data[observed.CAKey] = leaf.Certificate, leaf.Key, authority.Certificate
}

// TestInjected: caBundle is another client's. It is never overwritten, and what
// pods serve is judged by it.
func TestInjected(t *testing.T) {
	injected := v1alpha1.Certificates{Injected: &v1alpha1.InjectedCertificates{SecretName: "theirs"}}
	cases := map[string]struct {
		source func(*world, map[string][]byte)
		inject func(*world) []byte
		reason string
	}{
		"the same": {nil, func(w *world) []byte { return w.observed.Source.Data[observed.CAKey] }, v1alpha1.ReasonIssued},
		"more than that": {nil, func(w *world) []byte {
			return append(w.theirs("other").Data[observed.CAKey], w.observed.Source.Data[observed.CAKey]...)
		}, v1alpha1.ReasonIssued},
		"something else": {nil, func(w *world) []byte { return w.theirs("other").Data[observed.CAKey] }, "CAMismatch"},
		"nothing":        {nil, func(*world) []byte { return nil }, v1alpha1.ReasonNotInjected},
		"nothing, and no one knows the authority": {
			func(_ *world, data map[string][]byte) { delete(data, observed.CAKey) }, nil, v1alpha1.ReasonNotInjected,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, policyYAML)
			w.observed.Source = w.theirs("theirs")
			if c.source != nil {
				c.source(w, w.observed.Source.Data)
			}
			w.activeBy(injected)
			conversion := w.observed.CRD.Spec.Conversion
			if conversion == nil || len(conversion.Webhook.ClientConfig.CABundle) == 0 {
				t.Fatal("it is active without anything to trust, or not at all")
			}
			if c.inject != nil {
				conversion.Webhook.ClientConfig.CABundle = c.inject(w)
				w.observed.CRD.Annotations = map[string]string{"cert-manager.io/inject-ca-from": "conversion-system/theirs"}
			}
			decided := w.plan()
			if slices.Contains(kinds(decided.Steps), "SwitchCRD") {
				t.Error("caBundle is overwritten")
			}
			ready := apimeta.FindStatusCondition(decided.Status.Conditions, v1alpha1.CertificatesReadyCondition)
			if ready.Reason != c.reason {
				t.Errorf("%s: %s; want %s", ready.Reason, ready.Message, c.reason)
			}
		})
	}
}

// TestRequest: cert-manager is asked for what API servers verify, a name or an address.
func TestRequest(t *testing.T) {
	cases := map[string]struct {
		url              string
		names, addresses []string
	}{
		"a name":    {"https://converter.example.org/crontabs", []string{"converter.example.org"}, nil},
		"address":   {"https://10.1.2.3:8443/crontabs", nil, []string{"10.1.2.3"}},
		"address 6": {"https://[2001:db8::1]/crontabs", nil, []string{"2001:db8::1"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, urlYAML)
			w.observed.Policy.Spec.Converter.URL = v1alpha1.WebhookURL(c.url)
			w.observed.Policy.Spec.Certificates = v1alpha1.Certificates{CertManager: &v1alpha1.CertManagerCertificates{
				IssuerRef: v1alpha1.IssuerReference{Name: "company"}}}
			w.applyCRD(bothStoredNew)
			for _, s := range w.plan().Steps {
				apply, _ := s.(step.Apply)
				request, found := apply.Object.(*cmv1apply.CertificateApplyConfiguration)
				if !found {
					continue
				}
				if diff := cmp.Diff([][]string{c.names, c.addresses}, [][]string{request.Spec.DNSNames, request.Spec.IPAddresses}); diff != "" {
					t.Errorf("names and addresses (-want +got):\n%s", diff)
				}
				return
			}
			t.Error("no Certificate is asked for")
		})
	}
}
