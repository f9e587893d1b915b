//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/incompressible"
)

// sized is a kind with two versions. Only the hub, which is stored, has a field without a limit.
type sized struct{ group, policy string }

func defineSized(t *testing.T, group string) *sized {
	t.Helper()
	k := &sized{group, "crontabs." + group}
	define(t, group, "v1")
	var versions []apiextensionsv1.CustomResourceDefinitionVersion
	expect.NoError(t, yaml.Unmarshal([]byte(`
- {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {team: {type: string}, blob: {type: string}}}}}}}
- {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {team: {type: string}}}}}}}
`), &versions))
	changeCRD(t, k.policy, func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions = versions })
	return k
}

func (k *sized) object(version, name, team, blob string) *unstructured.Unstructured {
	object, spec := cronTab(k.group, version, name), map[string]any{"team": team}
	if blob != "" {
		spec["blob"] = blob
	}
	object.Object["spec"] = spec
	return object
}

func (k *sized) create(t *testing.T, version, name, blob string) {
	t.Helper()
	createObject(t, k.object(version, name, "a", blob), "")
}

// write sets the team of an object at a version.
func (k *sized) write(t *testing.T, version, name string, options ...client.PatchOption) error {
	t.Helper()
	return cluster.Patch(t.Context(), k.object(version, name, "", ""), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"team":"b"}}`)), options...)
}

// wantRefused waits until a write is refused for its size. It is a dry run: at the storage version, API servers
// accept the write if the converter does not answer within five seconds, because it loses nothing.
func (k *sized) wantRefused(t *testing.T, what string, write func(...client.PatchOption) error, texts ...string) {
	t.Helper()
	expect.Eventually(t, what+" is refused", func() (bool, string) {
		text := fmt.Sprint(write(client.DryRunAll))
		return !slices.ContainsFunc(texts, func(part string) bool { return !strings.Contains(text, part) }), text
	})
}

// wantReads gets and lists an object at a version for which it is too large.
func (k *sized) wantReads(t *testing.T, version, name string) {
	t.Helper()
	read := k.object(version, name, "", "")
	expect.NoError(t, cluster.Get(t.Context(), client.ObjectKeyFromObject(read), read))
	if team, _, _ := unstructured.NestedString(read.Object, "spec", "team"); team != "a" || !strings.Contains(fmt.Sprint(read.GetAnnotations()), `"omitted":{"count":1,`) {
		t.Errorf("%s at %s is %.300v", name, version, read.Object)
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": k.group + "/" + version, "kind": "CronTabList"}}
	expect.NoError(t, cluster.List(t.Context(), list))
	all := []string{}
	for i := range list.Items {
		all = append(all, list.Items[i].GetName())
	}
	if !slices.Contains(all, name) || !slices.Contains(all, "small") {
		t.Errorf("a list at %s has %v", version, all)
	}
	list = &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": k.group + "/" + version, "kind": "CronTabList"}}
	watch, err := cluster.Watch(t.Context(), list, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0", FieldSelector: "metadata.name=" + name}})
	expect.NoError(t, err)
	defer watch.Stop()
	select {
	case event := <-watch.ResultChan():
		if event.Type != "ADDED" {
			t.Errorf("a watch at %s: %v", version, event)
		}
	case <-time.After(expect.Patience):
		t.Errorf("a watch at %s says nothing", version)
	}
}

// stored returns the bytes in etcd by object, and fails the test if one was truncated.
func (k *sized) stored(t *testing.T) map[string]string {
	t.Helper()
	entries, _, err := storage.List(t.Context(), "/registry/"+k.group+"/")
	expect.NoError(t, err)
	found := map[string]string{}
	for _, each := range entries {
		object := &metav1.PartialObjectMetadata{}
		expect.NoError(t, json.Unmarshal(each.Value, object))
		if bytes.Contains(each.Value, []byte("omitted")) {
			t.Errorf("%s is stored as %.500s", object.Name, each.Value)
		}
		found[object.Name] = string(each.Value)
	}
	return found
}

func (k *sized) oversized(t *testing.T) ([]v1alpha1.OversizedObject, *metav1.Condition) {
	t.Helper()
	is := getPolicy(t, k.policy).Status
	return is.OversizedObjects, apimeta.FindStatusCondition(is.Conditions, v1alpha1.OversizedObjectsCondition)
}

// TestObjectsTooLarge: an object from before the policy is too large for annotations. All versions
// can be read, the policy reports the object before any client reads it, and writes that would lose
// data are rejected, also while the storage version changes to the version that lacks the field and
// back. No truncated object is ever stored.
func TestObjectsTooLarge(t *testing.T) {
	t.Parallel()
	k := defineSized(t, "sized.example.com")
	k.create(t, "v1", "before", incompressible.Text(400<<10))
	k.create(t, "v1", "small", "small")
	before := k.stored(t)["before"]
	createPolicy(t, k.group, func(policy *v1alpha1.ConversionPolicy) {
		policy.Spec.Converter.Declarative.Spokes[0].Rules = nil
		policy.Spec.Migration.Mode = v1alpha1.MigrationNever
	})
	waitFor(t, k.policy, v1alpha1.OversizedObjectsCondition, metav1.ConditionTrue, v1alpha1.ReasonReadTruncated,
		[]string{"object default/before does not fit at v1beta1: .spec.blob, which only v1 has", "reduce these fields at v1"})
	waitFor(t, k.policy, v1alpha1.ConversionConfiguredCondition, metav1.ConditionTrue, v1alpha1.ReasonConfigured, nil)
	known, _ := k.oversized(t)
	if len(known) != 1 || known[0].Bytes < 400<<10 {
		t.Errorf("status.oversizedObjects is %+v", known)
	}
	waitEvent(t, k.policy, v1alpha1.ReasonReadTruncated)

	check := func() {
		t.Helper()
		k.wantReads(t, "v1beta1", "before")
		k.wantRefused(t, "a write at v1beta1", func(options ...client.PatchOption) error { return k.write(t, "v1beta1", "before", options...) },
			"the fields that only version v1 has take ", ".spec.blob")
		k.wantRefused(t, "a write at v1", func(options ...client.PatchOption) error { return k.write(t, "v1", "before", options...) },
			"the object cannot be converted to v1beta1 as a whole", ".spec.blob")
		another := k.object("v1", "another", "a", incompressible.Text(300<<10))
		k.wantRefused(t, "another one", func(...client.PatchOption) error {
			return cluster.Create(t.Context(), another.DeepCopy(), client.DryRunAll)
		},
			"denied the request", "the object cannot be converted to v1beta1 as a whole", "make .spec.blob smaller")
		for _, version := range []string{"v1beta1", "v1"} {
			if loses := version == "v1beta1" || crds.StorageVersion(getCRD(t, k.policy)) == "v1beta1"; loses && k.write(t, version, "before") == nil {
				t.Errorf("a write at %s is accepted", version)
			}
		}
		expect.NoError(t, k.write(t, "v1beta1", "small"))
		expect.NoError(t, k.write(t, "v1", "small"))
		if now := k.stored(t); now["before"] != before || len(now) != 2 {
			t.Errorf("%d objects are stored, and before as %.300s", len(now), now["before"])
		}
	}
	check()
	store := func(version string) {
		t.Helper()
		patch(t, getPolicy(t, k.policy), fmt.Sprintf(`{"spec":{"storageVersion":%q}}`, version))
		expect.Eventually(t, "objects are stored at "+version, func() (bool, string) {
			is := crds.StorageVersion(getCRD(t, k.policy))
			return is == version, is
		})
	}
	store("v1beta1")
	check()
	waitFor(t, k.policy, v1alpha1.ConversionConfiguredCondition, metav1.ConditionTrue, v1alpha1.ReasonConfigured, nil)
	check()
	store("v1")
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: names.Admission(k.policy)}}
	expect.Eventually(t, "the webhook configuration is that of v1", func() (bool, string) {
		expect.NoError(t, cluster.Get(t.Context(), client.ObjectKeyFromObject(configuration), configuration))
		settled := func(webhook admissionregistrationv1.ValidatingWebhook) bool {
			return *webhook.FailurePolicy == admissionregistrationv1.Ignore && slices.Equal(webhook.Rules[0].APIVersions, []string{"v1"})
		}
		return len(configuration.Webhooks) == 3 && slices.ContainsFunc(configuration.Webhooks, settled), fmt.Sprintf("%+v", configuration.Webhooks)
	})
	check()
	checkIdle(t, k.policy)

	// The operator owns the webhook configuration, like spec.conversion. While it still writes that of the last storage
	// version, it restores it without noticing that it was deleted: then it is deleted again.
	expect.Eventually(t, "an event AdmissionDrifted", func() (bool, string) {
		noticed, is := hasEvent(t, aboutPolicy, k.policy, v1alpha1.ReasonAdmissionDrifted, "")
		if !noticed {
			expect.NoError(t, client.IgnoreNotFound(cluster.Delete(t.Context(), configuration)))
		}
		return noticed, is
	})
	waitFor(t, k.policy, v1alpha1.ConversionConfiguredCondition, metav1.ConditionTrue, v1alpha1.ReasonConfigured, nil)
	check()

	// Without a converter, objects can still be written at the storage version.
	misbehave(t, k.policy, faults{APIServer: fault{NotFound: true}})
	expect.NoError(t, k.write(t, "v1", "small"))
	misbehave(t, k.policy, faults{})

	patch(t, k.object("v1", "before", "", ""), `{"spec":{"blob":"short"}}`)
	due := time.Now().Add(-time.Minute).UTC().Format(time.RFC3339)
	expect.Eventually(t, "samples are planned", func() (bool, string) {
		is := getPolicy(t, k.policy).Status.Verification
		return is != nil && is.NextSampleTime != nil, fmt.Sprint(is)
	})
	patchStatus(t, getPolicy(t, k.policy), fmt.Sprintf(`{"status":{"verification":{"nextSampleTime":%q}}}`, due))
	expect.Eventually(t, "it is over", func() (bool, string) {
		known, condition := k.oversized(t)
		return known == nil && condition == nil, fmt.Sprintf("%+v %v", known, condition)
	})
	waitEvent(t, k.policy, v1alpha1.ReasonResolved)
	expect.NoError(t, k.write(t, "v1beta1", "before"))
}
