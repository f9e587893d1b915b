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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"github.com/conversion-operator/conversion-operator/internal/test/reviews"
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
		Cron              string       `json:"cron,omitempty"`
		Endpoint          string       `json:"endpoint,omitempty"`
		Image             string       `json:"image,omitempty"`
		ConcurrencyPolicy string       `json:"concurrencyPolicy,omitempty"`
		NodeName          string       `json:"nodeName,omitempty"`
		Owner             string       `json:"owner,omitempty"`
		Ports             []taskV1Port `json:"ports,omitempty"`
		taskCommon        `json:",inline"`
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
		Schedule    taskSchedule `json:"schedule,omitzero"`
		Host        string       `json:"host,omitempty"`
		Port        int32        `json:"port,omitempty"`
		Runtime     taskRuntime  `json:"runtime,omitzero"`
		Concurrency string       `json:"concurrency,omitempty"`
		Nodes       []string     `json:"nodes,omitempty"`
		Ports       []taskV2Port `json:"ports,omitempty"`
		taskCommon  `json:",inline"`
	}
	taskV2Port struct {
		Name          string `json:"name"`
		ContainerPort int32  `json:"containerPort"`
		Protocol      string `json:"protocol,omitempty"`
	}
	taskCommon struct {
		Description string                  `json:"description,omitempty"`
		Budget      int64                   `json:"budget,omitempty"`
		Env         []corev1.EnvVar         `json:"env,omitempty"`
		Template    *corev1.PodTemplateSpec `json:"template,omitempty"`
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
		taskCommon:  src.Spec.taskCommon,
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
	dst.Annotations = maps.Clone(src.Annotations)
	if dst.Annotations == nil {
		dst.Annotations = map[string]string{}
	}
	dst.Annotations[keptAnnotation] = keep(src.Spec.Owner)
	return nil
}

// unstructuredHandler converts like the example of the Kubernetes documentation: decode the review,
// edit maps, encode the review. It is a little faster, as it does not copy every object or choose a
// serializer.
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#write-a-conversion-webhook-server
var unstructuredHandler = reviews.Each(func(object *unstructured.Unstructured, _ string) { toHub(object.Object) })

// toHub converts a Task from v1 to v2 in place.
func toHub(object map[string]any) {
	object["apiVersion"] = group + "/v2"
	spec, _ := object["spec"].(map[string]any)
	if cron, ok := take(spec, "cron").(string); ok {
		schedule := map[string]any{}
		for i, field := range strings.SplitN(cron, " ", len(cronFields)) {
			schedule[cronFields[i]] = field
		}
		spec["schedule"] = schedule
	}
	if endpoint, ok := take(spec, "endpoint").(string); ok {
		host, port, _ := strings.Cut(endpoint, ":")
		spec["host"] = host
		spec["port"], _ = strconv.ParseInt(port, 10, 32)
	}
	if image := take(spec, "image"); image != nil {
		spec["runtime"] = map[string]any{"image": image}
	}
	if policy, ok := take(spec, "concurrencyPolicy").(string); ok {
		spec["concurrency"] = policies[policy]
	}
	if node := take(spec, "nodeName"); node != nil {
		spec["nodes"] = []any{node}
	}
	ports, _ := spec["ports"].([]any)
	for i := range ports {
		if port, ok := ports[i].(map[string]any); ok {
			port["containerPort"] = take(port, "number")
		}
	}
	if owner := take(spec, "owner"); owner != nil {
		within(object, "metadata", "annotations")[keptAnnotation] = keep(owner)
	}
}

// take removes a member and returns it, or nil.
func take(object map[string]any, name string) any {
	value := object[name]
	delete(object, name)
	return value
}

// within returns the object at a path, and creates it if missing.
func within(object map[string]any, path ...string) map[string]any {
	for _, name := range path {
		next, ok := object[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			object[name] = next
		}
		object = next
	}
	return object
}
