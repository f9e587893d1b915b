//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// manifest returns a CustomResourceDefinition with the named versions. The last one is the storage
// version.
func manifest(group string, versions ...string) string {
	var list strings.Builder
	for i, version := range versions {
		fields := map[string]string{"v1beta1": "hostPort: {type: string}"}[version]
		if fields == "" {
			fields = "host: {type: string}, port: {type: string}"
		}
		fmt.Fprintf(&list, "  - {name: %s, served: true, storage: %t, schema: {openAPIV3Schema: {type: object, properties: {%s, replicas: {type: integer}}}}}\n",
			version, i == len(versions)-1, fields)
	}
	return fmt.Sprintf(`
metadata: {name: crontabs.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {plural: crontabs, singular: crontab, kind: CronTab, listKind: CronTabList}
  versions:
%[2]s`, group, list.String())
}

// policy returns a policy with the rules of the CronTab in the documentation.
func policy(group string) string {
	return policyWith(group, `{hub: v1, spokes: [{version: v1beta1, rules: [{format: {from: .hostPort, template: "{host}:{port}", to: {host: .host, port: .port}}}]}]}`)
}

func policyWith(group, declarative string) string {
	return fmt.Sprintf("metadata: {name: crontabs.%s}\nspec: {converter: {declarative: %s}, workload: {}, migration: {mode: OnTrigger}}", group, declarative)
}

func getPolicy(t *testing.T, name string) *v1alpha1.ConversionPolicy {
	t.Helper()
	policy := &v1alpha1.ConversionPolicy{}
	expect.NoError(t, cluster.Get(t.Context(), client.ObjectKey{Name: name}, policy))
	return policy
}

func getCRD(t *testing.T, name string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	expect.NoError(t, cluster.Get(t.Context(), client.ObjectKey{Name: name}, crd))
	return crd
}

// changeCRD changes the latest CustomResourceDefinition.
func changeCRD(t *testing.T, name string, change func(*apiextensionsv1.CustomResourceDefinition)) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	return testenv.ChangeCRD(t, cluster, name, change)
}

// writeCRD calls write with the latest CustomResourceDefinition, and again after a conflict.
func writeCRD(t *testing.T, name string, write func(*testing.T, *apiextensionsv1.CustomResourceDefinition) error) error {
	t.Helper()
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error { return write(t, getCRD(t, name)) })
}

func waitFor(t *testing.T, policy, condition string, status metav1.ConditionStatus, reason string) metav1.Condition {
	t.Helper()
	var found metav1.Condition
	expect.Eventually(t, fmt.Sprintf("%s is %s %s", condition, status, reason), func() (bool, string) {
		current := apimeta.FindStatusCondition(getPolicy(t, policy).Status.Conditions, condition)
		if current == nil {
			return false, "no condition"
		}
		found = *current
		return found.Status == status && found.Reason == reason, fmt.Sprintf("%s %s: %s", found.Status, found.Reason, found.Message)
	})
	return found
}

// TestPreserveUnknownFields needs a CustomResourceDefinition that was created with
// apiextensions.k8s.io/v1beta1, which API servers no longer serve, so the test writes it to etcd.
// The tests of the compiler cover the error; this one shows that the API server refuses the
// conversion.
func TestPreserveUnknownFields(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	text := strings.Replace(manifest("preserve.example.com", "v1beta1", "v1"), "  scope:", "  preserveUnknownFields: true\n  scope:", 1)
	unmarshal(t, text, crd)
	err := cluster.Create(t.Context(), crd)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "preserveUnknownFields") {
		t.Errorf("the API server accepts preserveUnknownFields: true now; test the condition here: %v", err)
	}
}

