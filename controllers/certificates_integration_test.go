//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/certificates"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// activateWith creates a policy with a source of certificates.
func activateWith(t *testing.T, group, certs string) string {
	t.Helper()
	name := "crontabs." + group
	create(t, manifest(group, "v1beta1", "v1"), &apiextensionsv1.CustomResourceDefinition{})
	create(t, strings.Replace(policy(group), "migration:", "certificates: "+certs+", migration:", 1), &v1alpha1.ConversionPolicy{})
	return name
}

func ready(t *testing.T, name string) {
	t.Helper()
	waitFor(t, name, v1alpha1.WebhookAvailableCondition, metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
	pods.run(t, name)
	waitFor(t, name, v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	atRest(t, name)
}

// atRest waits until the rotation has ended and the status is up to date.
func atRest(t *testing.T, name string) {
	t.Helper()
	expect.Eventually(t, "the rotation is over", func() (bool, string) {
		secret := getSecret(t, names.CertificateSecret(name))
		rotation := getPolicy(t, name).Status.Rotation
		return rotation != nil && rotation.State == v1alpha1.RotationIdle && secret.Annotations[certificates.TrustedAnnotation] != "",
			fmt.Sprintf("%v, annotations %v", rotation, secret.Annotations)
	})
}

func getSecret(t *testing.T, name string) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	expect.NoError(t, cluster.Get(t.Context(), client.ObjectKey{Namespace: system, Name: name}, secret))
	return secret
}

// theirs creates a Secret of another client.
func theirs(t *testing.T, name, serverName string, labels map[string]string) *corev1.Secret {
	t.Helper()
	authority, err := pki.NewAuthority("theirs", time.Now(), time.Hour)
	expect.NoError(t, err)
	leaf, err := pki.IssueLeaf(authority, serverName, time.Now(), time.Hour)
	expect.NoError(t, err)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: name, Labels: labels},
		Data: map[string][]byte{
			corev1.TLSCertKey: leaf.Certificate, corev1.TLSPrivateKeyKey: leaf.Key, observed.CAKey: authority.Certificate},
	}
}

// TestForeignSecret: a Secret of another client is missing, invalid and valid.
func TestForeignSecret(t *testing.T) {
	name := activateWith(t, "secret.example.com", "{secret: {name: theirs}}")
	waitFor(t, name, v1alpha1.CertificatesReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonSecretNotFound)
	expect.NoError(t, cluster.Create(t.Context(), theirs(t, "theirs", "elsewhere.svc", nil)))
	condition := waitFor(t, name, v1alpha1.CertificatesReadyCondition, metav1.ConditionFalse, string(pki.WrongName))
	expect.Contains(t, "the message", condition.Message, names.ServerName(name, system))
	replace(t, theirs(t, "theirs", names.ServerName(name, system), nil))
	ready(t, name)
}

// TestForeignSecretOfFleet: a fleet follows the Secret of another client, which is missing, valid,
// and then invalid, although nothing else of the fleet changes.
func TestForeignSecretOfFleet(t *testing.T) {
	fleet := &v1alpha1.ConverterFleet{ObjectMeta: metav1.ObjectMeta{Name: "secret"}}
	fleet.Spec.Certificates = &v1alpha1.Certificates{Secret: &v1alpha1.SecretCertificates{Name: "of-fleet"}}
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
	waits(v1alpha1.ReasonSecretNotFound)
	expect.NoError(t, cluster.Create(t.Context(), theirs(t, "of-fleet", names.FleetServerName(fleet.Name, system), nil)))
	waits(v1alpha1.ReasonIssued)
	replace(t, theirs(t, "of-fleet", "elsewhere.svc", nil))
	waits(string(pki.WrongName))
}

func replace(t *testing.T, secret *corev1.Secret) {
	t.Helper()
	there := getSecret(t, secret.Name)
	there.Data = secret.Data
	expect.NoError(t, cluster.Update(t.Context(), there))
}

