// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/workload"
)

// observeImages reads which images have a Deployment, and the endpoints of each. A Deployment
// without a valid endpoint annotation was not created by the operator, or was changed, and is
// ignored.
func (r *ConversionPolicyReconciler) observeImages(ctx context.Context, state *observed.Cluster) error {
	deployments := &appsv1.DeploymentList{}
	if err := r.Client.List(ctx, deployments, r.childrenOf(state.Policy), client.HasLabels{names.RevisionLabel}); err != nil {
		return err
	}
	slices.SortFunc(deployments.Items, func(a, b appsv1.Deployment) int { return cmp.Compare(a.Name, b.Name) })
	for i := range deployments.Items {
		deployment := &deployments.Items[i]
		endpoint := &observed.ImageEndpoint{}
		if json.Unmarshal([]byte(deployment.Annotations[names.EndpointAnnotation]), endpoint) != nil {
			continue
		}
		state.Revisions = append(state.Revisions, observed.StoredRevision{Hash: deployment.Labels[names.RevisionLabel],
			Readable: deployment.DeletionTimestamp.IsZero(), Image: endpoint})
		state.PodFailure = cmp.Or(state.PodFailure, replicaFailure(deployment))
	}
	return nil
}

// observePods reads the running, starting and terminating converter pods.
func (r *ConversionPolicyReconciler) observePods(ctx context.Context, state *observed.Cluster) error {
	pods, ending, err := r.listPods(ctx, names.Child(state.Policy.Name))
	state.Pods, state.Ending = append(state.Pods, pods...), append(state.Ending, ending...)
	state.Others = r.otherNodes(ctx, pods)
	return err
}

// listPods returns the converter pods of a policy or of a fleet, by the instance label, and those
// that are being deleted.
func (r *ConversionPolicyReconciler) listPods(ctx context.Context, instance string) (pods []observed.Pod, ending []observed.EndingPod, err error) {
	list := &corev1.PodList{}
	err = r.Client.List(ctx, list, client.InNamespace(r.Settings.Namespace), client.MatchingLabels{
		names.InstanceLabel: instance, names.ManagedByLabel: names.ManagedBy, names.ComponentLabel: names.ConverterComponent})
	if err != nil {
		return nil, nil, err
	}
	fleet := names.FleetOf(instance)
	for i := range list.Items {
		pod := &list.Items[i]
		var revisions []string
		if image := pod.Labels[names.RevisionLabel]; image != "" {
			revisions = []string{image}
		}
		switch {
		case pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded:
		case !pod.DeletionTimestamp.IsZero():
			ending = append(ending, observed.EndingPod{Fleet: fleet, Until: pod.DeletionTimestamp.Time})
		default:
			pods = append(pods, observed.Pod{
				Name: pod.Name, UID: pod.UID, Fleet: fleet, Created: pod.CreationTimestamp.Time, IP: pod.Status.PodIP, Port: workload.PortOf(&pod.Spec),
				Revisions: revisions, Image: revisions != nil, Ready: workload.IsReady(pod), Trouble: trouble(pod),
				Scheduled: pod.Spec.NodeName != "", Node: pod.Spec.NodeName, Certificate: pod.Annotations[names.CertificateAnnotation], Ruleset: pod.Annotations[names.RulesetAnnotation]})
		}
	}
	return pods, ending, nil
}

// Reasons that the kubelet sets on a waiting container: pkg/kubelet/images/types.go and
// pkg/kubelet/container/sync_result.go of k8s.io/kubernetes.
var (
	imageReasons  = []string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}
	createReasons = []string{"CreateContainerConfigError", "CreateContainerError", "RunContainerError"}
)

const crashReason = "CrashLoopBackOff"

// The scheduler and the ReplicaSet controller report a cause only as text:
// pkg/scheduler/framework/plugins/nodeports of k8s.io/kubernetes, and
// k8s.io/pod-security-admission.
const (
	portsText       = "free ports"
	podSecurityText = "PodSecurity"
)

// trouble returns what keeps a pod from starting. The message is stable; the kubelet's own message
// counts attempts and seconds.
func trouble(pod *corev1.Pod) observed.PodTrouble {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			found := observed.PodTrouble{Cause: observed.PodUnschedulable, Message: "it cannot be scheduled: " + condition.Message}
			if strings.Contains(condition.Message, portsText) {
				found.Cause = observed.PodWithoutPort
			}
			return found
		}
	}
	for _, container := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		waiting := container.State.Waiting
		switch {
		case waiting == nil:
		case slices.Contains(imageReasons, waiting.Reason):
			return observed.PodTrouble{Cause: observed.PodWithoutImage, Message: "the image " + container.Image + " cannot be pulled"}
		case waiting.Reason == crashReason:
			return observed.PodTrouble{Cause: observed.PodExits, Message: "container " + container.Name + " exits on start, see its log"}
		case slices.Contains(createReasons, waiting.Reason):
			return observed.PodTrouble{Message: "container " + container.Name + " cannot be started: " + waiting.Message}
		}
	}
	return observed.PodTrouble{}
}

func replicaFailure(deployment *appsv1.Deployment) observed.PodTrouble {
	for _, condition := range deployment.Status.Conditions {
		if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
			found := observed.PodTrouble{Message: condition.Message}
			if strings.Contains(condition.Message, podSecurityText) {
				found.Cause = observed.PodForbidden
			}
			return found
		}
	}
	return observed.PodTrouble{}
}
