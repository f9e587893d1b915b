// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"

	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/step"
)

// TestConverterPod is what others find a converter by: the API server by the
// first port, Prometheus by the component and the name of the second.
func TestConverterPod(t *testing.T) {
	type port struct {
		Name   string
		Number int32
	}
	for _, s := range active(t).plan().Steps {
		apply, ok := s.(step.Apply)
		if !ok {
			continue
		}
		deployment, ok := apply.Object.(*appsv1apply.DeploymentApplyConfiguration)
		if !ok {
			continue
		}
		container := deployment.Spec.Template.Spec.Containers[0]
		var ports []port
		for _, each := range container.Ports {
			ports = append(ports, port{*each.Name, *each.ContainerPort})
		}
		if diff := cmp.Diff([]port{{"https", 9443}, {"metrics", 8080}}, ports); diff != "" {
			t.Errorf("ports (-want +got):\n%s", diff)
		}
		for _, want := range []string{"--bind-address=:9443", "--metrics-bind-address=:8080"} {
			if !slices.Contains(container.Args, want) {
				t.Errorf("%s is not in %q", want, container.Args)
			}
		}
		if got := deployment.Spec.Template.Labels[names.ComponentLabel]; got != "converter" {
			t.Errorf("component is %q", got)
		}
		return
	}
	t.Error("there is no Deployment")
}
