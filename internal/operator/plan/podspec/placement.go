// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podspec has the settings that converter and migration pods share.
package podspec

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// MetricsPort is the port for Prometheus in converter and migration pods.
const MetricsPort = 8080

// Linux selects the nodes that the operator's image is built for.
var Linux = map[string]string{corev1.LabelOSStable: "linux"}

// Restricted satisfies the restricted Pod Security Standard. The user is that of the
// image, or the one that the cluster assigns: OpenShift gives each namespace users of
// its own, and refuses pods that name another.
func Restricted() *corev1apply.PodSecurityContextApplyConfiguration {
	return corev1apply.PodSecurityContext().
		WithRunAsNonRoot(true).
		WithSeccompProfile(corev1apply.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
}

// RestrictedContainer satisfies that standard for a container of the operator's image.
func RestrictedContainer() *corev1apply.SecurityContextApplyConfiguration {
	return corev1apply.SecurityContext().
		WithAllowPrivilegeEscalation(false).
		WithReadOnlyRootFilesystem(true).
		WithCapabilities(corev1apply.Capabilities().WithDrop("ALL"))
}

// Inherited is what converter and migration pods take from the manager's pod. Its nodes can pull the
// image, and an administrator chose them for the operator.
type Inherited struct {
	// ImagePullSecrets are the names of Secrets in the operator's namespace.
	ImagePullSecrets []string
	Placement        v1alpha1.Placement
}

// InheritedFrom returns what other pods take from a pod of the manager. Affinity to other pods is
// about the manager alone. API servers add tolerations with tolerationSeconds, which say when a pod
// leaves a lost node, and not where it starts.
func InheritedFrom(pod *corev1.PodSpec) Inherited {
	inherited := Inherited{Placement: v1alpha1.Placement{
		PriorityClassName: pod.PriorityClassName, NodeSelector: pod.NodeSelector,
		Tolerations: slices.DeleteFunc(slices.Clone(pod.Tolerations), func(toleration corev1.Toleration) bool {
			return toleration.TolerationSeconds != nil
		})}}
	for _, secret := range pod.ImagePullSecrets {
		inherited.ImagePullSecrets = append(inherited.ImagePullSecrets, secret.Name)
	}
	if pod.Affinity != nil && pod.Affinity.NodeAffinity != nil {
		inherited.Placement.Affinity = &corev1.Affinity{NodeAffinity: pod.Affinity.NodeAffinity}
	}
	return inherited
}

// Apply sets the pull secrets of a pod, and where it runs. What is wanted replaces what is
// inherited, field by field.
func (i Inherited) Apply(pod *corev1apply.PodSpecApplyConfiguration, wanted v1alpha1.Placement) {
	for _, name := range i.ImagePullSecrets {
		pod.WithImagePullSecrets(corev1apply.LocalObjectReference().WithName(name))
	}
	nodes, tolerations := wanted.NodeSelector, wanted.Tolerations
	if len(nodes) == 0 {
		nodes = i.Placement.NodeSelector
	}
	if len(tolerations) == 0 {
		tolerations = i.Placement.Tolerations
	}
	selected := maps.Clone(Linux)
	maps.Copy(selected, nodes)
	pod.WithNodeSelector(selected)
	for at := range tolerations {
		pod.WithTolerations(ConfigOf[corev1apply.TolerationApplyConfiguration](&tolerations[at]))
	}
	if class := cmp.Or(wanted.PriorityClassName, i.Placement.PriorityClassName); class != "" {
		pod.WithPriorityClassName(class)
	}
	if affinity := cmp.Or(wanted.Affinity, i.Placement.Affinity); affinity != nil {
		pod.WithAffinity(ConfigOf[corev1apply.AffinityApplyConfiguration](affinity))
	}
}

// Resources of a container.
func Resources(wanted *v1alpha1.Resources) *corev1apply.ResourceRequirementsApplyConfiguration {
	if wanted == nil {
		return corev1apply.ResourceRequirements()
	}
	return corev1apply.ResourceRequirements().WithRequests(wanted.Requests).WithLimits(wanted.Limits)
}

// ConfigOf converts an API type into its apply configuration. Both have the same JSON.
func ConfigOf[T any](value any) *T {
	config := new(T)
	if text, err := json.Marshal(value); err == nil {
		_ = json.Unmarshal(text, config)
	}
	return config
}
