// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestExplain: what an API server refuses is seen in the status, and is tried again.
func TestExplain(t *testing.T) {
	policy := &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "crontabs.example.com", Generation: 3}}
	policy.Status.ObservedGeneration = 3
	explain(&policy.Status, policy, errors.New("apply Secret crontabs: exceeded quota"), metav1.NewTime(time.Unix(0, 0)))
	ready := apimeta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ReadyCondition)
	if ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != v1alpha1.ReasonApplyFailed || !strings.Contains(ready.Message, "exceeded quota") {
		t.Errorf("Ready is %+v", ready)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(policy)
	expect.NoError(t, err)
	is, err := status.Compute(&unstructured.Unstructured{Object: content})
	expect.NoError(t, err)
	if is.Status != status.InProgressStatus {
		t.Errorf("kstatus reads %s, want InProgress: %s", is.Status, is.Message)
	}
}

func TestShorten(t *testing.T) {
	for text, want := range map[string]string{
		"short":                          "short",
		strings.Repeat("n", maxNote):     strings.Repeat("n", maxNote),
		strings.Repeat("n", maxNote+1):   strings.Repeat("n", maxNote-3) + "...",
		strings.Repeat("é", maxNote/2+1): strings.Repeat("é", (maxNote-3)/2) + "...",
	} {
		if got := shorten(text); got != want {
			t.Errorf("%d bytes became %d, want %d", len(text), len(got), len(want))
		}
	}
}
