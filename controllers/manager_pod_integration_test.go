//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/podspec"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// managerPod is the name of the manager's pod in all tests.
const managerPod = "manager"

// inherited is what other pods take from it.
var inherited = podspec.Inherited{ImagePullSecrets: []string{"registry"}, Placement: v1alpha1.Placement{
	NodeSelector: map[string]string{"pool": "platform"},
	Tolerations:  []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}},
}}

func createManagerPod(ctx context.Context) error {
	return cluster.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: managerPod},
		Spec: corev1.PodSpec{
			ServiceAccountName: "conversion-operator",
			ImagePullSecrets:   []corev1.LocalObjectReference{{Name: "registry"}},
			NodeSelector:       inherited.Placement.NodeSelector,
			Tolerations:        inherited.Placement.Tolerations,
			Containers:         []corev1.Container{{Name: "manager", Image: "conversion-operator:test"}},
		}})
}

// TestReadManagerPod: the manager may read its own pod with the rights of its installation. The API
// server has added tolerations, which other pods do not inherit.
func TestReadManagerPod(t *testing.T) {
	defer install(t, "rbac/role.yaml", "rbac/role_binding.yaml")()
	manager := as(t, "system:serviceaccount:"+system+":conversion-operator", "system:serviceaccounts", "system:serviceaccounts:"+system)
	settings := observed.Settings{Namespace: system}
	expect.Eventually(t, "the rights of the manager have an effect", func() (bool, string) {
		err := ReadManagerPod(t.Context(), manager, managerPod, &settings)
		return err == nil, fmt.Sprint(err)
	})
	expect.Equal(t, "settings", observed.Settings{Namespace: system, ManagerAccount: "conversion-operator", Inherited: inherited}, settings)
	pod := &corev1.Pod{}
	expect.NoError(t, cluster.Get(t.Context(), client.ObjectKey{Namespace: system, Name: managerPod}, pod))
	expect.Equal(t, "tolerations, two for taints of lost nodes besides the pod's own,", 3, len(pod.Spec.Tolerations))
	err := ReadManagerPod(t.Context(), manager, "another", &settings)
	expect.Contains(t, "the error of a pod that does not exist", fmt.Sprint(err), "conversion-system/another does not exist")
}
