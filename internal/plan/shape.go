// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"encoding/json"
	"maps"

	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// linux is what the operator's image is built for.
var linux = map[string]string{corev1.LabelOSStable: "linux"}

// rollingUpdate takes no pod away before another is ready. On the network of the
// nodes a new pod may find no node whose port is free: there one goes first.
func (s *state) rollingUpdate() *appsv1apply.DeploymentStrategyApplyConfiguration {
	unavailable := 0
	if s.Policy.Spec.Workload.HostNetwork {
		unavailable = 1
	}
	return appsv1apply.DeploymentStrategy().
		WithType(appsv1.RollingUpdateDeploymentStrategyType).
		WithRollingUpdate(appsv1apply.RollingUpdateDeployment().
			WithMaxSurge(intstr.FromInt32(1)).WithMaxUnavailable(intstr.FromInt(unavailable)))
}

// shape does to a pod what spec.workload says.
func (s *state) shape(pod *corev1apply.PodSpecApplyConfiguration) *corev1apply.PodSpecApplyConfiguration {
	workload := s.Policy.Spec.Workload
	nodes := maps.Clone(linux)
	maps.Copy(nodes, workload.NodeSelector)
	pod.WithNodeSelector(nodes).WithTopologySpreadConstraints(s.spreads()...)
	if class := cmp.Or(workload.PriorityClassName, s.Settings.PriorityClass); class != "" {
		pod.WithPriorityClassName(class)
	}
	for i := range workload.Tolerations {
		pod.WithTolerations(configOf[corev1apply.TolerationApplyConfiguration](&workload.Tolerations[i]))
	}
	if workload.Affinity != nil {
		pod.WithAffinity(configOf[corev1apply.AffinityApplyConfiguration](workload.Affinity))
	}
	if workload.HostNetwork {
		pod.WithHostNetwork(true)
	}
	return pod
}

// spreads are the policy's own, or else keep one lost node or zone from taking
// every converter along.
func (s *state) spreads() []*corev1apply.TopologySpreadConstraintApplyConfiguration {
	wanted := s.Policy.Spec.Workload.TopologySpreadConstraints
	if len(wanted) == 0 {
		return []*corev1apply.TopologySpreadConstraintApplyConfiguration{
			s.spread(corev1.LabelHostname), s.spread(corev1.LabelTopologyZone)}
	}
	var spreads []*corev1apply.TopologySpreadConstraintApplyConfiguration
	for i := range wanted {
		spread := configOf[corev1apply.TopologySpreadConstraintApplyConfiguration](&wanted[i])
		if spread.LabelSelector == nil {
			spread.WithLabelSelector(metav1apply.LabelSelector().WithMatchLabels(s.selector()))
		}
		spreads = append(spreads, spread)
	}
	return spreads
}

func (s *state) spread(topologyKey string) *corev1apply.TopologySpreadConstraintApplyConfiguration {
	return corev1apply.TopologySpreadConstraint().
		WithMaxSkew(1).WithTopologyKey(topologyKey).WithWhenUnsatisfiable(corev1.ScheduleAnyway).
		WithLabelSelector(metav1apply.LabelSelector().WithMatchLabels(s.selector()))
}

// configOf is what to apply, of what the API server has accepted: both are the
// same in JSON.
func configOf[T any](value any) *T {
	config := new(T)
	if text, err := json.Marshal(value); err == nil {
		_ = json.Unmarshal(text, config)
	}
	return config
}
