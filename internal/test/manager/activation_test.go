//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestActivation takes a policy through all gates.
func TestActivation(t *testing.T) {
	t.Parallel()
	const group, crd = "activation.example.com", "crontabs.activation.example.com"
	define(t, group, "v1beta1")
	forecast := foresee(t, crd, []client.Object{newPolicy(t, group, nil)})
	createPolicy(t, group, nil)
	waitReady(t, crd, v1alpha1.ReasonWaitingForVersion)
	forecast.check(t)
	active := getCRD(t, crd)
	expect.Equal(t, "the CustomResourceDefinition has generation", 2, active.Generation)
	checkConversion(t, active)
	if evidence := getPolicy(t, crd).Status.MigrationEvidence; evidence == nil || evidence.Source != v1alpha1.EvidenceSingleVersion {
		t.Errorf("evidence is %v, want SingleVersion", evidence)
	}
	waitEvent(t, crd, v1alpha1.ReasonConfigured)
	checkIdle(t, crd)
	checkNewVersion(t, group)
}

func checkConversion(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	active := crd.Spec.Conversion
	if active.Strategy != apiextensionsv1.WebhookConverter || active.Webhook.ClientConfig.Service.Name != names.Child(crd.Name) {
		t.Fatalf("the conversion is %+v", active)
	}
	proven := string(getSecret(t, names.AuthoritySecret(crd.Name)).Data[corev1.TLSCertKey])
	expect.Equal(t, "caBundle", proven, string(active.Webhook.ClientConfig.CABundle))
	owners := slices.DeleteFunc(crd.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool { return entry.Manager != names.ManagedBy })
	if len(owners) != 1 || strings.Contains(owners[0].FieldsV1.GetRawString(), "f:versions") {
		t.Errorf("the operator owns more than spec.conversion: %v", owners)
	}
}

// checkNewVersion: the ruleset of a new version replaces the previous one.
func checkNewVersion(t *testing.T, group string) {
	t.Helper()
	name := "crontabs." + group
	before := getPolicy(t, name).Status.Revision
	forecast := foresee(t, name, []client.Object{manifest(t, group, "v1beta1", "v1")})
	serve(t, group, "v1beta1", "v1")
	waitReady(t, name, v1alpha1.ReasonSucceeded)
	forecast.check(t)
	after := getPolicy(t, name).Status.Revision
	if after == before {
		t.Fatal("the ruleset did not change with the version")
	}
	expect.Eventually(t, "pods mount only the new ruleset", func() (bool, string) {
		var hashes []string
		for key := range get(t, names.Rulesets(name), &corev1.ConfigMap{}).BinaryData {
			hash, _ := conversion.StoredHash(key)
			hashes = append(hashes, hash)
		}
		return slices.Equal(hashes, []string{after}), strings.Join(hashes, " and ")
	})
	checkChanges(t, name)
}

// checkChanges: other changes of the policy have the forecast steps, too: another storage version with a
// migration, other rules, and another place.
func checkChanges(t *testing.T, name string) {
	t.Helper()
	for _, change := range []func(*v1alpha1.ConversionPolicySpec){
		func(spec *v1alpha1.ConversionPolicySpec) { spec.StorageVersion, spec.Migration.Trigger = "v1", "now" },
		func(spec *v1alpha1.ConversionPolicySpec) {
			spec.Converter.Declarative.Spokes[0].Rules[0].Format.Template = "{host}/{port}"
		},
		func(spec *v1alpha1.ConversionPolicySpec) { spec.Workload = nil },
	} {
		before := getPolicy(t, name)
		policy := before.DeepCopy()
		change(&policy.Spec)
		forecast := foresee(t, name, []client.Object{policy.DeepCopy()})
		expect.NoError(t, cluster.Patch(t.Context(), policy, client.MergeFrom(before)))
		forecast.check(t)
		waitReady(t, name, v1alpha1.ReasonSucceeded)
	}
}
