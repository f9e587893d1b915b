// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converters

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"
)

// taskV1 and taskV2 are the kind Task in its older version, the spoke, and in its newer one, the hub, as an
// author of a Go webhook would write them.
type (
	taskV1 struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`

		Spec   taskV1Spec `json:"spec"`
		Status taskStatus `json:"status,omitzero"`
	}
	taskV1Spec struct {
		Cron              string                  `json:"cron,omitempty"`
		Endpoint          string                  `json:"endpoint,omitempty"`
		Image             string                  `json:"image,omitempty"`
		ConcurrencyPolicy string                  `json:"concurrencyPolicy,omitempty"`
		NodeName          string                  `json:"nodeName,omitempty"`
		Owner             string                  `json:"owner,omitempty"`
		Description       string                  `json:"description,omitempty"`
		Budget            int64                   `json:"budget,omitempty"`
		Ports             []taskV1Port            `json:"ports,omitempty"`
		Env               []corev1.EnvVar         `json:"env,omitempty"`
		Template          *corev1.PodTemplateSpec `json:"template,omitempty"`
	}
	taskV1Port struct {
		Name     string `json:"name"`
		Number   int32  `json:"number"`
		Protocol string `json:"protocol,omitempty"`
	}
	taskV2 struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`

		Spec   taskV2Spec `json:"spec"`
		Status taskStatus `json:"status,omitzero"`
	}
	taskV2Spec struct {
		Schedule    taskSchedule            `json:"schedule,omitzero"`
		Host        string                  `json:"host,omitempty"`
		Port        int32                   `json:"port,omitempty"`
		Runtime     taskRuntime             `json:"runtime,omitzero"`
		Concurrency string                  `json:"concurrency,omitempty"`
		Nodes       []string                `json:"nodes,omitempty"`
		Description string                  `json:"description,omitempty"`
		Budget      int64                   `json:"budget,omitempty"`
		Ports       []taskV2Port            `json:"ports,omitempty"`
		Env         []corev1.EnvVar         `json:"env,omitempty"`
		Template    *corev1.PodTemplateSpec `json:"template,omitempty"`
	}
	taskV2Port struct {
		Name          string `json:"name"`
		ContainerPort int32  `json:"containerPort"`
		Protocol      string `json:"protocol,omitempty"`
	}
	taskSchedule struct {
		Minute     string `json:"minute,omitempty"`
		Hour       string `json:"hour,omitempty"`
		DayOfMonth string `json:"dayOfMonth,omitempty"`
		Month      string `json:"month,omitempty"`
		DayOfWeek  string `json:"dayOfWeek,omitempty"`
	}
	taskRuntime struct {
		Image string `json:"image,omitempty"`
	}
	taskStatus struct {
		Conditions []metav1.Condition `json:"conditions,omitempty"`
	}
)

// DeepCopyObject implements runtime.Object. The handler copies no object.
func (t *taskV1) DeepCopyObject() runtime.Object { return new(*t) }

// DeepCopyObject implements runtime.Object.
func (t *taskV2) DeepCopyObject() runtime.Object { return new(*t) }

// NewTyped returns controller-runtime's handler for a hub and a spoke in Go types, of a kind in a
// group.
func NewTyped(group string) (http.Handler, error) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}, &taskV1{})
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: group, Version: "v2", Kind: kind}, &taskV2{})
	spoke := conversion.NewSpokeConverter(&taskV1{}, nil, typedToHub)
	converter, err := conversion.NewHubSpokeConverter(&taskV2{}, spoke)(scheme)
	if err != nil {
		return nil, err
	}
	registry := conversion.NewRegistry()
	if err := registry.RegisterConverter(schema.GroupKind{Group: group, Kind: kind}, converter); err != nil {
		return nil, err
	}
	return conversion.NewWebhookHandler(scheme, registry), nil
}

func typedToHub(_ context.Context, src *taskV1, dst *taskV2) error {
	dst.ObjectMeta, dst.Status = src.ObjectMeta, src.Status
	dst.Spec = taskV2Spec{
		Runtime:     taskRuntime{Image: src.Spec.Image},
		Concurrency: policies[src.Spec.ConcurrencyPolicy],
		Description: src.Spec.Description,
		Budget:      src.Spec.Budget,
		Env:         src.Spec.Env,
		Template:    src.Spec.Template,
	}
	if fields := strings.SplitN(src.Spec.Cron, " ", len(cronFields)); len(fields) == len(cronFields) {
		dst.Spec.Schedule = taskSchedule{Minute: fields[0], Hour: fields[1], DayOfMonth: fields[2], Month: fields[3], DayOfWeek: fields[4]}
	}
	if host, port, ok := strings.Cut(src.Spec.Endpoint, ":"); ok {
		number, err := strconv.ParseInt(port, 10, 32)
		if err != nil {
			return fmt.Errorf("spec.endpoint: %w", err)
		}
		dst.Spec.Host, dst.Spec.Port = host, int32(number)
	}
	if src.Spec.NodeName != "" {
		dst.Spec.Nodes = []string{src.Spec.NodeName}
	}
	for _, port := range src.Spec.Ports {
		dst.Spec.Ports = append(dst.Spec.Ports, taskV2Port{Name: port.Name, ContainerPort: port.Number, Protocol: port.Protocol})
	}
	if src.Spec.Owner == "" {
		return nil
	}
	kept, err := keep(src.Spec.Owner)
	if err != nil {
		return err
	}
	dst.Annotations = maps.Clone(src.Annotations)
	if dst.Annotations == nil {
		dst.Annotations = map[string]string{}
	}
	dst.Annotations[keptAnnotation] = kept
	return nil
}
