// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certmanager

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	cmv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/pki"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

const name = "crontabs.example.com"

// byCertManager has an Issuer of cert-manager issue the certificate.
var byCertManager = v1alpha1.Certificates{CertManager: &v1alpha1.CertManagerCertificates{IssuerRef: v1alpha1.IssuerReference{Name: "company"}}}

// TestCertManagerIssues: cert-manager issues the certificate for a policy.
func TestCertManagerIssues(t *testing.T) {
	c := start(t)
	object := policy(name)
	object.Spec.Certificates = byCertManager
	c.create(crd(name))
	c.create(object)
	c.playIssuer(pods{names.Child(name), names.CertificateSecret(name), names.IssuedSecret(name), func() metav1.Condition {
		return c.condition(v1alpha1.CertificatesReadyCondition)
	}})
}

// TestCertManagerIssuesForFleet: cert-manager issues the certificate of a fleet, for its policies.
func TestCertManagerIssuesForFleet(t *testing.T) {
	c := start(t)
	fleet := &v1alpha1.ConverterFleet{ObjectMeta: metav1.ObjectMeta{Name: "shared"}}
	fleet.Spec.Certificates = &byCertManager
	object := policy(name)
	object.Spec.ConverterFleetName = "shared"
	c.create(fleet)
	c.create(crd(name))
	c.create(object)
	_, serving, issued := names.FleetSecrets(fleet.Name)
	c.playIssuer(pods{names.Fleet(fleet.Name), serving, issued, func() metav1.Condition {
		expect.NoError(t, c.Get(c.ctx, client.ObjectKeyFromObject(fleet), fleet))
		return conditionIn(fleet.Status.Conditions, v1alpha1.CertificatesReadyCondition)
	}})
}

// pods are the names of a Deployment and its Service, of the Secret with the serving certificate,
// and of the Secret that cert-manager writes.
type pods struct {
	name, serving, issued string
	// condition is CertificatesReady of the policy or the fleet that the pods belong to.
	condition func() metav1.Condition
}

// playIssuer waits for the certificate, first until the issuer is ready, and later until there is
// one of another authority, which API servers trust before pods serve with it.
func (c *cluster) playIssuer(pods pods) {
	c.Helper()
	expect.Eventually(c.T, "the condition says whom it waits for", func() (bool, string) {
		condition := pods.condition()
		return condition.Reason == v1alpha1.ReasonIssuing && strings.Contains(condition.Message, "from Issuer company: "), condition.Message
	})

	first := c.authority()
	c.create(&corev1.Secret{ObjectMeta: here("company"), Type: corev1.SecretTypeTLS, Data: keyPair(first)})
	c.create(&cmv1.Issuer{ObjectMeta: here("company"), Spec: cmv1.IssuerSpec{
		IssuerConfig: cmv1.IssuerConfig{CA: &cmv1.CAIssuer{SecretName: "company"}}}})
	testenv.RunPods(c.T, c.Client, client.ObjectKey{Namespace: system, Name: pods.name})
	c.waitReady()
	c.checkServed(pods, first)

	before, second := c.crd().Generation, c.authority()
	company := c.secret("company")
	company.Data = keyPair(second)
	expect.NoError(c.T, c.Update(c.ctx, company))
	// cert-manager does not reissue when only the authority changes.
	expect.NoError(c.T, c.Delete(c.ctx, c.secret(pods.issued)))
	expect.Eventually(c.T, "API servers trust the other authority alone", func() (bool, string) {
		return bytes.Equal(c.crd().Spec.Conversion.Webhook.ClientConfig.CABundle, second.Certificate), pods.condition().Message
	})
	c.waitReady()
	c.checkServed(pods, second)
	if got := c.crd().Generation - before; got != 2 {
		c.Errorf("the CustomResourceDefinition was written %d times for another authority, want 2", got)
	}
}

func here(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: system, Name: name} }

func keyPair(pair pki.KeyPair) map[string][]byte {
	return map[string][]byte{corev1.TLSCertKey: pair.Certificate, corev1.TLSPrivateKeyKey: pair.Key}
}

func (c *cluster) authority() pki.KeyPair {
	c.Helper()
	pair, err := pki.NewAuthority("company", time.Now(), 1000*time.Hour)
	expect.NoError(c.T, err)
	return pair
}

// checkServed verifies the mounted certificate with the authority.
func (c *cluster) checkServed(pods pods, authority pki.KeyPair) {
	c.Helper()
	trusted, err := pki.ParseBundle(authority.Certificate)
	expect.NoError(c.T, err)
	served := c.secret(pods.serving)
	if err := pki.CheckLeaf(observed.KeyPair(served), trusted, names.ServiceName(pods.name, system), time.Now()); err != nil {
		c.Errorf("what pods serve: %v", err)
	}
	if !bytes.Equal(served.Data[observed.CAKey], authority.Certificate) {
		c.Error("what is to be trusted is not the authority")
	}
}

func (c *cluster) condition(kind string) metav1.Condition {
	c.Helper()
	policy := &v1alpha1.ConversionPolicy{}
	expect.NoError(c.T, c.Get(c.ctx, client.ObjectKey{Name: name}, policy))
	return conditionIn(policy.Status.Conditions, kind)
}

func conditionIn(conditions []metav1.Condition, kind string) metav1.Condition {
	if found := apimeta.FindStatusCondition(conditions, kind); found != nil {
		return *found
	}
	return metav1.Condition{}
}

func (c *cluster) waitReady() {
	c.Helper()
	expect.Eventually(c.T, "the policy is ready", func() (bool, string) {
		ready := c.condition(v1alpha1.ReadyCondition)
		certificates := c.condition(v1alpha1.CertificatesReadyCondition)
		return ready.Status == metav1.ConditionTrue && certificates.Reason == v1alpha1.ReasonIssued, fmt.Sprint(ready.Message, certificates.Message)
	})
}
