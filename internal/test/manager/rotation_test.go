//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/certificates"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// TestRotationOfOwnConverters rotates the authority of converters of users, while an object is read
// through the API server, each time with a new connection. No read fails, and the CRD is written
// twice.
func TestRotationOfOwnConverters(t *testing.T) {
	t.Parallel()
	for name, theirSecret := range map[string]bool{"image": false, "image by a Secret": true, "url": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group := dns(name) + ".rotating.example.com"
			policy := "crontabs." + group
			define(t, group, "v1beta1", "v1")
			createCronTab(t, group, "v1beta1", "cron", "a.example.com:1")
			converter, certs := ownSpec, "{type: SelfManaged}"
			if name == "url" {
				converter = startURL(t, policy)
			}
			if theirSecret {
				certs = "{type: Secret, secret: {name: theirs}}"
				expect.NoError(t, cluster.Create(t.Context(), foreignSecret(t, "theirs", names.ServerName(policy, system), nil)))
			}
			createOwn(t, policy, converter, certs)
			waitReady(t, policy, v1alpha1.ReasonSucceeded)
			waitRotated(t, policy, nil)

			reader := startReading(t, group)
			before := getCRD(t, policy)
			if theirSecret {
				expect.NoError(t, cluster.Update(t.Context(), foreignSecret(t, "theirs", names.ServerName(policy, system), nil)))
			} else {
				patch(t, getPolicy(t, policy), `{"spec":{"certificates":{"type":"SelfManaged","selfManaged":{"rotationTrigger":"now"}}}}`)
			}
			waitRotated(t, policy, before.Spec.Conversion.Webhook.ClientConfig.CABundle)
			expect.Equal(t, "writes of the CustomResourceDefinition", 2, getCRD(t, policy).Generation-before.Generation)
			if name == "image" {
				changeImage(t, policy)
			}
			expect.NoError(t, reader.Check())
		})
	}
}

// changeImage: pods of another image serve before those of the previous one end.
func changeImage(t *testing.T, policy string) {
	t.Helper()
	before := *getCRD(t, policy).Spec.Conversion.Webhook.ClientConfig.Service.Port
	patch(t, getPolicy(t, policy), `{"spec":{"converter":{"image":{"reference":"`+nextImage+`"}}}}`)
	expect.Eventually(t, "only pods of the next image are left", func() (bool, string) {
		port := *getCRD(t, policy).Spec.Conversion.Webhook.ClientConfig.Service.Port
		list := &appsv1.DeploymentList{}
		expect.NoError(t, cluster.List(t.Context(), list, client.InNamespace(system), client.MatchingLabels{names.InstanceLabel: names.Child(policy)}))
		return port != before && len(list.Items) == 1 && list.Items[0].Spec.Template.Spec.Containers[0].Image == nextImage, fmt.Sprintf("port %d, %d Deployments", port, len(list.Items))
	})
}

// TestLostAuthority: the Secret of the active authority is deleted, and the manager does not learn that its
// writes of the CRD succeed. No read fails, and the CRD is written twice.
func TestLostAuthority(t *testing.T) {
	t.Parallel()
	const group, policy = "lost.example.com", "crontabs.lost.example.com"
	define(t, group, "v1beta1", "v1")
	createCronTab(t, group, "v1beta1", "cron", "a.example.com:1")
	createPolicy(t, group, nil)
	waitReady(t, policy, v1alpha1.ReasonSucceeded)
	waitRotated(t, policy, nil)

	reader := startReading(t, group)
	before := getCRD(t, policy)
	setTap(t, group, func(_ *http.Request, _ string, pass func() (*http.Response, error)) (*http.Response, error) {
		answer, err := pass()
		if err == nil {
			_ = answer.Body.Close()
			err = errDead
		}
		return nil, err
	})
	authority := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: names.AuthoritySecret(policy)}}
	expect.NoError(t, cluster.Delete(t.Context(), authority))
	waitRotated(t, policy, before.Spec.Conversion.Webhook.ClientConfig.CABundle)
	expect.Equal(t, "writes of the CustomResourceDefinition", 2, getCRD(t, policy).Generation-before.Generation)
	expect.NoError(t, reader.Check())
}

func createOwn(t *testing.T, name, converter, certs string) {
	t.Helper()
	create(t, fmt.Sprintf("metadata: {name: %s}\nspec: {converter: {%s}, certificates: %s, migration: {mode: OnTrigger}}",
		name, converter, certs), &v1alpha1.ConversionPolicy{})
}

// waitRotated waits until only a new authority is trusted, and the rotation is complete.
func waitRotated(t *testing.T, policy string, before []byte) {
	t.Helper()
	expect.Eventually(t, "the authority is replaced", func() (bool, string) {
		is := getPolicy(t, policy)
		bundle := getCRD(t, policy).Spec.Conversion.Webhook.ClientConfig.CABundle
		secret := getSecret(t, observed.CertificateSecret(is))
		rests := is.Status.Certificate != nil && is.Status.Certificate.Rotation == v1alpha1.RotationIdle && secret.Annotations[certificates.TrustedAnnotation] != ""
		return rests && strings.Count(string(bundle), "BEGIN") == 1 && !bytes.Equal(bundle, before) && bytes.Equal(bundle, secret.Data[observed.CAKey]),
			fmt.Sprintf("%+v", is.Status.Certificate)
	})
}

// startReading starts a client that reads one object repeatedly.
func startReading(t *testing.T, group string) *scenarios.Client {
	t.Helper()
	return scenarios.Repeat(t.Context(), func(context.Context) error {
		object, err := read(t, group, "v1", "cron")
		if host := object["host"]; err == nil && host != "a.example.com" {
			err = fmt.Errorf("host is %q", host)
		}
		return err
	})
}