// TestCertManager: cert-manager is installed later, and accepts the Certificate that the operator
// applies.
func TestCertManager(t *testing.T) {
	name := activateWith(t, "certmanager.example.com", "{certManager: {issuerRef: {name: company, kind: ClusterIssuer}}}")
	waitFor(t, name, v1alpha1.CertificatesReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonCertManagerNotInstalled)
	installCertManager(t)
	request := &cmv1.Certificate{}
	expect.Eventually(t, "a Certificate is asked for", func() (bool, string) {
		err := cluster.Get(t.Context(), client.ObjectKey{Namespace: system, Name: names.IssuedSecret(name)}, request)
		return err == nil, fmt.Sprint(err)
	})
	request.Status.Conditions = []cmv1.CertificateCondition{{Type: cmv1.CertificateConditionReady, Status: "False", Message: "no such issuer"}}
	expect.NoError(t, cluster.Status().Update(t.Context(), request))
	expect.Eventually(t, "the condition says why nothing was issued", func() (bool, string) {
		condition := apimeta.FindStatusCondition(getPolicy(t, name).Status.Conditions, v1alpha1.CertificatesReadyCondition)
		return condition.Reason == v1alpha1.ReasonIssuing && strings.Contains(condition.Message, "no such issuer"), condition.Message
	})
	expect.NoError(t, cluster.Create(t.Context(), theirs(t, request.Spec.SecretName, request.Spec.DNSNames[0], request.Spec.SecretTemplate.Labels)))
	ready(t, name)
	issued := string(getSecret(t, request.Spec.SecretName).Data[observed.CAKey])
	expect.Equal(t, "caBundle", issued, string(getCRD(t, name).Spec.Conversion.Webhook.ClientConfig.CABundle))
	checkIdle(t, name)

	changePolicy(t, name, func(spec *v1alpha1.ConversionPolicySpec) {
		spec.Certificates = v1alpha1.Certificates{SelfManaged: &v1alpha1.SelfManagedCertificates{}}
	})
	for _, left := range []client.Object{&cmv1.Certificate{}, &corev1.Secret{}} {
		expect.Eventually(t, fmt.Sprintf("the %T of the previous source is deleted", left), func() (bool, string) {
			err := cluster.Get(t.Context(), client.ObjectKey{Namespace: system, Name: names.IssuedSecret(name)}, left)
			return apierrors.IsNotFound(err), fmt.Sprint(err)
		})
	}
	waitFor(t, name, v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	checkIdle(t, name)
}

// installCertManager creates the CustomResourceDefinition of cert-manager's Certificate.
func installCertManager(t *testing.T) {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/cert-manager/cert-manager").Output()
	expect.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "deploy", "crds", "cert-manager.io_certificates.yaml"))
	expect.NoError(t, err)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	unmarshal(t, string(text), crd)
	if err := cluster.Create(t.Context(), crd); !apierrors.IsAlreadyExists(err) {
		expect.NoError(t, err)
	}
}

// TestInjected: the operator never overwrites an injected caBundle.
func TestInjected(t *testing.T) {
	const name = "crontabs.injected.example.com"
	expect.NoError(t, cluster.Create(t.Context(), theirs(t, "injected", names.ServerName(name, system), nil)))
	activateWith(t, "injected.example.com", "{injected: {secretName: injected}}")
	ready(t, name)
	other := theirs(t, "other", names.ServerName(name, system), nil)
	inject := func(bundle []byte) int64 {
		return changeCRD(t, name, func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Annotations = map[string]string{"cert-manager.io/inject-ca-from": system + "/injected"}
			crd.Spec.Conversion.Webhook.ClientConfig.CABundle = bundle
		}).Generation
	}
	generation := inject(other.Data[observed.CAKey])
	waitFor(t, name, v1alpha1.CertificatesReadyCondition, metav1.ConditionFalse, string(pki.CAMismatch))
	expect.Equal(t, "generation after the injection", generation, getCRD(t, name).Generation)
	inject(append(other.Data[observed.CAKey], getSecret(t, "injected").Data[observed.CAKey]...))
	waitFor(t, name, v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
}
