//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"os"
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

// TestForeignService: each endpoint of a converter that users run is probed. Its pods have another certificate first.
func TestForeignService(t *testing.T) {
	t.Parallel()
	const group, name, theirs = "service.example.com", "crontabs.service.example.com", "crontab-system"
	expect.NoError(t, cluster.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: theirs}}))
	define(t, group, "v1", "v1beta1")
	createOwn(t, name, "type: Service, service: {namespace: "+theirs+", name: webhook, port: 8443}", "{type: SelfManaged}")
	waitFor(t, name, v1alpha1.WebhookAvailableCondition, metav1.ConditionFalse, v1alpha1.ReasonNotFound, []string{"Service crontab-system/webhook does not exist"})

	service := create(t, `
metadata: {namespace: crontab-system, name: webhook}
spec: {selector: {app: webhook}, ports: [{name: https, port: 443, targetPort: 19443}]}`, &corev1.Service{})
	waitFor(t, name, v1alpha1.WebhookAvailableCondition, metav1.ConditionFalse, v1alpha1.ReasonNotFound, []string{"has no port 8443: it has [443]"})
	service.Spec.Ports[0].Port = 8443
	expect.NoError(t, cluster.Update(t.Context(), service))
	waitFor(t, name, v1alpha1.WebhookAvailableCondition, metav1.ConditionFalse, v1alpha1.ReasonRollingOut, nil)

	serving := foreignSecret(t, "webhook", "webhook.crontab-system.svc", nil)
	serving.Namespace = theirs
	expect.NoError(t, cluster.Create(t.Context(), serving))
	pod := create(t, `
metadata: {namespace: crontab-system, name: webhook, labels: {app: webhook}}
spec:
  containers: [{name: webhook, image: '`+ownImage+`', args: ['--bind-address=:19443', '--certificates=/certs'], volumeMounts: [{name: certs, mountPath: /certs}]}]
  volumes: [{name: certs, secret: {secretName: webhook}}]
`, &corev1.Pod{})
	waitFor(t, name, v1alpha1.ConversionVerifiedCondition, metav1.ConditionFalse, string(probe.ReasonTLSVerificationFailed),
		[]string{":19443 of Service crontab-system/webhook: ", "x509"})
	expect.Equal(t, "generation of the CustomResourceDefinition", 1, getCRD(t, name).Generation)
	serving.Data = getSecret(t, names.ExternalCertificateSecret(name)).Data
	expect.NoError(t, cluster.Update(t.Context(), serving))
	patch(t, pod, `{"metadata":{"annotations":{"certificate":"changed"}}}`) // then its node reads the Secret at once
	waitReady(t, name, v1alpha1.ReasonSucceeded)
	called := getCRD(t, name).Spec.Conversion.Webhook.ClientConfig
	if called.Service.Namespace != theirs || called.Service.Name != "webhook" || *called.Service.Port != 8443 || *called.Service.Path != "/convert" || len(called.CABundle) == 0 {
		t.Errorf("the CustomResourceDefinition calls %+v", called.Service)
	}
}

// TestDocumentedPolicies: the API server accepts the policies in the documentation.
func TestDocumentedPolicies(t *testing.T) {
	t.Parallel()
	var blocks [][]string
	for page, least := range map[string]int{"own-converter.md": 7, "retiring.md": 2} {
		text, err := os.ReadFile("../../../api/docs/" + page)
		expect.NoError(t, err)
		examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
		if len(examples) < least {
			t.Fatalf("found %d examples in %s", len(examples), page)
		}
		blocks = append(blocks, examples...)
	}
	sample, err := os.ReadFile("../../../config/samples/crontab-image/policy.yaml")
	expect.NoError(t, err)
	for _, block := range append(blocks, []string{"", string(sample)}) {
		policy := &v1alpha1.ConversionPolicy{}
		unmarshal(t, block[1], policy)
		policy.Name = "crontabs.documented.example.com"
		if policy.Spec.Converter.Type == "" { // the example is of something else
			policy.Spec.Converter = v1alpha1.Converter{Type: v1alpha1.ConverterImage, Image: &v1alpha1.ImageConverter{Reference: ownImage}}
		}
		if err := cluster.Create(t.Context(), policy, client.DryRunAll); err != nil {
			t.Errorf("%v:\n%s", err, block[1])
		}
	}
}
