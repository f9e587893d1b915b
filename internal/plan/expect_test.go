// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// expectCondition looks at one condition, whose message has to have a text in it.
func expectCondition(t *testing.T, is v1alpha1.ConversionPolicyStatus, condition, status, reason, message string) {
	t.Helper()
	got := apimeta.FindStatusCondition(is.Conditions, condition)
	if got == nil {
		t.Errorf("there is no condition %s", condition)
		return
	}
	if got.Status != metav1.ConditionStatus(status) || got.Reason != reason || !strings.Contains(got.Message, message) {
		t.Errorf("%s is %s %s: %s; want %s %s with %q", condition, got.Status, got.Reason, got.Message, status, reason, message)
	}
}
