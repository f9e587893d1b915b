// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// RunPods replaces the pods of a Deployment by pods of its template, once it exists. They are ready and in
// the EndpointSlice of its Service, and no process runs. It is for tests of what the manager writes, with
// probes that the test answers; StartCluster runs real pods.
func RunPods(tb testing.TB, writer client.Client, key client.ObjectKey) {
	tb.Helper()
	deployment := &appsv1.Deployment{}
	expect.Eventually(tb, "the Deployment is there", func() (bool, string) {
		err := writer.Get(tb.Context(), key, deployment)
		return err == nil, fmt.Sprint(err)
	})
	labels := client.MatchingLabels{names.InstanceLabel: key.Name}
	expect.NoError(tb, writer.DeleteAllOf(tb.Context(), &corev1.Pod{}, client.InNamespace(key.Namespace), labels, client.GracePeriodSeconds(0)))
	replicas := *deployment.Spec.Replicas
	for i := range replicas {
		runPod(tb, writer, deployment, i)
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: map[string]string{names.InstanceLabel: key.Name, discoveryv1.LabelServiceName: key.Name}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"10.1.2.1"}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}},
	}
	if err := writer.Create(tb.Context(), slice); !apierrors.IsAlreadyExists(err) {
		expect.NoError(tb, err)
	}
	base := deployment.DeepCopy()
	deployment.Status.ObservedGeneration = deployment.Generation
	deployment.Status.Replicas, deployment.Status.UpdatedReplicas = replicas, replicas
	expect.NoError(tb, writer.Status().Patch(tb.Context(), deployment, client.MergeFrom(base)))
}

func runPod(tb testing.TB, writer client.Client, deployment *appsv1.Deployment, number int32) {
	tb.Helper()
	template := deployment.Spec.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.GenerateName = deployment.Namespace, deployment.Name+"-"
	pod.Spec.NodeName, pod.Spec.ServiceAccountName, pod.Spec.DeprecatedServiceAccount = "node", "", ""
	expect.NoError(tb, writer.Create(tb.Context(), pod))
	// The operator may write annotations of the pod in between, so this is a patch.
	base, ip := pod.DeepCopy(), fmt.Sprintf("10.1.2.%d", number+1)
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	expect.NoError(tb, writer.Status().Patch(tb.Context(), pod, client.MergeFrom(base)))
}
