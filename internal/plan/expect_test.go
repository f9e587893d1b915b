// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// expectCondition looks at one condition, whose message has to have a text in it.
func expectCondition(t *testing.T, is v1alpha1.ConversionPolicyStatus, condition, value, reason, message string) {
	t.Helper()
	got := apimeta.FindStatusCondition(is.Conditions, condition)
	if got == nil {
		t.Errorf("there is no condition %s", condition)
		return
	}
	if got.Status != metav1.ConditionStatus(value) || got.Reason != reason || !strings.Contains(got.Message, message) {
		t.Errorf("%s is %s %s: %s; want %s %s with %q", condition, got.Status, got.Reason, got.Message, value, reason, message)
	}
}

// checkStatus holds the field's own reading of a status against ours.
func checkStatus(t *testing.T, policy *v1alpha1.ConversionPolicy, is v1alpha1.ConversionPolicyStatus) {
	t.Helper()
	checkConditions(t, policy, is)
	object := policy.DeepCopy()
	object.Status = is
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	result, err := status.Compute(&unstructured.Unstructured{Object: content})
	if err != nil {
		t.Fatal(err)
	}
	want := status.InProgressStatus
	switch {
	case !policy.DeletionTimestamp.IsZero():
		want = status.TerminatingStatus
	case apimeta.IsStatusConditionTrue(is.Conditions, v1alpha1.StalledCondition):
		want = status.FailedStatus
	case apimeta.IsStatusConditionTrue(is.Conditions, v1alpha1.ReadyCondition):
		want = status.CurrentStatus
	}
	if result.Status != want {
		t.Errorf("kstatus reads %s, want %s: %s", result.Status, want, result.Message)
	}
}
