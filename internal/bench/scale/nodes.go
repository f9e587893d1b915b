// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/plan/names"
)

// nodes acts as the controllers and kubelets of a cluster for Deployments: it creates ready pods,
// and endpoints. All pods have addresses of this machine, where converters serves for them.
type nodes struct {
	client client.WithWatch
	// pods counts the started pods.
	pods int
}

// run watches Deployments until ctx ends, or until the first error.
func (n *nodes) run(ctx context.Context) error {
	watching, err := n.client.Watch(ctx, &appsv1.DeploymentList{}, client.InNamespace(system))
	if err != nil {
		return err
	}
	defer watching.Stop()
	for event := range watching.ResultChan() {
		deployment, isDeployment := event.Object.(*appsv1.Deployment)
		if event.Type == watch.Deleted || !isDeployment || deployment.Status.ObservedGeneration == deployment.Generation {
			continue
		}
		if err := n.rollOut(ctx, deployment); err != nil && ctx.Err() == nil {
			return fmt.Errorf("playing the nodes for %s: %w", deployment.Name, err)
		}
	}
	return nil
}

func (n *nodes) rollOut(ctx context.Context, deployment *appsv1.Deployment) error {
	old := &corev1.PodList{}
	if err := n.client.List(ctx, old, client.InNamespace(system), client.MatchingLabels(deployment.Spec.Selector.MatchLabels)); err != nil {
		return err
	}
	for range *deployment.Spec.Replicas {
		if err := n.startPod(ctx, deployment); err != nil {
			return err
		}
	}
	for i := range old.Items {
		if err := n.client.Delete(ctx, &old.Items[i], client.GracePeriodSeconds(0)); err != nil {
			return err
		}
	}
	if err := n.expose(ctx, deployment.Name); err != nil {
		return err
	}
	base := deployment.DeepCopy()
	replicas := *deployment.Spec.Replicas
	deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: deployment.Generation,
		Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas}
	return n.client.Status().Patch(ctx, deployment, client.MergeFrom(base))
}

func (n *nodes) startPod(ctx context.Context, deployment *appsv1.Deployment) error {
	n.pods++
	template := deployment.Spec.Template.DeepCopy()
	// Nothing creates tokens of ServiceAccounts here.
	template.Spec.ServiceAccountName, template.Spec.DeprecatedServiceAccount = "", ""
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: fmt.Sprintf("%s-%d", deployment.Name, n.pods),
			Labels: template.Labels, Annotations: template.Annotations},
		Spec: template.Spec,
	}
	if err := n.client.Create(ctx, pod); err != nil {
		return err
	}
	address := fmt.Sprintf("127.1.%d.%d", n.pods>>8&0xff, n.pods&0xff)
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	return n.client.Status().Update(ctx, pod)
}

// expose creates endpoints at an arbitrary address: an EndpointSlice accepts none of this machine.
func (n *nodes) expose(ctx context.Context, service string) error {
	err := n.client.Create(ctx, &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: service, Labels: map[string]string{
			discoveryv1.LabelServiceName: service, names.InstanceLabel: service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}},
	})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
