//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/release"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// TestExternalConverter: a converter that users run, in a namespace of their own, serves the
// certificate that the operator issued. The operator deploys nothing, and verifies the converter by
// its Service and by a URL.
func TestExternalConverter(t *testing.T) {
	release.Only(t, "TestForeignService", "TestRotationOfOwnConverters")
	t.Parallel()
	node, address := anyNode(t.Context(), t)
	kinds := map[string]v1alpha1.Converter{
		"service": {Service: &v1alpha1.ServiceConverter{Namespace: "theirs-service", Name: "webhook"}},
		"url":     {URL: v1alpha1.WebhookURL("https://" + net.JoinHostPort(address, "9443") + "/convert")},
	}
	for kind, converter := range kinds {
		t.Run(kind, func(t *testing.T) {
			ctx := t.Context()
			crontab := inGroup(t, kind+".theirs.example.com")
			applySample(ctx, t, crontab, crontab.CRDBoth)
			createExternalService(ctx, t, "theirs-"+kind)
			policy := &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: crontab.CRD()}}
			policy.Spec.Converter = converter
			expect.NoError(t, cluster.Create(ctx, policy))
			runExternal(ctx, t, crontab, "theirs-"+kind, node)
			waitReady(ctx, t, crontab.CRD(), v1alpha1.ReasonSucceeded)
			expect.NoError(t, fleet.Create(ctx, crontab.At(crontab.Old), 5, crontab.Object))
			checkConverted(ctx, t, crontab, 5)
			if ours := pods(ctx, t, client.MatchingLabels{names.InstanceLabel: names.Child(crontab.CRD()), names.ComponentLabel: names.ConverterComponent}); len(ours) > 0 {
				t.Errorf("the operator runs %d converter pods", len(ours))
			}
		})
	}
}

// anyNode returns a node and its address, at which everything can reach a pod on the host network.
func anyNode(ctx context.Context, t *testing.T) (name, address string) {
	t.Helper()
	nodes := &corev1.NodeList{}
	expect.NoError(t, cluster.List(ctx, nodes))
	for _, node := range nodes.Items {
		for _, known := range node.Status.Addresses {
			if known.Type == corev1.NodeInternalIP {
				return node.Name, known.Address
			}
		}
	}
	t.Fatal("no node has an address")
	return "", ""
}

var theirLabels = map[string]string{"app": "webhook"}

// createExternalService creates a namespace with a Service.
func createExternalService(ctx context.Context, t *testing.T, namespace string) {
	t.Helper()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "webhook"},
		Spec: corev1.ServiceSpec{Selector: theirLabels,
			Ports: []corev1.ServicePort{{Name: "https", Port: 443, TargetPort: intstr.FromInt32(9443)}}},
	}
	for _, object := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, service} {
		expect.NoError(t, cluster.Create(ctx, object))
	}
}

// runExternal copies the certificate to the namespace, and runs the sample's image with it, on the
// host network of a node.
func runExternal(ctx context.Context, t *testing.T, crontab scenarios.CronTab, namespace, node string) {
	t.Helper()
	issued := &corev1.Secret{}
	expect.Eventually(t, "the certificate is issued", func() (bool, string) {
		err := cluster.Get(ctx, client.ObjectKey{Namespace: system, Name: names.ExternalCertificateSecret(crontab.CRD())}, issued)
		return err == nil, fmt.Sprint(err)
	})
	for _, object := range []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "webhook-tls"}, Type: issued.Type, Data: issued.Data},
		&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "webhook"},
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: theirLabels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: theirLabels}, Spec: corev1.PodSpec{
					NodeName: node, HostNetwork: namespace == "theirs-url",
					Containers: []corev1.Container{{
						Name: "webhook", Image: os.Getenv("E2E_CONVERTER_IMAGE"), Args: []string{"--group=" + crontab.Group},
						VolumeMounts: []corev1.VolumeMount{{Name: "tls", MountPath: "/tmp/k8s-webhook-server/serving-certs"}},
					}},
					Volumes: []corev1.Volume{{Name: "tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "webhook-tls"}}}},
				}},
			},
		},
	} {
		expect.NoError(t, cluster.Create(ctx, object))
	}
}
