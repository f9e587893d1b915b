//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/incompressible"
)

// TestLiveObjectFails has an object that cannot be converted to the stored version. That version
// has a scale subresource, so nothing is truncated to it. The policy reports the object and the
// cause until the object is corrected.
func TestLiveObjectFails(t *testing.T) {
	t.Parallel()
	const group, policy = "failing.example.com", "crontabs.failing.example.com"
	define(t, group, "v1beta1", "v1")
	// v1 lacks a field, whose value is too large for its annotations.
	big := cronTab(group, "v1beta1", "big")
	createObject(t, big, fmt.Sprintf("hostPort: %q", incompressible.Text(300_000)))
	changeCRD(t, policy, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions = versionsOf(t, "v1", "v1beta1")
		crd.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{
			Scale: &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas"}}
	})
	createPolicy(t, group, func(policy *v1alpha1.ConversionPolicy) {
		policy.Spec.Migration.Mode = v1alpha1.MigrationNever
		policy.Spec.Verification.Samples = new(int32)
	})
	waitFor(t, policy, v1alpha1.ConversionConfiguredCondition, metav1.ConditionTrue, v1alpha1.ReasonConfigured, nil)
	readAt := func() error {
		list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": group + "/v1", "kind": "CronTabList"}}
		return cluster.List(t.Context(), list, client.Limit(500)) // without a limit, Kubernetes before 1.36 answers for its watch cache
	}
	expect.Contains(t, "the answer", fmt.Sprint(readAt()), "default/big")
	waitFor(t, policy, v1alpha1.ConversionsFailingCondition, metav1.ConditionTrue, v1alpha1.ReasonConversionFailed,
		[]string{"from v1beta1 to v1 fail: AnnotationsTooLarge", "default/big", "truncate the object's annotations"})
	is := getPolicy(t, policy)
	if rows := is.Status.ConversionFailures; len(rows) != 1 || rows[0].Object != "default/big" || rows[0].LastTime.IsZero() {
		t.Errorf("status.conversionFailures is %+v", rows)
	}
	expect.Equal(t, "it converts", true, apimeta.IsStatusConditionTrue(is.Status.Conditions, v1alpha1.ConversionConfiguredCondition))
	waitEvent(t, policy, v1alpha1.ReasonConversionFailed)

	changeCRD(t, policy, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions = versionsOf(t, "v1beta1", "v1")
	})
	waitReady(t, policy, v1alpha1.ReasonSucceeded)
	expect.Success(t, "the API server stores at the other version", func(ctx context.Context) error {
		return cluster.Patch(ctx, big, client.RawPatch(types.MergePatchType, []byte(`{"hostPort":"a:1"}`)))
	})
	expect.Eventually(t, "it is over", func() (bool, string) {
		is := getPolicy(t, policy)
		found := apimeta.FindStatusCondition(is.Status.Conditions, v1alpha1.ConversionsFailingCondition)
		return found == nil && len(is.Status.ConversionFailures) == 0, found.String()
	})
	waitEvent(t, policy, v1alpha1.ReasonResolved)
	expect.NoError(t, readAt())
}

// TestLiveObjectsAreSampledAgain: failures after the activation are detected, nothing is reverted,
// and the right to read is revoked each time.
func TestLiveObjectsAreSampledAgain(t *testing.T) {
	t.Parallel()
	const group, policy = "resampled.example.com", "crontabs.resampled.example.com"
	define(t, group, "v1beta1", "v1")
	createCronTab(t, group, "v1beta1", "good", "a.example.com:1")
	createCronTab(t, group, "v1beta1", "odd", "odd.example.com:2")
	// The stored version of this object is unknown, so it is read at v1, and converted.
	patch(t, cronTab(group, "v1beta1", "odd"), `{"metadata":{"managedFields":[{}]}}`)
	changeCRD(t, policy, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions = versionsOf(t, "v1", "v1beta1")
	})
	createPolicy(t, group, nil)
	waitFor(t, policy, v1alpha1.ConversionConfiguredCondition, metav1.ConditionTrue, v1alpha1.ReasonConfigured, nil)
	expect.Eventually(t, "the next samples are planned", func() (bool, string) {
		is := getPolicy(t, policy).Status.Verification
		return is != nil && is.NextSampleTime != nil, fmt.Sprintf("%+v", is)
	})
	active := getCRD(t, policy)

	minutes := 0
	sampled := func(what string, samples func(*metav1.Condition) bool) {
		t.Helper()
		before := getPolicy(t, policy).Status.Verification
		if before == nil || before.NextSampleTime == nil || before.NextSampleTime.Before(&metav1.Time{Time: time.Now()}) {
			t.Fatalf("the next samples are not to come: %+v", before)
		}
		minutes++ // a different time for each, else the previous result would be reused
		due := time.Now().Add(-time.Duration(minutes) * time.Minute).UTC().Format(time.RFC3339)
		patchStatus(t, getPolicy(t, policy), fmt.Sprintf(`{"status":{"verification":{"nextSampleTime":%q}}}`, due))
		expect.Eventually(t, what, func() (bool, string) {
			is := getPolicy(t, policy).Status
			found := apimeta.FindStatusCondition(is.Conditions, v1alpha1.SamplesFailingCondition)
			return is.Verification.NextSampleTime.After(time.Now()) && samples(found), fmt.Sprintf("%+v %v", is.Verification, found)
		})
		checkAtRest(t, policy)
	}
	sampled("both come back", func(failing *metav1.Condition) bool {
		return failing == nil
	})
	misbehave(t, policy, faults{Manager: fault{Replace: [2]string{`"host":"odd`, `"host":"even`}}})
	sampled("one is lost", func(failing *metav1.Condition) bool {
		return failing != nil && failing.Reason == v1alpha1.ReasonRoundTripFailed && strings.Contains(failing.Message, "default/odd")
	})
	misbehave(t, policy, faults{APIServer: fault{Refuse: "odd.example.com"}})
	sampled("one cannot be read", func(failing *metav1.Condition) bool {
		return failing != nil && failing.Reason == v1alpha1.ReasonObjectsUnreadable && strings.Contains(failing.Message, "hostPort of local has no port")
	})
	misbehave(t, policy, faults{})
	sampled("all is well again", func(failing *metav1.Condition) bool {
		return failing == nil
	})
	waitEvent(t, policy, v1alpha1.ReasonResolved)
	if after := getCRD(t, policy); after.Generation != active.Generation || !slices.Equal(after.Status.StoredVersions, active.Status.StoredVersions) {
		t.Errorf("the CustomResourceDefinition was written: generation %d, was %d", after.Generation, active.Generation)
	}
}
