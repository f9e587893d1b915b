//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	cmv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// certified creates a kind, and a policy with a source of certificates.
func certified(t *testing.T, group string, source v1alpha1.Certificates) (policy string) {
	t.Helper()
	define(t, group, "v1", "v1beta1")
	createPolicy(t, group, func(policy *v1alpha1.ConversionPolicy) { policy.Spec.Certificates = source })
	return "crontabs." + group
}

func getSecret(t *testing.T, name string) *corev1.Secret {
	t.Helper()
	return get(t, name, &corev1.Secret{})
}

// foreignSecret is a Secret with the certificate of another authority, which another client maintains.
func foreignSecret(t *testing.T, name, serverName string, labels map[string]string) *corev1.Secret {
	t.Helper()
	authority, err := pki.NewAuthority("theirs", time.Now(), time.Hour)
	expect.NoError(t, err)
	leaf, err := pki.IssueLeaf(authority, serverName, time.Now(), time.Hour)
	expect.NoError(t, err)
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: name, Labels: labels}, Data: map[string][]byte{
		corev1.TLSCertKey: leaf.Certificate, corev1.TLSPrivateKeyKey: leaf.Key, observed.CAKey: authority.Certificate}}
}

// TestForeignSecret: a Secret of another client is missing, invalid and valid.
func TestForeignSecret(t *testing.T) {
	t.Parallel()
	name := certified(t, "secret.example.com", v1alpha1.Certificates{Type: v1alpha1.CertificatesSecret, Secret: &v1alpha1.SecretCertificates{Name: "missing"}})
	waitFor(t, name, v1alpha1.CertificatesReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonNotFound, []string{"Secret " + system + "/missing does not exist"})
	expect.NoError(t, cluster.Create(t.Context(), foreignSecret(t, "missing", "elsewhere.svc", nil)))
	waitFor(t, name, v1alpha1.CertificatesReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonInvalidCertificate, []string{names.ServerName(name, system)})
	expect.NoError(t, cluster.Update(t.Context(), foreignSecret(t, "missing", names.ServerName(name, system), nil)))
	waitReady(t, name, v1alpha1.ReasonSucceeded)
}

// TestForeignSecretOfFleet: a fleet follows the Secret of another client, which is missing, valid,
// and then invalid, although nothing else of the fleet changes.
func TestForeignSecretOfFleet(t *testing.T) {
	t.Parallel()
	fleet := &v1alpha1.ConverterFleet{ObjectMeta: metav1.ObjectMeta{Name: "secret"}}
	fleet.Spec.Certificates = &v1alpha1.Certificates{Type: v1alpha1.CertificatesSecret, Secret: &v1alpha1.SecretCertificates{Name: "of-fleet"}}
	expect.NoError(t, cluster.Create(t.Context(), fleet))
	t.Cleanup(func() { expect.NoError(t, cluster.Delete(context.WithoutCancel(t.Context()), fleet)) })
	waits := func(reason string) {
		t.Helper()
		expect.Eventually(t, "the fleet reports "+reason, func() (bool, string) {
			expect.NoError(t, cluster.Get(t.Context(), client.ObjectKeyFromObject(fleet), fleet))
			condition := apimeta.FindStatusCondition(fleet.Status.Conditions, v1alpha1.CertificatesReadyCondition)
			return condition != nil && condition.Reason == reason, fmt.Sprintf("%+v", condition)
		})
	}
	waits(v1alpha1.ReasonNotFound)
	expect.NoError(t, cluster.Create(t.Context(), foreignSecret(t, "of-fleet", names.FleetServerName(fleet.Name, system), nil)))
	waits(v1alpha1.ReasonIssued)
	expect.NoError(t, cluster.Update(t.Context(), foreignSecret(t, "of-fleet", "elsewhere.svc", nil)))
	waits(v1alpha1.ReasonInvalidCertificate)
}

