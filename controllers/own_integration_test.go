//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

// ownPolicy returns a policy with a converter of the user.
func ownPolicy(group, converter string) string {
	return fmt.Sprintf("metadata: {name: crontabs.%s}\nspec: {converter: {%s}, migration: {mode: OnTrigger}}", group, converter)
}

// changePolicy changes the spec, and retries after a conflict.
func changePolicy(t *testing.T, name string, change func(*v1alpha1.ConversionPolicySpec)) {
	t.Helper()
	policy := getPolicy(t, name)
	base := policy.DeepCopy()
	change(&policy.Spec)
	expect.NoError(t, cluster.Patch(t.Context(), policy, client.MergeFrom(base)))
}

// TestForeignService: each endpoint of a converter that users run is probed.
func TestForeignService(t *testing.T) {
	const group, name, theirs = "service.example.com", "crontabs.service.example.com", "crontab-system"
	expect.NoError(t, cluster.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: theirs}}))
	pods.refuseOwn.Store("webhook.crontab-system.svc", &probe.Error{Reason: probe.ReasonTLSVerificationFailed, Message: "x509: certificate signed by unknown authority"})
	create(t, manifest(group, "v1beta1", "v1"), &apiextensionsv1.CustomResourceDefinition{})
	create(t, ownPolicy(group, "service: {namespace: crontab-system, name: webhook, port: 8443}"), &v1alpha1.ConversionPolicy{})
	missing := waitFor(t, name, v1alpha1.WebhookAvailableCondition, metav1.ConditionFalse, v1alpha1.ReasonServiceNotFound)
	expect.Contains(t, "the message", missing.Message, "Service crontab-system/webhook does not exist")

	service := create(t, "metadata: {namespace: crontab-system, name: webhook}\nspec: {ports: [{name: https, port: 443}]}", &corev1.Service{})
	expect.Eventually(t, "the port is missed", func() (bool, string) {
		condition := waitFor(t, name, v1alpha1.WebhookAvailableCondition, metav1.ConditionFalse, v1alpha1.ReasonServiceNotFound)
		return strings.Contains(condition.Message, "has no port 8443: it has [443]"), condition.Message
	})
	service.Spec.Ports[0].Port = 8443
	expect.NoError(t, cluster.Update(t.Context(), service))
	waitFor(t, name, v1alpha1.WebhookAvailableCondition, metav1.ConditionFalse, v1alpha1.ReasonWaitingForEndpoints)

	create(t, `
metadata: {namespace: crontab-system, name: webhook-1, labels: {kubernetes.io/service-name: webhook}}
addressType: IPv4
ports: [{name: https, port: 9443}, {name: metrics, port: 8080}]
endpoints: [{addresses: [10.9.9.1], conditions: {ready: true}}, {addresses: [10.9.9.2], conditions: {ready: false}}]
`, &discoveryv1.EndpointSlice{})
	refused := waitFor(t, name, v1alpha1.ConversionVerifiedCondition, metav1.ConditionFalse, string(probe.ReasonTLSVerificationFailed))
	expect.Contains(t, "the message", refused.Message, "endpoint 10.9.9.1:9443 of Service crontab-system/webhook: x509")
	expect.Equal(t, "generation of the CustomResourceDefinition", 1, getCRD(t, name).Generation)
	pods.refuseOwn.Delete("webhook.crontab-system.svc")
	waitFor(t, name, v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	called := getCRD(t, name).Spec.Conversion.Webhook.ClientConfig
	if called.Service.Namespace != theirs || called.Service.Name != "webhook" || *called.Service.Port != 8443 || *called.Service.Path != "/convert" || len(called.CABundle) == 0 {
		t.Errorf("the CustomResourceDefinition calls %+v", called.Service)
	}
}

// TestDocumentedPolicies: the API server accepts the policies in the documentation.
func TestDocumentedPolicies(t *testing.T) {
	var blocks [][]string
	for page, least := range map[string]int{"own-converter.md": 7, "retiring.md": 2} {
		text, err := os.ReadFile("../api/docs/" + page)
		expect.NoError(t, err)
		examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
		if len(examples) < least {
			t.Fatalf("found %d examples in %s", len(examples), page)
		}
		blocks = append(blocks, examples...)
	}
	sample, err := os.ReadFile("../config/samples/crontab-image/policy.yaml")
	expect.NoError(t, err)
	for _, block := range append(blocks, []string{"", string(sample)}) {
		policy := &v1alpha1.ConversionPolicy{}
		unmarshal(t, block[1], policy)
		policy.Name = "crontabs.documented.example.com"
		if policy.Spec.Converter.Kind() == "unknown" {
			policy.Spec.Converter.None = &v1alpha1.NoneConverter{} // the example is of something else
		}
		if err := cluster.Create(t.Context(), policy, client.DryRunAll); err != nil {
			t.Errorf("%v:\n%s", err, block[1])
		}
	}
}
