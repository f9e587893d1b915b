//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestSecretsAreNotLogged: debug logs of all tests until now, events, policies and metrics contain
// no part of a private key or of a Secret of another client.
func TestSecretsAreNotLogged(t *testing.T) {
	t.Parallel()
	const theirs = "what-nobody-else-is-to-know"
	name := activate(t, "told.example.com", nil).Name
	waitRotated(t, name, nil)
	before := getSecret(t, names.AuthoritySecret(name))
	patch(t, getPolicy(t, name), `{"spec":{"certificates":{"type":"SelfManaged","selfManaged":{"rotationTrigger":"told"}}}}`)
	waitRotated(t, name, before.Data[corev1.TLSCertKey])

	secret := &corev1.Secret{Data: map[string][]byte{corev1.TLSCertKey: []byte(theirs), corev1.TLSPrivateKeyKey: []byte(theirs), "ca.crt": []byte(theirs)}}
	secret.Namespace, secret.Name = system, "told"
	expect.NoError(t, cluster.Create(t.Context(), secret))
	patch(t, getPolicy(t, name), `{"spec":{"certificates":{"type":"Secret","selfManaged":null,"secret":{"name":"told"}}}}`)
	waitFor(t, name, v1alpha1.CertificatesReadyCondition, metav1.ConditionFalse, v1alpha1.ReasonInvalidCertificate, nil)

	secrets := append(privateLines(t, before), theirs, "PRIVATE KEY", base64.StdEncoding.EncodeToString([]byte("-----BEGIN EC PRIVATE"))[:27])
	list := &corev1.SecretList{}
	expect.NoError(t, cluster.List(t.Context(), list, client.InNamespace(system)))
	for i := range list.Items {
		secrets = append(secrets, privateLines(t, &list.Items[i])...)
	}
	if len(secrets) < 8 {
		t.Fatalf("there are only %d secrets to look for", len(secrets))
	}
	for where, text := range allOutput(t) {
		expect.Equal(t, where+" tell something", true, len(text) > 0)
		for _, secret := range secrets {
			if at := strings.Index(text, secret); at >= 0 {
				t.Errorf("%s have a part of a Secret: …%.60q…", where, text[max(0, at-100):at])
			}
		}
	}
}

// privateLines returns the lines of the private keys in a Secret.
func privateLines(t *testing.T, secret *corev1.Secret) []string {
	t.Helper()
	var lines []string
	for _, value := range secret.Data {
		for rest := value; ; {
			var block *pem.Block
			if block, rest = pem.Decode(rest); block == nil {
				break
			}
			if !strings.Contains(block.Type, "PRIVATE KEY") {
				continue
			}
			for line := range strings.Lines(string(pem.EncodeToMemory(block))) {
				if line = strings.TrimSpace(line); len(line) == 64 {
					lines = append(lines, line)
				}
			}
		}
	}
	return lines
}

// allOutput returns the logs, policies, events and metrics.
func allOutput(t *testing.T) map[string]string {
	t.Helper()
	output := map[string]string{"logs": logged.String()}
	expect.Equal(t, "the logs are at their most talkative", true, strings.Contains(output["logs"], "DEBUG"))
	policies, events := &v1alpha1.ConversionPolicyList{}, &eventsv1.EventList{}
	expect.NoError(t, cluster.List(t.Context(), policies))
	expect.NoError(t, cluster.List(t.Context(), events))
	for where, list := range map[string]client.ObjectList{"policies": policies, "events": events} {
		text, err := json.Marshal(list)
		expect.NoError(t, err)
		output[where] = string(text)
	}
	families, err := metrics.Registry.Gather()
	expect.NoError(t, err)
	output["metrics"] = fmt.Sprint(families)
	return output
}
