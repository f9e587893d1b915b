// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/plan/certificates"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
)

// activeBy activates a policy whose certificates come from a source.
func (w *world) activeBy(certs v1alpha1.Certificates) {
	w.observed.Policy.Spec.Certificates = certs
	w.observed.Policy.Spec.Migration.Mode = v1alpha1.MigrationOnTrigger
	w.applyCRD(bothStoredNew)
	w.converge()
}

func rotation(w *world) {
	w.say("Everything is active.")
	w.activeBy(v1alpha1.Certificates{SelfManaged: &v1alpha1.SelfManagedCertificates{}})
	w.wait(time.Hour)
	w.say("The serving certificate is due: no one notices.")
	w.wait(certificates.DefaultDuration * 3 / 4)
	w.say("Another authority is asked for: it is trusted, and not used yet.")
	w.observed.Policy.Spec.Certificates.SelfManaged.RotationTrigger = "the key was seen"
	w.converge()
	w.say("API servers have had their time, and pods prove that they serve by it.")
	w.wait(w.observed.Settings.PropagationDelay)
	w.say("The conversion is dropped in the middle of another rotation.")
	w.observed.Policy.Spec.Certificates.SelfManaged.RotationTrigger = "and again"
	w.converge()
	w.drop("kubectl-replace")
	w.converge()
	w.wait(w.observed.Settings.PropagationDelay)
	w.say("It is asked for while the policy is suspended.")
	w.observed.Policy.Spec.Suspend = true
	w.observed.Policy.Spec.Certificates.SelfManaged.RotationTrigger = "again"
	w.converge()
	w.say("It is resumed.")
	w.observed.Policy.Spec.Suspend = false
	w.converge()
	w.wait(w.observed.Settings.PropagationDelay)
}

func rotationDuringMigration(w *world) {
	w.say("A migration runs, and another authority is asked for: it waits.")
	w.activeBy(v1alpha1.Certificates{SelfManaged: &v1alpha1.SelfManagedCertificates{}})
	w.observed.Policy.Spec.Migration.Trigger = "now"
	w.converge()
	w.record(contract.Record{State: contract.StateRunning, Counters: contract.Counters{Total: 1000, Rewritten: 10}})
	w.observed.Policy.Spec.Certificates.SelfManaged.RotationTrigger = "now"
	w.converge()
	w.say("The migration is done.")
	w.record(contract.Record{State: contract.StateCompleted, Counters: contract.Counters{Total: 1000, Rewritten: 1000}})
	w.converge()
	w.wait(w.observed.Settings.PropagationDelay)
	w.say("Another migration runs, and takes until the authority is about to expire: it is stopped, and made again.")
	w.observed.Policy.Spec.Migration.Trigger = "again"
	w.converge()
	w.record(contract.Record{State: contract.StateRunning, Counters: contract.Counters{Total: 1000, Rewritten: 10}})
	w.wait(certificates.DefaultCADuration * 9 / 10)
	w.wait(w.observed.Settings.PropagationDelay)
	w.say("It is done, and the previous authority can go.")
	w.record(contract.Record{State: contract.StateCompleted, Counters: contract.Counters{Total: 1000, Rewritten: 1000}})
	w.converge()
}

func authorityLost(w *world) {
	w.say("Everything is active.")
	w.activeBy(v1alpha1.Certificates{})
	w.wait(time.Hour)
	w.say("The Secret of the authority is deleted: another one takes over.")
	w.observed.Authority = nil
	w.converge()
	w.wait(w.observed.Settings.PropagationDelay)
	w.say("No one looks for years, and everything has expired: nothing can get worse.")
	w.wait(2 * certificates.DefaultCADuration)
}

func certificatesOfOthers(w *world) {
	w.say("The Secret does not exist yet.")
	w.activeBy(v1alpha1.Certificates{Secret: &v1alpha1.SecretCertificates{Name: "theirs"}})
	w.say("It lacks the certificate of its authority.")
	w.observed.Source = w.theirs("theirs")
	delete(w.observed.Source.Data, observed.CAKey)
	w.converge()
	w.say("It is complete.")
	w.observed.Source = w.theirs("theirs")
	w.converge()
	w.wait(time.Hour)
	w.say("It is renewed by another authority.")
	w.observed.Source = w.theirs("theirs")
	w.converge()
	w.wait(w.observed.Settings.PropagationDelay)
	w.say("Its key is exchanged for another.")
	w.observed.Source = w.observed.Source.DeepCopy()
	w.observed.Source.Data[corev1.TLSPrivateKeyKey] = w.theirs("other").Data[corev1.TLSPrivateKeyKey]
	w.converge()
	w.say("The policy turns to an authority of its own.")
	w.observed.Policy.Spec.Certificates = v1alpha1.Certificates{SelfManaged: &v1alpha1.SelfManagedCertificates{}}
	w.converge()
	w.wait(w.observed.Settings.PropagationDelay)
}

func certificatesByCertManager(w *world) {
	w.say("cert-manager is not installed.")
	w.observed.Request.NotInstalled = true
	w.activeBy(v1alpha1.Certificates{CertManager: &v1alpha1.CertManagerCertificates{
		IssuerRef: v1alpha1.IssuerReference{Name: "company", Kind: "ClusterIssuer", Group: "cert-manager.io"}}})
	w.say("It is installed, and asked.")
	w.observed.Request = observed.Request{Message: "Referenced \"ClusterIssuer\" not found"}
	w.converge()
	w.say("It issues.")
	w.observed.Request.Message = ""
	w.observed.Source = w.theirs("issued")
	w.converge()
	w.wait(time.Hour)
	w.say("It renews by another authority.")
	w.observed.Source = w.theirs("issued")
	w.converge()
	w.wait(w.observed.Settings.PropagationDelay)
}

func certificatesInjected(w *world) {
	w.say("Another client is to write caBundle, and says what it will be.")
	w.observed.Source = w.theirs("theirs")
	w.activeBy(v1alpha1.Certificates{Injected: &v1alpha1.InjectedCertificates{SecretName: "theirs"}})
	w.say("The injector writes the same.")
	w.observed.CRD.Annotations = map[string]string{"cert-manager.io/inject-ca-from": "conversion-system/theirs"}
	w.wait(time.Hour)
	w.say("The certificate is renewed by another authority: pods keep theirs until it is injected.")
	before := w.observed.Source.Data[observed.CAKey]
	w.observed.Source = w.theirs("theirs")
	w.converge()
	w.say("The injector adds it.")
	w.observed.CRD.Spec.Conversion.Webhook.ClientConfig.CABundle = slices.Concat(before, w.observed.Source.Data[observed.CAKey])
	w.observed.CRD.Generation++
	w.converge()
	w.wait(w.observed.Settings.PropagationDelay)
	w.say("The injector writes something else.")
	w.observed.CRD.Spec.Conversion.Webhook.ClientConfig.CABundle = w.theirs("other").Data[observed.CAKey]
	w.observed.CRD.Generation++
	w.converge()
}
