//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/plan/converter"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

// TestChangingRules: pods mount the new ruleset in addition to the previous one. The
// CustomResourceDefinition uses the new one after every pod proved it. Later the pods mount only
// that. No pod is replaced.
func TestChangingRules(t *testing.T) {
	const group, name = "changing.example.com", "crontabs.changing.example.com"
	create(t, manifest(group, "v1beta1", "v1"), &apiextensionsv1.CustomResourceDefinition{})
	create(t, policy(group), &v1alpha1.ConversionPolicy{})
	expect.Eventually(t, "the policy is ready", func() (bool, string) {
		if apimeta.IsStatusConditionTrue(getPolicy(t, name).Status.Conditions, v1alpha1.CertificatesReadyCondition) {
			pods.run(t, name)
		}
		return apimeta.IsStatusConditionTrue(getPolicy(t, name).Status.Conditions, v1alpha1.ReadyCondition), "not ready"
	})
	before, path, template := getPolicy(t, name).Status.Converter.Revision, namedPath(t, name), templateOf(t, name)

	// Pods load the new ruleset, and then fail.
	pods.refuse.Store(&probe.Error{Reason: probe.ReasonCanaryFailed, Message: "a canary came back wrong"})
	changePolicy(t, name, func(spec *v1alpha1.ConversionPolicySpec) {
		spec.Converter.Declarative.Spokes[0].Rules[0].Format.Template = "{host}/{port}"
	})
	stores(t, name, func(hashes []string) bool { return len(hashes) == 2 && slices.Contains(hashes, before) })
	expect.Eventually(t, "the status names the new plan", func() (bool, string) {
		hash := getPolicy(t, name).Status.Converter.Revision
		return hash != before, hash
	})
	after := getPolicy(t, name).Status.Converter.Revision
	condition := waitFor(t, name, v1alpha1.ConversionVerifiedCondition, metav1.ConditionFalse, string(probe.ReasonCanaryFailed))
	if want := "still uses the previous ruleset " + before; !strings.Contains(condition.Message, want) {
		t.Errorf("the message lacks %q: %s", want, condition.Message)
	}
	if got := namedPath(t, name); got != path {
		t.Errorf("the CustomResourceDefinition names %s before the new rules are proven, want %s", got, path)
	}

	pods.refuse.Store(nil)
	waitFor(t, name, v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonSucceeded)
	if got, want := namedPath(t, name), converter.ConvertPath+"/"+after; got != want {
		t.Errorf("the CustomResourceDefinition names %s, want %s", got, want)
	}
	stores(t, name, func(hashes []string) bool { return slices.Equal(hashes, []string{after}) })
	if got := templateOf(t, name); !equality.Semantic.DeepEqual(got, template) {
		t.Errorf("pods were replaced: the template is %+v, before %+v", got, template)
	}
}

func templateOf(t *testing.T, policy string) corev1.PodTemplateSpec {
	t.Helper()
	deployment := &appsv1.Deployment{}
	expect.NoError(t, cluster.Get(t.Context(), client.ObjectKey{Namespace: system, Name: names.Child(policy)}, deployment))
	return deployment.Spec.Template
}

func namedPath(t *testing.T, name string) string {
	t.Helper()
	return *getCRD(t, name).Spec.Conversion.Webhook.ClientConfig.Service.Path
}

// stores waits until the rulesets that pods mount are right.
func stores(t *testing.T, policy string, right func([]string) bool) {
	t.Helper()
	expect.Eventually(t, "pods mount the right rulesets", func() (bool, string) {
		configMap := &corev1.ConfigMap{}
		expect.NoError(t, cluster.Get(t.Context(), client.ObjectKey{Namespace: system, Name: names.Rulesets(policy)}, configMap))
		var hashes []string
		for key := range configMap.BinaryData {
			hash, _ := conversion.StoredHash(key)
			hashes = append(hashes, hash)
		}
		return right(hashes), strings.Join(hashes, " and ")
	})
}