// TestCertManager: cert-manager is installed later, and accepts the Certificate that the operator
// applies. The test acts as cert-manager; make certmanager does without.
func TestCertManager(t *testing.T) {
	t.Parallel()
	name := certified(t, "certmanager.example.com", v1alpha1.Certificates{Type: v1alpha1.CertificatesCertManager, CertManager: &v1alpha1.CertManagerCertificates{
		IssuerRef: v1alpha1.IssuerReference{Name: "company", Kind: "ClusterIssuer"}}})
	waitFor(t, name, v1alpha1.CertificatesReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonNotFound, []string{"install cert-manager"})
	installCertManager(t)
	request := &cmv1.Certificate{}
	expect.Eventually(t, "a Certificate is asked for", func() (bool, string) {
		err := cluster.Get(t.Context(), client.ObjectKey{Namespace: system, Name: names.IssuedSecret(name)}, request)
		return err == nil, fmt.Sprint(err)
	})
	another := changed(request.DeepCopy(), func(c *cmv1.Certificate) { c.Spec.SecretName = "another" })
	refuse(t, "only server certificates", func(ctx context.Context) error { return asManager(t).Update(ctx, another.DeepCopy(), client.DryRunAll) })
	request.Status.Conditions = []cmv1.CertificateCondition{{Type: cmv1.CertificateConditionReady, Status: "False", Message: "no such issuer"}}
	expect.NoError(t, cluster.Status().Update(t.Context(), request))
	waitFor(t, name, v1alpha1.CertificatesReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonIssuing, []string{"no such issuer"})
	expect.NoError(t, cluster.Create(t.Context(), foreignSecret(t, request.Spec.SecretName, request.Spec.DNSNames[0], request.Spec.SecretTemplate.Labels)))
	waitReady(t, name, v1alpha1.ReasonSucceeded)
	waitRotated(t, name, nil)
	issued := string(getSecret(t, request.Spec.SecretName).Data[observed.CAKey])
	expect.Equal(t, "caBundle", issued, string(getCRD(t, name).Spec.Conversion.Webhook.ClientConfig.CABundle))
	checkIdle(t, name)

	patch(t, getPolicy(t, name), `{"spec":{"certificates":{"type":"SelfManaged","certManager":null}}}`)
	for _, left := range []client.Object{&cmv1.Certificate{}, &corev1.Secret{}} {
		waitGone(t, names.IssuedSecret(name), left)
	}
	waitReady(t, name, v1alpha1.ReasonSucceeded)
	checkIdle(t, name)
}

// installCertManager creates the CustomResourceDefinition of cert-manager's Certificate.
func installCertManager(t *testing.T) {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/cert-manager/cert-manager").Output()
	expect.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "deploy", "crds", "cert-manager.io_certificates.yaml"))
	expect.NoError(t, err)
	create(t, string(text), &apiextensionsv1.CustomResourceDefinition{})
}

// TestInjected: the operator never overwrites an injected caBundle.
func TestInjected(t *testing.T) {
	t.Parallel()
	const name = "crontabs.injected.example.com"
	ours, other := foreignSecret(t, "injected", names.ServerName(name, system), nil), foreignSecret(t, "other", names.ServerName(name, system), nil)
	expect.NoError(t, cluster.Create(t.Context(), ours))
	certified(t, "injected.example.com", v1alpha1.Certificates{Type: v1alpha1.CertificatesInjected, Injected: &v1alpha1.InjectedCertificates{SecretName: "injected"}})
	waitReady(t, name, v1alpha1.ReasonSucceeded)
	waitRotated(t, name, nil)
	inject := func(bundle []byte) int64 {
		return testenv.ChangeCRD(t, cluster, name, func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Annotations = map[string]string{"cert-manager.io/inject-ca-from": system + "/injected"}
			crd.Spec.Conversion.Webhook.ClientConfig.CABundle = bundle
		}).Generation
	}
	generation := inject(other.Data[observed.CAKey])
	waitFor(t, name, v1alpha1.CertificatesReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonInvalidCertificate, []string{"unknown authority"})
	expect.Equal(t, "generation after the injection", generation, getCRD(t, name).Generation)
	inject(append(other.Data[observed.CAKey], ours.Data[observed.CAKey]...))
	waitReady(t, name, v1alpha1.ReasonSucceeded)
}
