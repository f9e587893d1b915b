//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/release"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// TestCertificatesAreReplaced rotates the authority and then only the serving certificate, while
// clients read through the converter. All managers are killed once when API servers begin to trust
// the new authority, and once before they trust only that. No conversion fails, also by the metrics
// of the API server, and the CRD is written twice per authority and never for a certificate.
func TestCertificatesAreReplaced(t *testing.T) {
	release.Only(t, "TestLostAuthority", "TestRotationOfOwnConverters")
	ctx := t.Context()
	crontab := inGroup(t, "certificates.example.com")
	applySample(ctx, t, crontab, crontab.CRDStorage)
	applySample(ctx, t, crontab, crontab.Policy)
	waitReady(ctx, t, crontab.CRD(), v1alpha1.ReasonSucceeded)
	expect.NoError(t, fleet.Create(ctx, crontab.At(crontab.Old), 10, crontab.Object))
	succeeded, failed := countConversions(ctx, t, crontab)
	// Each reader reads 50 times a second, if the machine is fast enough.
	var readers []*scenarios.Reader
	for i := range 2 {
		readers = append(readers, fleet.Read(ctx, crontab.At(crontab.Old), crontab.Object(i).GetName(), func(*unstructured.Unstructured) error { return nil }))
	}

	for i, state := range []v1alpha1.RotationState{v1alpha1.RotationPropagating, v1alpha1.RotationRemovingCA} {
		replaceAuthority(ctx, t, crontab, strconv.Itoa(i), state)
	}
	replaceCertificate(ctx, t, crontab)

	var reads int64
	for _, reader := range readers {
		read, err := reader.Stop()
		if err != nil {
			t.Errorf("a read failed after %d: %v", read, err)
		}
		reads += read
	}
	since, failures := countConversions(ctx, t, crontab)
	t.Logf("%d reads; %d conversions went well and %d failed", reads, since-succeeded, failures-failed)
	if failures != failed {
		t.Errorf("%d conversions failed", failures-failed)
	}
	if int64(since-succeeded) < reads {
		t.Errorf("%d conversions for %d reads: a client answered without the converter", since-succeeded, reads)
	}
}

// replaceAuthority rotates the authority with the documented commands, kills the managers in a
// rotation state, and waits until only the new authority is in use.
func replaceAuthority(ctx context.Context, t *testing.T, crontab scenarios.CronTab, trigger string, killIn v1alpha1.RotationState) {
	t.Helper()
	generation, authority := getCRD(ctx, t, crontab.CRD()).Generation, caBundle(ctx, t, crontab)
	policy := getPolicy(ctx, t, crontab.CRD())
	bounded, cancel := context.WithTimeout(ctx, expect.Patience)
	defer cancel()
	seen, err := cluster.Watch(bounded, &v1alpha1.ConversionPolicyList{}, &client.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, policy.Name),
		Raw:           &metav1.ListOptions{ResourceVersion: policy.ResourceVersion}})
	expect.NoError(t, err)
	defer seen.Stop()
	// The trigger must differ each time.
	player := newPlayer(t, t.TempDir())
	player.Names = strings.NewReplacer("crontabs.example.com", crontab.CRD(), `"2026-05-01"`, strconv.Quote("run "+trigger))
	play(t, player, "replacing")
	waitRotation(t, seen, killIn)
	killManagers(ctx, t, crontab)
	expect.Eventually(t, "another authority is the only one in use", func() (bool, string) {
		rotation, now := getPolicy(ctx, t, crontab.CRD()).Status.Rotation, caBundle(ctx, t, crontab)
		return rotation.State == v1alpha1.RotationIdle && !bytes.Equal(now, authority) && bytes.Count(now, []byte("BEGIN")) == 1, string(rotation.State)
	})
	if got := getCRD(ctx, t, crontab.CRD()).Generation - generation; got != 2 {
		t.Errorf("the CustomResourceDefinition was written %d times for one authority, want 2; killed in %q", got, killIn)
	}
}

// waitRotation waits for a state that may be very short.
func waitRotation(t *testing.T, seen watch.Interface, state v1alpha1.RotationState) {
	t.Helper()
	for event := range seen.ResultChan() {
		policy, ok := event.Object.(*v1alpha1.ConversionPolicy)
		if ok && policy.Status.Rotation != nil && policy.Status.Rotation.State == state {
			return
		}
	}
	t.Fatalf("the rotation was never %s", state)
}

func caBundle(ctx context.Context, t *testing.T, crontab scenarios.CronTab) []byte {
	t.Helper()
	return getCRD(ctx, t, crontab.CRD()).Spec.Conversion.Webhook.ClientConfig.CABundle
}

// replaceCertificate deletes the Secret that converter pods mount.
func replaceCertificate(ctx context.Context, t *testing.T, crontab scenarios.CronTab) {
	t.Helper()
	generation := getCRD(ctx, t, crontab.CRD()).Generation
	secret, key := &corev1.Secret{}, client.ObjectKey{Namespace: system, Name: names.CertificateSecret(crontab.CRD())}
	expect.NoError(t, cluster.Get(ctx, key, secret))
	gone := secret.UID
	expect.NoError(t, cluster.Delete(ctx, secret))
	expect.Eventually(t, "there is another serving certificate", func() (bool, string) {
		err := cluster.Get(ctx, key, secret)
		return err == nil && secret.UID != gone && len(secret.Data[corev1.TLSCertKey]) > 0, fmt.Sprint(err)
	})
	waitReady(ctx, t, crontab.CRD(), v1alpha1.ReasonSucceeded)
	if got := getCRD(ctx, t, crontab.CRD()).Generation; got != generation {
		t.Errorf("the CustomResourceDefinition was written %d times for a serving certificate", got-generation)
	}
}
