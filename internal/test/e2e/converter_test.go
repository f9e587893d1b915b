//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestConverterPodsHaveNoRights: all objects pass through converter pods, which therefore have no
// access to the API.
func TestConverterPodsHaveNoRights(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	crontab := inGroup(t, "rights.example.com")
	applySample(ctx, t, crontab, crontab.CRDBefore)
	applySample(ctx, t, crontab, crontab.Policy)
	waitReady(ctx, t, crontab.CRD(), v1alpha1.ReasonWaitingForVersion)

	found := pods(ctx, t, client.MatchingLabels{
		names.ComponentLabel: names.ConverterComponent, names.InstanceLabel: names.Child(crontab.CRD())})
	if len(found) != 2 {
		t.Fatalf("%d converter pods, want 2", len(found))
	}
	for _, pod := range found {
		if slices.ContainsFunc(pod.Spec.Volumes, func(volume corev1.Volume) bool {
			return volume.Projected != nil && slices.ContainsFunc(volume.Projected.Sources, func(source corev1.VolumeProjection) bool {
				return source.ServiceAccountToken != nil
			})
		}) {
			t.Errorf("pod %s mounts a ServiceAccount token", pod.Name)
		}
		if pod.Spec.ServiceAccountName != "conversion-operator-converter" {
			t.Errorf("pod %s runs as %s", pod.Name, pod.Spec.ServiceAccountName)
		}
	}
	for _, verb := range []string{"get", "list", "create"} {
		answer, err := teller.Run(ctx, "kubectl", "auth", "can-i", verb, "secrets", "-n", system,
			"--as=system:serviceaccount:"+system+":conversion-operator-converter")
		if err == nil {
			t.Errorf("converter pods can %s secrets: %s", verb, answer)
		}
	}
}

// TestDeletionIsBlocked deletes a policy that is in use.
func TestDeletionIsBlocked(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	crontab := inGroup(t, "deletion.example.com")
	applySample(ctx, t, crontab, crontab.CRDBoth)
	applySample(ctx, t, crontab, crontab.Policy)
	waitReady(ctx, t, crontab.CRD(), v1alpha1.ReasonSucceeded)
	expect.NoError(t, fleet.Create(ctx, crontab.At(crontab.Old), 10, crontab.Object))

	policy := getPolicy(ctx, t, crontab.CRD())
	expect.NoError(t, cluster.Delete(ctx, policy))
	expect.Eventually(t, "deletion is blocked", func() (bool, string) {
		for _, condition := range getPolicy(ctx, t, crontab.CRD()).Status.Conditions {
			if condition.Type == v1alpha1.DeletionBlockedCondition {
				return condition.Reason == v1alpha1.ReasonVersionsInUse, condition.Message
			}
		}
		return false, "no condition"
	})
	if _, err := fleet.List(ctx, crontab.At(crontab.New)); err != nil {
		t.Errorf("objects cannot be read while the deletion is blocked: %v", err)
	}

	applySample(ctx, t, crontab, crontab.CRDBefore)
	expect.Eventually(t, "the policy is gone", func() (bool, string) {
		err := cluster.Get(ctx, client.ObjectKey{Name: crontab.CRD()}, &v1alpha1.ConversionPolicy{})
		return client.IgnoreNotFound(err) == nil && err != nil, "still there"
	})
	if strategy := getCRD(ctx, t, crontab.CRD()).Spec.Conversion.Strategy; strategy != "None" {
		t.Errorf("the strategy is %s, want None", strategy)
	}
	items, err := fleet.List(ctx, crontab.At(crontab.Old))
	if err != nil || len(items) != 10 {
		t.Errorf("%d objects are readable, want 10: %v", len(items), err)
	}
	expect.Eventually(t, "nothing of the converter is left", func() (bool, string) {
		left := pods(ctx, t, client.MatchingLabels{names.InstanceLabel: names.Child(crontab.CRD())})
		return len(left) == 0, "pods"
	})
}
