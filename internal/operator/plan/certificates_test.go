// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"testing"
	"time"

	cmv1apply "github.com/cert-manager/cert-manager/pkg/client/applyconfigurations/certmanager/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/certificates"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// ofOthers is a world with a Secret of another client.
func ofOthers(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, policyYAML)
	w.observed.Source = w.theirs("theirs")
	return w
}

// damagedCertificates: whatever is wrong with a Secret of another client is said with its cure, and nothing is
// active by it.
func damagedCertificates() changes {
	all := changes{}
	for name, damage := range map[string]func(*world, map[string][]byte){
		"no certificate":            func(_ *world, data map[string][]byte) { delete(data, corev1.TLSCertKey) },
		"no key":                    func(_ *world, data map[string][]byte) { delete(data, corev1.TLSPrivateKeyKey) },
		"no authority":              func(_ *world, data map[string][]byte) { delete(data, observed.CAKey) },
		"an authority that is none": func(_ *world, data map[string][]byte) { data[observed.CAKey] = []byte("x") },
		"another key": func(w *world, data map[string][]byte) {
			data[corev1.TLSPrivateKeyKey] = w.theirs("other").Data[corev1.TLSPrivateKeyKey]
		},
		"another authority": func(w *world, data map[string][]byte) { data[observed.CAKey] = w.theirs("other").Data[observed.CAKey] },
		"another name":      func(w *world, data map[string][]byte) { w.issue(data, "elsewhere.svc", w.observed.Now) },
		"expired":           func(w *world, data map[string][]byte) { w.issue(data, "", w.observed.Now.Add(-400*time.Hour)) },
		"not valid yet":     func(w *world, data map[string][]byte) { w.issue(data, "", w.observed.Now.Add(time.Hour)) },
		"a clock behind":    func(w *world, data map[string][]byte) { w.issue(data, "", w.observed.Now.Add(5*time.Minute)) },
		"nothing is wrong":  func(*world, map[string][]byte) {},
	} {
		all[name] = func(w *world) {
			damage(w, w.observed.Source.Data)
			w.activeBy(v1alpha1.Certificates{Type: v1alpha1.CertificatesSecret, Secret: &v1alpha1.SecretCertificates{Name: "theirs"}})
			w.log.Reset()
		}
	}
	return all
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

// injectedBundles: caBundle is another client's. It is never overwritten, and what pods serve is judged by it.
func injectedBundles() changes {
	activate := func(w *world) {
		w.activeBy(v1alpha1.Certificates{Type: v1alpha1.CertificatesInjected, Injected: &v1alpha1.InjectedCertificates{SecretName: "theirs"}})
		w.log.Reset()
		if conversion := w.observed.CRD.Spec.Conversion; conversion == nil || len(conversion.Webhook.ClientConfig.CABundle) == 0 {
			w.t.Fatal("it is active without anything to trust, or not at all")
		}
	}
	all := changes{"nothing, and no one knows the authority": func(w *world) {
		delete(w.observed.Source.Data, observed.CAKey)
		activate(w)
	}}
	for name, inject := range map[string]func(*world) []byte{
		"the same": func(w *world) []byte { return w.observed.Source.Data[observed.CAKey] },
		"more than that": func(w *world) []byte {
			return append(w.theirs("other").Data[observed.CAKey], w.observed.Source.Data[observed.CAKey]...)
		},
		"something else": func(w *world) []byte { return w.theirs("other").Data[observed.CAKey] },
		"nothing":        func(*world) []byte { return nil },
	} {
		all[name] = func(w *world) {
			activate(w)
			w.observed.CRD.Spec.Conversion.Webhook.ClientConfig.CABundle = inject(w)
			w.observed.CRD.Annotations = map[string]string{"cert-manager.io/inject-ca-from": "conversion-system/theirs"}
		}
	}
	return all
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
			w.observed.Policy.Spec.Converter.URL.URL = v1alpha1.WebhookURL(c.url)
			w.observed.Policy.Spec.Certificates = v1alpha1.Certificates{Type: v1alpha1.CertificatesCertManager, CertManager: &v1alpha1.CertManagerCertificates{
				IssuerRef: v1alpha1.IssuerReference{Name: "company"}}}
			w.applyCRD(bothStoredNew)
			for _, s := range w.plan().Steps {
				apply, _ := s.(step.Apply)
				request, found := apply.Object.(*cmv1apply.CertificateApplyConfiguration)
				if !found {
					continue
				}
				expect.Equal(t, "names and addresses", [][]string{c.names, c.addresses}, [][]string{request.Spec.DNSNames, request.Spec.IPAddresses})
				return
			}
			t.Error("no Certificate is asked for")
		})
	}
}

