//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/controllers"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/podspec"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// inherited is what other pods take from it.
var inherited = podspec.Inherited{ImagePullSecrets: []string{"registry"}, Placement: v1alpha1.Placement{
	NodeSelector: map[string]string{corev1.LabelTopologyZone: "local"}, // nodes of processes have it
	Tolerations:  []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}},
}}

// createManagerPod creates the pod, which no scheduler sees.
func createManagerPod(ctx context.Context) error {
	return cluster.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: podName},
		Spec: corev1.PodSpec{
			ServiceAccountName: "conversion-operator",
			SchedulerName:      "none",
			ImagePullSecrets:   []corev1.LocalObjectReference{{Name: "registry"}},
			NodeSelector:       inherited.Placement.NodeSelector,
			Tolerations:        inherited.Placement.Tolerations,
			Containers:         []corev1.Container{{Name: "manager", Image: operatorImage}},
		}})
}

// TestReadManagerPod: the manager reads its own pod with the rights of its installation, and the pods of converters
// inherit from it. The API server has added tolerations, which they do not inherit.
func TestReadManagerPod(t *testing.T) {
	t.Parallel()
	expect.Equal(t, "account", "conversion-operator", manager.settings.ManagerAccount)
	expect.Equal(t, "what others inherit", inherited, manager.settings.Inherited)
	pod := get(t, podName, &corev1.Pod{})
	expect.Equal(t, "tolerations, two for taints of lost nodes besides the pod's own,", 3, len(pod.Spec.Tolerations))
	asItself, err := client.New(manager.config, client.Options{Scheme: cluster.Scheme()})
	expect.NoError(t, err)
	err = controllers.ReadManagerPod(t.Context(), asItself, "another", &observed.Settings{Namespace: system})
	expect.Contains(t, "the error of a pod that does not exist", fmt.Sprint(err), "conversion-system/another does not exist")
}
