// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patch changes only the fields of the body. Conditions of others remain.
func patch(body map[string]any) client.Patch {
	text, _ := json.Marshal(body) // cannot fail: it is to become JSON
	return client.RawPatch(types.StrategicMergePatchType, text)
}

// change turns the reported status of a pod into another one. It fails for another pod of that name.
func change(object *corev1.Pod, reported, status *corev1.PodStatus) (client.Patch, error) {
	before, after := object.DeepCopy(), object.DeepCopy()
	before.Status, after.Status = *reported, *status
	text, err := client.StrategicMergeFrom(before).Data(after)
	if err != nil {
		return nil, err
	}
	body := map[string]any{}
	if err := json.Unmarshal(text, &body); err != nil {
		return nil, err
	}
	body["metadata"] = map[string]any{"uid": object.UID}
	return patch(body), nil
}

// conditions are those that a node reports.
var conditions = []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady, corev1.PodInitialized}

// ours returns a status without conditions that others report.
func ours(status *corev1.PodStatus) *corev1.PodStatus {
	status = status.DeepCopy()
	status.Conditions = slices.DeleteFunc(status.Conditions, func(c corev1.PodCondition) bool { return !slices.Contains(conditions, c.Type) })
	return status
}

// status is the status of the pod, as a kubelet reports it. The caller holds the lock.
func (p *pod) status() *corev1.PodStatus {
	s := p.reported.DeepCopy()
	s.Phase, s.StartTime, s.ObservedGeneration = p.phase(), &p.started, p.object.Generation
	s.HostIP, s.HostIPs = p.node.ip(), []corev1.HostIP{{IP: p.node.ip()}}
	s.PodIP, s.PodIPs = p.ip, []corev1.PodIP{{IP: p.ip}}
	s.Conditions, s.ContainerStatuses = nil, nil
	var unready []string
	for _, c := range p.containers {
		status := c.status
		if p.trouble != nil && status.State.Waiting != nil && status.State.Waiting.Reason == "ContainerCreating" {
			status.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating", Message: p.trouble.Error()}
		}
		s.ContainerStatuses = append(s.ContainerStatuses, status)
		if !status.Ready {
			unready = append(unready, c.spec.Name)
		}
	}
	ready := corev1.PodCondition{Status: corev1.ConditionTrue}
	switch {
	case s.Phase == corev1.PodSucceeded:
		ready.Status, ready.Reason = corev1.ConditionFalse, "PodCompleted"
	case s.Phase == corev1.PodFailed:
		ready.Status, ready.Reason = corev1.ConditionFalse, "PodFailed"
	case len(unready) > 0:
		ready.Status, ready.Reason = corev1.ConditionFalse, "ContainersNotReady"
		ready.Message = "containers with unready status: [" + strings.Join(unready, " ") + "]"
	}
	for _, kind := range conditions {
		condition := ready
		if kind == corev1.PodInitialized {
			condition = corev1.PodCondition{Status: corev1.ConditionTrue}
		}
		condition.Type, condition.ObservedGeneration = kind, p.object.Generation
		condition.LastTransitionTime = p.since(condition)
		s.Conditions = append(s.Conditions, condition)
	}
	return s
}

// since is when a condition got its status.
func (p *pod) since(now corev1.PodCondition) metav1.Time {
	for _, before := range p.reported.Conditions {
		if before.Type == now.Type && before.Status == now.Status {
			return before.LastTransitionTime
		}
	}
	return metav1.Now()
}

// phase is that of the containers. The caller holds the lock.
func (p *pod) phase() corev1.PodPhase {
	finished, failed, begun := true, false, false
	for _, c := range p.containers {
		finished = finished && c.finished
		begun = begun || c.status.State.Waiting == nil || c.status.LastTerminationState.Terminated != nil
		failed = failed || c.status.State.Terminated != nil && c.status.State.Terminated.ExitCode != 0
	}
	switch {
	case finished && failed:
		return corev1.PodFailed
	case finished && begun:
		return corev1.PodSucceeded
	case begun:
		return corev1.PodRunning
	}
	return corev1.PodPending
}