// TestUnusedSecrets: what a policy uses is never among them.
func TestUnusedSecrets(t *testing.T) {
	const authority, issued, external, mounted = "-ca", "-issued", "-external-tls", "-tls"
	selfManaged := v1alpha1.Certificates{Type: v1alpha1.CertificatesSelfManaged}
	certManager := v1alpha1.Certificates{Type: v1alpha1.CertificatesCertManager, CertManager: &v1alpha1.CertManagerCertificates{}}
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
		"a Secret":                       {policyYAML, v1alpha1.Certificates{Type: v1alpha1.CertificatesSecret, Secret: &v1alpha1.SecretCertificates{Name: "theirs"}}, []string{authority, external, issued}},
		"what cert-manager issued":       {policyYAML, v1alpha1.Certificates{Type: v1alpha1.CertificatesSecret, Secret: &v1alpha1.SecretCertificates{Name: names.IssuedSecret(crontabs)}}, []string{authority, external}},
		"an injector and cert-manager's": {imageYAML, v1alpha1.Certificates{Type: v1alpha1.CertificatesInjected, Injected: &v1alpha1.InjectedCertificates{SecretName: names.IssuedSecret(crontabs)}}, []string{authority, external}},
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
			expect.Equal(t, "unused", want, certificates.UnusedSecrets(w.observed.Policy))
		})
	}
}

// TestLeftovers: they go when a change is through, and not before.
func TestLeftovers(t *testing.T) {
	theirs := v1alpha1.Certificates{Type: v1alpha1.CertificatesSecret, Secret: &v1alpha1.SecretCertificates{Name: "theirs"}}
	cases := map[string]struct {
		policy string
		change func(*world)
		left   []string
	}{
		"another source": {policyYAML, func(w *world) {
			w.observed.Policy.Spec.Certificates, w.observed.Source = theirs, w.theirs("theirs")
		}, nil},
		"another source, paused": {policyYAML, func(w *world) {
			w.observed.Policy.Spec.Paused = true
			w.observed.Policy.Spec.Certificates, w.observed.Source = theirs, w.theirs("theirs")
		}, []string{"-ca", "-issued"}},
		"another source that has nothing": {policyYAML, func(w *world) {
			w.observed.Policy.Spec.Certificates = theirs
		}, []string{"-ca", "-issued"}},
		"another converter": {policyYAML, func(w *world) {
			w.convertBy(serviceYAML)
			w.Left = append(w.Left, names.CertificateSecret(crontabs))
			w.answerAt("10.0.0.1:9443", "")
		}, []string{"-ca"}},
		"another converter that does not answer": {policyYAML, func(w *world) {
			w.convertBy(serviceYAML)
			w.Left = append(w.Left, names.CertificateSecret(crontabs))
			w.answerAt("10.0.0.1:9443", "x509")
		}, []string{"-ca", "-issued", "-tls"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.policy)
			w.activate(bothStoredNew)
			w.later(time.Hour)
			w.Left = []string{names.IssuedSecret(crontabs)}
			c.change(w)
			w.converge()
			expect.Equal(t, "the authority is there until API servers can have followed", true, w.observed.Authority != nil)
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
			expect.Equal(t, "left", want, append(left, w.Left...))
		})
	}
}

// activeBy activates a policy whose certificates come from a source.
func (w *world) activeBy(certs v1alpha1.Certificates) {
	w.observed.Policy.Spec.Certificates = certs
	w.activate(bothStoredNew)
}

// selfManaged are certificates that the operator issues, by another authority for each trigger.
func selfManaged(trigger string) v1alpha1.Certificates {
	return v1alpha1.Certificates{Type: v1alpha1.CertificatesSelfManaged, SelfManaged: &v1alpha1.SelfManagedCertificates{RotationTrigger: trigger}}
}

func rotation(w *world) {
	w.say("Everything is active.")
	w.activeBy(selfManaged(""))
	w.later(time.Hour)
	w.say("The serving certificate is due: no one notices.")
	w.later(certificates.DefaultDuration * 3 / 4)
	w.say("Another authority is asked for: it is trusted, and not used yet.")
	w.observed.Policy.Spec.Certificates = selfManaged("the key was seen")
	w.converge()
	w.say("API servers have had their time, and pods prove that they serve by it.")
	w.settleAPIServers()
	w.say("The conversion is dropped in the middle of another rotation.")
	w.observed.Policy.Spec.Certificates = selfManaged("and again")
	w.converge()
	w.loseConversion("kubectl-replace")
	w.settleAPIServers()
	w.say("It is asked for while the policy is paused.")
	w.observed.Policy.Spec.Paused = true
	w.observed.Policy.Spec.Certificates = selfManaged("again")
	w.converge()
	w.say("It is resumed.")
	w.pause(false)
	w.settleAPIServers()
}

