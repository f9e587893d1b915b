// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"context"
	"maps"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// Pod is the name and the place of a pod.
type Pod struct {
	Name, IP string
	// Node is empty if a deletion removes the pod immediately, as no kubelet terminates it.
	Node string
	// Port replaces the first port of the first container, unless it is zero: pods of one machine
	// cannot have the same one.
	Port int32
}

// RunPod acts as Deployment controller and kubelet: it creates a running and ready pod of a
// Deployment, unless the pod exists.
func RunPod(tb testing.TB, writer client.Client, deployment *appsv1.Deployment, as Pod) {
	tb.Helper()
	template := deployment.Spec.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.Name = deployment.Namespace, as.Name
	pod.Spec.NodeName, pod.Spec.ServiceAccountName, pod.Spec.DeprecatedServiceAccount = as.Node, "", ""
	if as.Port != 0 {
		pod.Spec.Containers[0].Ports[0].ContainerPort = as.Port
	}
	err := writer.Create(tb.Context(), pod)
	if apierrors.IsAlreadyExists(err) {
		return
	}
	expect.NoError(tb, err)
	// The operator may write annotations of the pod in between, so this is a patch.
	base := pod.DeepCopy()
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: as.IP, PodIPs: []corev1.PodIP{{IP: as.IP}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	expect.NoError(tb, writer.Status().Patch(tb.Context(), pod, client.MergeFrom(base)))
}

// RolledOut sets the status of a Deployment to replicas pods, all up to date.
func RolledOut(tb testing.TB, writer client.Client, deployment *appsv1.Deployment, replicas int32) {
	tb.Helper()
	base := deployment.DeepCopy()
	deployment.Status.ObservedGeneration = deployment.Generation
	deployment.Status.Replicas, deployment.Status.UpdatedReplicas = replicas, replicas
	expect.NoError(tb, writer.Status().Patch(tb.Context(), deployment, client.MergeFrom(base)))
}

// Expose sets the address, and the ports that API servers call, of a Service. labels are additional
// labels of the EndpointSlice. Kubernetes 1.32 calls webhooks by Endpoints, and later versions by
// EndpointSlices. Clusters have both.
func Expose(tb testing.TB, writer client.Client, service client.ObjectKey, labels map[string]string, address string, ports map[string]int32) {
	tb.Helper()
	labels = maps.Clone(labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[discoveryv1.LabelServiceName] = service.Name
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: service.Namespace, Name: service.Name, Labels: labels},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}},
	}
	for name, port := range ports {
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &name, Port: &port, Protocol: new(corev1.ProtocolTCP)})
	}
	expect.NoError(tb, createOrMerge(tb.Context(), writer, slice))
	subset := corev1.EndpointSubset{Addresses: []corev1.EndpointAddress{{IP: address}}} //nolint:staticcheck // Kubernetes 1.32 reads it
	for name, port := range ports {
		subset.Ports = append(subset.Ports, corev1.EndpointPort{Name: name, Port: port})
	}
	expect.NoError(tb, createOrMerge(tb.Context(), writer, &corev1.Endpoints{ //nolint:staticcheck // Kubernetes 1.32 reads it
		ObjectMeta: metav1.ObjectMeta{Namespace: service.Namespace, Name: service.Name},
		Subsets:    []corev1.EndpointSubset{subset}, //nolint:staticcheck // Kubernetes 1.32 reads it
	}))
}

func createOrMerge(ctx context.Context, writer client.Client, object client.Object) error {
	err := writer.Create(ctx, object)
	if apierrors.IsAlreadyExists(err) {
		return writer.Patch(ctx, object, client.Merge)
	}
	return err
}
