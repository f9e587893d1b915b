// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/certificates"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
)

// findLeftovers observes what is there and not used any more.
func (w *world) findLeftovers() {
	w.observed.Leftovers = nil
	for _, name := range certificates.UnusedSecrets(w.observed.Policy) {
		if name == names.AuthoritySecret(crontabs) && w.observed.Authority != nil ||
			name == names.CertificateSecret(crontabs) && w.observed.OwnCertificate != nil || slices.Contains(w.left, name) {
			w.observed.Leftovers = append(w.observed.Leftovers, name)
		}
	}
}

func (w *world) deleteSecret(name string) {
	if name == names.AuthoritySecret(crontabs) {
		w.observed.Authority = nil
	}
	if name == names.CertificateSecret(crontabs) {
		w.observed.OwnCertificate = nil
	}
	w.left = slices.DeleteFunc(w.left, func(left string) bool { return left == name })
}

// TestUnusedSecrets: what a policy uses is never among them.
func TestUnusedSecrets(t *testing.T) {
	const authority, issued, external, mounted = "-ca", "-issued", "-external-tls", "-tls"
	selfManaged := v1alpha1.Certificates{SelfManaged: &v1alpha1.SelfManagedCertificates{}}
	certManager := v1alpha1.Certificates{CertManager: &v1alpha1.CertManagerCertificates{}}
	cases := map[string]struct {
		policy       string
		certificates v1alpha1.Certificates
		want         []string
	}{
		"rules":                          {policyYAML, v1alpha1.Certificates{}, []string{external, issued}},
		"an image":                       {imageYAML, selfManaged, []string{external, issued}},
		"a Service":                      {serviceYAML, selfManaged, []string{issued, mounted}},
		"a URL":                          {urlYAML, certManager, []string{authority, mounted}},
		"cert-manager":                   {policyYAML, certManager, []string{authority, external}},
		"a Secret":                       {policyYAML, v1alpha1.Certificates{Secret: &v1alpha1.SecretCertificates{Name: "theirs"}}, []string{authority, external, issued}},
		"what cert-manager issued":       {policyYAML, v1alpha1.Certificates{Secret: &v1alpha1.SecretCertificates{Name: names.IssuedSecret(crontabs)}}, []string{authority, external}},
		"an injector and cert-manager's": {imageYAML, v1alpha1.Certificates{Injected: &v1alpha1.InjectedCertificates{SecretName: names.IssuedSecret(crontabs)}}, []string{authority, external}},
		"nothing is converted":           {noneYAML, v1alpha1.Certificates{}, []string{authority, external, issued, mounted}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.policy)
			w.observed.Policy.Spec.Certificates = c.certificates
			want := []string{}
			for _, suffix := range c.want {
				want = append(want, names.Child(crontabs)+suffix)
			}
			if diff := cmp.Diff(want, certificates.UnusedSecrets(w.observed.Policy)); diff != "" {
				t.Errorf("unused (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLeftovers: they go when a change is through, and not before.
func TestLeftovers(t *testing.T) {
	theirs := v1alpha1.Certificates{Secret: &v1alpha1.SecretCertificates{Name: "theirs"}}
	cases := map[string]struct {
		policy string
		change func(*world)
		left   []string
	}{
		"another source": {policyYAML, func(w *world) {
			w.observed.Policy.Spec.Certificates, w.observed.Source = theirs, w.theirs("theirs")
		}, nil},
		"another source, suspended": {policyYAML, func(w *world) {
			w.observed.Policy.Spec.Suspend = true
			w.observed.Policy.Spec.Certificates, w.observed.Source = theirs, w.theirs("theirs")
		}, []string{"-ca", "-issued"}},
		"another source that has nothing": {policyYAML, func(w *world) {
			w.observed.Policy.Spec.Certificates = theirs
		}, []string{"-ca", "-issued"}},
		"another converter": {policyYAML, func(w *world) {
			w.convertBy(serviceYAML)
			w.left = append(w.left, names.CertificateSecret(crontabs))
			w.answerAt("10.0.0.1:9443", "")
		}, []string{"-ca"}},
		"another converter that does not answer": {policyYAML, func(w *world) {
			w.convertBy(serviceYAML)
			w.left = append(w.left, names.CertificateSecret(crontabs))
			w.answerAt("10.0.0.1:9443", "x509")
		}, []string{"-ca", "-issued", "-tls"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.policy)
			w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
			w.applyCRD(bothStoredNew)
			w.converge()
			w.wait(time.Hour)
			w.left = []string{names.IssuedSecret(crontabs)}
			c.change(w)
			w.converge()
			if w.observed.Authority == nil {
				t.Error("the authority went before API servers could have followed")
			}
			w.settleAPIServers()
			w.settleAPIServers()
			var left []string
			if w.observed.Authority != nil {
				left = append(left, names.AuthoritySecret(crontabs))
			}
			var want []string
			for _, suffix := range c.left {
				want = append(want, names.Child(crontabs)+suffix)
			}
			if diff := cmp.Diff(want, append(left, w.left...)); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
		})
	}
}