// TestActivation takes a policy through all gates.
func TestActivation(t *testing.T) {
	const group, crd = "activation.example.com", "crontabs.activation.example.com"
	create(t, manifest(group, "v1beta1"), &apiextensionsv1.CustomResourceDefinition{})
	create(t, policy(group), &v1alpha1.ConversionPolicy{})

	waitFor(t, crd, v1alpha1.WebhookAvailableCondition, metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
	pods.run(t, crd)
	waitFor(t, crd, v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ReasonWaitingForVersion)
	active := getCRD(t, crd)
	expect.Equal(t, "the CustomResourceDefinition has generation", 2, active.Generation)
	checkConversion(t, active)
	if evidence := getPolicy(t, crd).Status.MigrationEvidence; evidence == nil || evidence.Source != v1alpha1.EvidenceSingleVersion {
		t.Errorf("evidence is %v, want SingleVersion", evidence)
	}
	checkEvents(t, crd, v1alpha1.ReasonConfigured, "", "ConversionPolicy")
	checkIdle(t, crd)
	checkRepair(t, active)
	checkNewVersion(t, group)
}

func checkConversion(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	conversion := crd.Spec.Conversion
	if conversion.Strategy != apiextensionsv1.WebhookConverter || conversion.Webhook.ClientConfig.Service.Name != names.Child(crd.Name) {
		t.Fatalf("the conversion is %+v", conversion)
	}
	authority := &corev1.Secret{}
	expect.NoError(t, cluster.Get(t.Context(), client.ObjectKey{Namespace: system, Name: names.AuthoritySecret(crd.Name)}, authority))
	proven := string(authority.Data[corev1.TLSCertKey])
	expect.Equal(t, "caBundle", proven, string(conversion.Webhook.ClientConfig.CABundle))
	owners := slices.DeleteFunc(crd.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool { return entry.Manager != names.ManagedBy })
	if len(owners) != 1 || strings.Contains(owners[0].FieldsV1.GetRawString(), "f:versions") {
		t.Errorf("the operator owns more than spec.conversion: %v", owners)
	}
}

// checkEvents waits for an event with this reason, and this text in its note, about an object of each kind.
func checkEvents(t *testing.T, name, reason, note string, kinds ...string) {
	t.Helper()
	for _, kind := range kinds {
		expect.Eventually(t, "an event "+reason+" of the "+kind, func() (bool, string) {
			list := &eventsv1.EventList{}
			expect.NoError(t, cluster.List(t.Context(), list))
			return slices.ContainsFunc(list.Items, func(event eventsv1.Event) bool {
				return event.Regarding.Kind == kind && event.Regarding.Name == name && event.Reason == reason && strings.Contains(event.Note, note)
			}), fmt.Sprintf("%d events", len(list.Items))
		})
	}
}

// checkIdle: a policy in its final state causes no write, however often it is reconciled.
func checkIdle(t *testing.T, policy string) {
	t.Helper()
	checkNoWrites(t, policy, func(i int) { touch(t, policy, i) })
}

// checkNoWrites waits until the manager writes nothing about a policy, whatever causes reconciliations.
func checkNoWrites(t *testing.T, policy string, cause func(i int)) {
	t.Helper()
	expect.Eventually(t, "the manager is at rest", func() (bool, string) {
		before := sent.count()
		for i := range 3 {
			cause(i)
		}
		wrote := sent.about([]string{policy}, before)
		return len(wrote) == 0, fmt.Sprint(wrote)
	})
}

// touch causes a reconciliation without a relevant change.
func touch(t *testing.T, policy string, i int) {
	t.Helper()
	service := &corev1.Service{}
	key := client.ObjectKey{Namespace: system, Name: names.Child(policy)}
	expect.NoError(t, cluster.Get(t.Context(), key, service))
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"touched":"%d-%s"}}}`, i, service.ResourceVersion)
	expect.NoError(t, cluster.Patch(t.Context(), service, client.RawPatch(mergePatch, []byte(patch))))
}

// checkRepair: the operator reverts a write that drops spec.conversion, as kubectl replace does.
func checkRepair(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	changeCRD(t, crd.Name, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	})
	expect.Eventually(t, "the conversion is repaired", func() (bool, string) {
		strategy := getCRD(t, crd.Name).Spec.Conversion.Strategy
		return strategy == apiextensionsv1.WebhookConverter, string(strategy)
	})
}

// checkNewVersion: all pods serve the ruleset of a new version before the policy is Ready again.
// Then the previous ruleset is deleted.
func checkNewVersion(t *testing.T, group string) {
	t.Helper()
	name := "crontabs." + group
	before := getPolicy(t, name).Status.Converter.Revision
	next := &apiextensionsv1.CustomResourceDefinition{}
	unmarshal(t, manifest(group, "v1", "v1beta1"), next)
	changeCRD(t, name, func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions = next.Spec.Versions })

	waitFor(t, name, v1alpha1.RulesValidCondition, metav1.ConditionTrue, v1alpha1.ReasonCompiled)
	after := getPolicy(t, name).Status.Converter.Revision
	if after == before {
		t.Fatal("the ruleset did not change with the version")
	}
	stores(t, name, func(hashes []string) bool { return slices.Contains(hashes, after) })
	expect.Eventually(t, "the policy is ready again", func() (bool, string) {
		pods.run(t, name)
		ready := apimeta.FindStatusCondition(getPolicy(t, name).Status.Conditions, v1alpha1.ReadyCondition)
		return ready.Reason == v1alpha1.ReasonSucceeded, ready.Message
	})
	stores(t, name, func(hashes []string) bool { return slices.Equal(hashes, []string{after}) })
}

// TestPinnedWrites: no write to a CustomResourceDefinition succeeds if it or the policy changed
// since the decision, and no run starts if the policy changed.
func TestPinnedWrites(t *testing.T) {
	const group, name = "pinned.example.com", "crontabs.pinned.example.com"
	crd := create(t, manifest(group, "v1beta1", "v1"), &apiextensionsv1.CustomResourceDefinition{})
	stale := step.Pin{Name: name, UID: crd.UID, ResourceVersion: crd.ResourceVersion}
	expect.Eventually(t, "the API server has written the status", func() (bool, string) {
		return getCRD(t, name).ResourceVersion != stale.ResourceVersion, "unchanged"
	})
	other := step.Pin{Name: name, UID: "another", ResourceVersion: getCRD(t, name).ResourceVersion}
	suspended := &v1alpha1.ConversionPolicy{}
	unmarshal(t, policy(group), suspended)
	suspended.Spec.Suspend = true
	expect.NoError(t, cluster.Create(t.Context(), suspended))
	waitFor(t, name, v1alpha1.ReadyCondition, metav1.ConditionUnknown, v1alpha1.ReasonSuspended)
	fresh := step.Pin{Name: name, UID: crd.UID, ResourceVersion: getCRD(t, name).ResourceVersion}
	known := getPolicy(t, name)
	recreated := known.DeepCopy()
	recreated.UID = "another"
	reconciler := &ConversionPolicyReconciler{Client: cluster, Live: cluster}
	for what, c := range map[string]struct {
		policy *v1alpha1.ConversionPolicy
		pin    step.Pin
	}{
		"a CustomResourceDefinition that was changed since":   {known, stale},
		"a CustomResourceDefinition that was recreated since": {known, other},
		"behalf of a policy that was changed since":           {suspended, fresh},
		"behalf of a policy that was recreated since":         {recreated, fresh},
	} {
		steps := []step.Step{
			step.SwitchCRD{Pin: c.pin, Conversion: &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}},
			step.RestoreCRD{Pin: c.pin},
			step.PruneStoredVersions{Pin: c.pin, StorageVersion: "v1"},
			step.EditVersions{Pin: c.pin, Changes: []step.VersionChange{{Name: "v1beta1", Field: "deprecated", Value: true}}},
		}
		if c.pin == fresh {
			steps = append(steps, step.Create{Object: corev1apply.ConfigMap("nobodys", system)})
		}
		for _, s := range steps {
			if err := reconciler.do(t.Context(), c.policy, s); !apierrors.IsConflict(err) && !apierrors.IsInvalid(err) {
				t.Errorf("%T on %s: %v, want a refusal", s, what, err)
			}
		}
	}
}