func rotationDuringMigration(w *world) {
	w.say("A migration runs, and another authority is asked for: it waits.")
	w.activeBy(selfManaged(""))
	w.trigger("now")
	w.record(contract.Record{State: contract.StateRunning, Counters: contract.Counters{Total: 1000, Rewritten: 10}})
	w.observed.Policy.Spec.Certificates = selfManaged("now")
	w.converge()
	w.say("The migration is done.")
	w.completes(1000)
	w.settleAPIServers()
	w.say("Another migration runs, and takes until the authority is about to expire: it is stopped, and made again.")
	w.trigger("again")
	w.record(contract.Record{State: contract.StateRunning, Counters: contract.Counters{Total: 1000, Rewritten: 10}})
	w.later(certificates.DefaultCADuration * 9 / 10)
	w.settleAPIServers()
	w.say("It is done, and the previous authority can go.")
	w.completes(1000)
}

func authorityLost(w *world) {
	w.say("Everything is active.")
	w.activeBy(v1alpha1.Certificates{})
	w.later(time.Hour)
	w.say("The Secret of the authority is deleted: another one takes over.")
	w.observed.Authority = nil
	w.converge()
	w.settleAPIServers()
	w.say("No one looks for years, and everything has expired: nothing can get worse.")
	w.later(2 * certificates.DefaultCADuration)
}

func certificatesOfOthers(w *world) {
	w.say("The Secret does not exist yet.")
	w.activeBy(v1alpha1.Certificates{Type: v1alpha1.CertificatesSecret, Secret: &v1alpha1.SecretCertificates{Name: "theirs"}})
	w.say("It lacks the certificate of its authority.")
	w.observed.Source = w.theirs("theirs")
	delete(w.observed.Source.Data, observed.CAKey)
	w.converge()
	w.say("It is complete.")
	w.observed.Source = w.theirs("theirs")
	w.converge()
	w.later(time.Hour)
	w.say("It is renewed by another authority.")
	w.observed.Source = w.theirs("theirs")
	w.converge()
	w.settleAPIServers()
	w.say("Its key is exchanged for another.")
	w.observed.Source = w.observed.Source.DeepCopy()
	w.observed.Source.Data[corev1.TLSPrivateKeyKey] = w.theirs("other").Data[corev1.TLSPrivateKeyKey]
	w.converge()
	w.say("The policy turns to an authority of its own.")
	w.observed.Policy.Spec.Certificates = v1alpha1.Certificates{Type: v1alpha1.CertificatesSelfManaged}
	w.converge()
	w.settleAPIServers()
}

func certificatesByCertManager(w *world) {
	w.say("cert-manager is not installed.")
	w.observed.Request.NotInstalled = true
	w.activeBy(v1alpha1.Certificates{Type: v1alpha1.CertificatesCertManager, CertManager: &v1alpha1.CertManagerCertificates{
		IssuerRef: v1alpha1.IssuerReference{Name: "company", Kind: "ClusterIssuer", Group: "cert-manager.io"}}})
	w.say("It is installed, and asked.")
	w.observed.Request = observed.Request{Message: "Referenced \"ClusterIssuer\" not found"}
	w.converge()
	w.say("It issues.")
	w.observed.Request.Message = ""
	w.observed.Source = w.theirs("issued")
	w.converge()
	w.later(time.Hour)
	w.say("It renews by another authority.")
	w.observed.Source = w.theirs("issued")
	w.converge()
	w.settleAPIServers()
}

func certificatesInjected(w *world) {
	w.say("Another client is to write caBundle, and says what it will be.")
	w.observed.Source = w.theirs("theirs")
	w.activeBy(v1alpha1.Certificates{Type: v1alpha1.CertificatesInjected, Injected: &v1alpha1.InjectedCertificates{SecretName: "theirs"}})
	w.say("The injector writes the same.")
	w.observed.CRD.Annotations = map[string]string{"cert-manager.io/inject-ca-from": "conversion-system/theirs"}
	w.later(time.Hour)
	w.say("The certificate is renewed by another authority: pods keep theirs until it is injected.")
	before := w.observed.Source.Data[observed.CAKey]
	w.observed.Source = w.theirs("theirs")
	w.converge()
	w.say("The injector adds it.")
	w.observed.CRD.Spec.Conversion.Webhook.ClientConfig.CABundle = slices.Concat(before, w.observed.Source.Data[observed.CAKey])
	w.observed.CRD.Generation++
	w.converge()
	w.settleAPIServers()
	w.say("The injector writes something else.")
	w.observed.CRD.Spec.Conversion.Webhook.ClientConfig.CABundle = w.theirs("other").Data[observed.CAKey]
	w.observed.CRD.Generation++
	w.converge()
}
