//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/pki"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/release"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// TestFleetSecret has a fleet with certificates that a user provides. While clients read and write,
// the user replaces the Secret by one of another authority, and pods are evicted; then by one of
// the same authority, and by one for another name. No conversion fails.
func TestFleetSecret(t *testing.T) {
	release.Only(t, "TestRotation", "TestForeignSecret")
	t.Parallel()
	ctx := t.Context()
	const name = "provided"
	first, second := newAuthority(t), newAuthority(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "fleet-certificates"}, Data: providedBy(t, first, names.FleetServerName(name, system))}
	expect.NoError(t, cluster.Create(ctx, secret))
	t.Cleanup(func() { expect.NoError(t, cluster.Delete(context.WithoutCancel(ctx), secret)) })
	created := &v1alpha1.ConverterFleet{ObjectMeta: metav1.ObjectMeta{Name: name}}
	created.Spec.Certificates = &v1alpha1.Certificates{Secret: &v1alpha1.SecretCertificates{Name: secret.Name}}
	createFleet(ctx, t, created)

	var crontabs []scenarios.CronTab
	var loads []*load
	for _, group := range []string{"first", "second"} {
		crontab := shared(ctx, t, group+".provided.example.com")
		inFleet(ctx, t, crontab, name)
		waitReady(ctx, t, crontab.CRD(), v1alpha1.ReasonSucceeded)
		expect.NoError(t, fleet.Create(ctx, crontab.At(crontab.Old), loadClients, crontab.Object))
		crontabs, loads = append(crontabs, crontab), append(loads, startLoad(ctx, crontab))
	}
	all := allConvert(ctx, t, crontabs[0])
	waitTrusted(ctx, t, crontabs, first)

	provide(ctx, t, secret, second, names.FleetServerName(name, system))
	evictInTurn(ctx, t, name)
	waitTrusted(ctx, t, crontabs, second)

	generation := getCRD(ctx, t, crontabs[0].CRD()).Generation
	provide(ctx, t, secret, second, names.FleetServerName(name, system))
	waitServed(ctx, t, name, secret)
	provide(ctx, t, secret, second, "other.example.com")
	waitFleetCondition(ctx, t, name, v1alpha1.CertificatesReadyCondition, string(pki.WrongName))
	provide(ctx, t, secret, second, names.FleetServerName(name, system))
	waitServed(ctx, t, name, secret)
	if now := getCRD(ctx, t, crontabs[0].CRD()).Generation; now != generation {
		t.Errorf("the CustomResourceDefinition was written %d times for certificates of one authority", now-generation)
	}
	for _, load := range loads {
		load.check(t)
	}
	all()
}

func newAuthority(t *testing.T) pki.KeyPair {
	t.Helper()
	authority, err := pki.NewAuthority("company", time.Now(), 1000*time.Hour)
	expect.NoError(t, err)
	return authority
}

// providedBy is the content of a Secret with a new serving certificate of an authority.
func providedBy(t *testing.T, authority pki.KeyPair, serverName string) map[string][]byte {
	t.Helper()
	leaf, err := pki.IssueLeaf(authority, serverName, time.Now(), 100*time.Hour)
	expect.NoError(t, err)
	return map[string][]byte{corev1.TLSCertKey: leaf.Certificate, corev1.TLSPrivateKeyKey: leaf.Key, observed.CAKey: authority.Certificate}
}

// provide replaces the content of the user's Secret.
func provide(ctx context.Context, t *testing.T, secret *corev1.Secret, authority pki.KeyPair, serverName string) {
	t.Helper()
	secret.Data = providedBy(t, authority, serverName)
	expect.NoError(t, cluster.Update(ctx, secret))
}

// waitTrusted waits until the CustomResourceDefinitions trust one authority alone.
func waitTrusted(ctx context.Context, t *testing.T, crontabs []scenarios.CronTab, authority pki.KeyPair) {
	t.Helper()
	for _, crontab := range crontabs {
		expect.Eventually(t, crontab.CRD()+" trusts the authority alone", func() (bool, string) {
			return bytes.Equal(caBundle(ctx, t, crontab), authority.Certificate), ""
		})
	}
}

// waitServed waits until the pods of a fleet mount the certificate of the user's Secret, and have
// proven it.
func waitServed(ctx context.Context, t *testing.T, name string, secret *corev1.Secret) {
	t.Helper()
	_, serving, _ := names.FleetSecrets(name)
	expect.Eventually(t, "pods mount the certificate", func() (bool, string) {
		mounted := &corev1.Secret{}
		err := cluster.Get(ctx, client.ObjectKey{Namespace: system, Name: serving}, mounted)
		return err == nil && bytes.Equal(mounted.Data[corev1.TLSCertKey], secret.Data[corev1.TLSCertKey]), fmt.Sprint(err)
	})
	waitFleetCondition(ctx, t, name, v1alpha1.CertificatesReadyCondition, v1alpha1.ReasonIssued)
}

func waitFleetCondition(ctx context.Context, t *testing.T, name, condition, reason string) {
	t.Helper()
	expect.Eventually(t, condition+" of the fleet has the reason "+reason, func() (bool, string) {
		found := apimeta.FindStatusCondition(getFleet(ctx, t, name).Status.Conditions, condition)
		return found != nil && found.Reason == reason, fmt.Sprintf("%+v", found)
	})
}

// evictInTurn evicts every pod of a fleet. The second one stays until the first one is replaced.
func evictInTurn(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	for _, pod := range fleetPods(ctx, t, name) {
		expect.Eventually(t, pod.Name+" may be evicted", func() (bool, string) {
			err := evict(ctx, &pod)
			return err == nil, fmt.Sprint(err)
		})
	}
	waitFleet(ctx, t, name, 3)
}
