// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/test/answers"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestPodSecurityIsRecognized: Deployments quote the answer of an API server that refuses their pods.
func TestPodSecurityIsRecognized(t *testing.T) {
	found := 0
	for _, answer := range answers.All(t) {
		if answer.Request != answers.Create || answer.Case != "pod-security" {
			continue
		}
		found++
		deployment := &appsv1.Deployment{Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{{
			Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: answer.Error().Error()}}}}
		if got := replicaFailure(deployment); got.Cause != observed.PodForbidden {
			t.Errorf("%s: the cause is %v: %s", answer, got.Cause, got.Message)
		}
	}
	expect.Equal(t, "there is an answer for pods that Pod Security refuses", true, found > 0)
}
