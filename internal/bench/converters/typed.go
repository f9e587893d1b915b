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

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	v1 "github.com/conversion-operator/conversion-operator/internal/bench/converters/v1"
	v2 "github.com/conversion-operator/conversion-operator/internal/bench/converters/v2"
)

// NewTyped returns controller-runtime's handler for a hub and a spoke in Go types, of a kind in a
// group.
func NewTyped(group string) (http.Handler, error) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(schema.GroupVersion{Group: group, Version: "v1"}, &v1.Task{})
	scheme.AddKnownTypes(schema.GroupVersion{Group: group, Version: "v2"}, &v2.Task{})
	spoke := conversion.NewSpokeConverter(&v1.Task{}, nil, typedToHub)
	converter, err := conversion.NewHubSpokeConverter(&v2.Task{}, spoke)(scheme)
	if err != nil {
		return nil, err
	}
	registry := conversion.NewRegistry()
	if err := registry.RegisterConverter(schema.GroupKind{Group: group, Kind: kind}, converter); err != nil {
		return nil, err
	}
	return conversion.NewWebhookHandler(scheme, registry), nil
}

func typedToHub(_ context.Context, src *v1.Task, dst *v2.Task) error {
	dst.ObjectMeta, dst.Status = src.ObjectMeta, v2.TaskStatus(src.Status)
	dst.Spec = v2.TaskSpec{
		Runtime:     v2.Runtime{Image: src.Spec.Image},
		Concurrency: policies[src.Spec.ConcurrencyPolicy],
		Description: src.Spec.Description,
		Budget:      src.Spec.Budget,
		Env:         src.Spec.Env,
		Template:    src.Spec.Template,
	}
	if fields := strings.SplitN(src.Spec.Cron, " ", len(cronFields)); len(fields) == len(cronFields) {
		dst.Spec.Schedule = v2.Schedule{Minute: fields[0], Hour: fields[1], DayOfMonth: fields[2], Month: fields[3], DayOfWeek: fields[4]}
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
		dst.Spec.Ports = append(dst.Spec.Ports, v2.Port{Name: port.Name, ContainerPort: port.Number, Protocol: port.Protocol})
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
