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
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/cli/export"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// A policy in a fleet. TestCertManager in internal/test/manager has a policy with its own certificate.
const name, fleet = "crontabs.example.com", "shared"

// TestCertManagerIssues waits for the certificate of a fleet, first until the issuer is ready, and later until
// there is one of another authority, which API servers trust before pods serve with it.
func TestCertManagerIssues(t *testing.T) {
	c := start(t)
	certificates := &v1alpha1.Certificates{Type: v1alpha1.CertificatesCertManager, CertManager: &v1alpha1.CertManagerCertificates{IssuerRef: v1alpha1.IssuerReference{Name: "company"}}}
	c.create(&v1alpha1.ConverterFleet{ObjectMeta: metav1.ObjectMeta{Name: fleet}, Spec: v1alpha1.ConverterFleetSpec{Certificates: certificates}})
	c.createFrom("../../../config/samples/crontab-hostport/4-crd-storage-v1.yaml", &apiextensionsv1.CustomResourceDefinition{})
	c.createFrom("testdata/policy.yaml", &v1alpha1.ConversionPolicy{})
	_, _, issued := names.FleetSecrets(fleet)
	expect.Eventually(c.T, "the condition says whom it waits for", func() (bool, string) {
		condition := c.certificates()
		return condition.Reason == v1alpha1.ReasonIssuing && strings.Contains(condition.Message, "from Issuer company: "), condition.Message
	})

	first := c.authority()
	c.create(&corev1.Secret{ObjectMeta: here("company"), Type: corev1.SecretTypeTLS, Data: keyPair(first)})
	c.create(&cmv1.Issuer{ObjectMeta: here("company"), Spec: cmv1.IssuerSpec{
		IssuerConfig: cmv1.IssuerConfig{CA: &cmv1.CAIssuer{SecretName: "company"}}}})
	c.waitReady()
	c.checkServed(first)

	before, second := c.crd().Generation, c.authority()
	company := c.secret("company")
	company.Data = keyPair(second)
	expect.NoError(c.T, c.Update(c.ctx, company))
	// cert-manager does not reissue when only the authority changes.
	expect.NoError(c.T, c.Delete(c.ctx, c.secret(issued)))
	expect.Eventually(c.T, "API servers trust the other authority alone", func() (bool, string) {
		return bytes.Equal(c.crd().Spec.Conversion.Webhook.ClientConfig.CABundle, second.Certificate), c.certificates().Message
	})
	c.waitReady()
	c.checkServed(second)
	if got := c.crd().Generation - before; got != 2 {
		c.Errorf("the CustomResourceDefinition was written %d times for another authority, want 2", got)
	}
}

// TestExportedConverter waits for the certificate of a converter that a chart ships, by an authority of its own.
func TestExportedConverter(t *testing.T) {
	c := start(t)
	shipped := export.Converter{CRD: &apiextensionsv1.CustomResourceDefinition{}, Ruleset: &conversion.Ruleset{}, Name: "shipped", Namespace: system, Certificates: export.ByCertManager}
	files, err := shipped.Files(export.Manifests)
	expect.NoError(t, err)
	for document := range strings.SplitSeq(files["converter.yaml"], "---\n") {
		if strings.HasPrefix(document, "apiVersion: cert-manager.io/") {
			object := &unstructured.Unstructured{}
			expect.NoError(t, yaml.Unmarshal([]byte(document), &object.Object))
			c.create(object)
		}
	}
	expect.Eventually(t, "the certificate is valid", func() (bool, string) {
		secret := &corev1.Secret{}
		err := c.Get(c.ctx, client.ObjectKey{Namespace: system, Name: "shipped-tls"}, secret)
		if err == nil {
			roots, _ := pki.ParseBundle(secret.Data[observed.CAKey])
			err = pki.CheckLeaf(observed.KeyPair(secret), roots, "shipped."+system+".svc", time.Now())
		}
		return err == nil, fmt.Sprint(err)
	})
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
func (c *cluster) checkServed(authority pki.KeyPair) {
	c.Helper()
	trusted, err := pki.ParseBundle(authority.Certificate)
	expect.NoError(c.T, err)
	_, serving, _ := names.FleetSecrets(fleet)
	served := c.secret(serving)
	if err := pki.CheckLeaf(observed.KeyPair(served), trusted, names.FleetServerName(fleet, system), time.Now()); err != nil {
		c.Errorf("what pods serve: %v", err)
	}
	if !bytes.Equal(served.Data[observed.CAKey], authority.Certificate) {
		c.Error("what is to be trusted is not the authority")
	}
}

// certificates is the condition of the fleet's certificates.
func (c *cluster) certificates() metav1.Condition {
	c.Helper()
	found := &v1alpha1.ConverterFleet{}
	expect.NoError(c.T, c.Get(c.ctx, client.ObjectKey{Name: fleet}, found))
	if condition := apimeta.FindStatusCondition(found.Status.Conditions, v1alpha1.CertificatesReadyCondition); condition != nil {
		return *condition
	}
	return metav1.Condition{}
}

// waitReady waits until the policy is ready, and the fleet has its certificate.
func (c *cluster) waitReady() {
	c.Helper()
	expect.Eventually(c.T, "the policy is ready", func() (bool, string) {
		found := &v1alpha1.ConversionPolicy{}
		expect.NoError(c.T, c.Get(c.ctx, client.ObjectKey{Name: name}, found))
		return apimeta.IsStatusConditionTrue(found.Status.Conditions, v1alpha1.ReadyCondition) && c.certificates().Reason == v1alpha1.ReasonIssued,
			fmt.Sprint(c.certificates().Message, found.Status.Conditions)
	})
}
