// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podspec has the settings that converter and migration pods share.
package podspec

import (
	corev1 "k8s.io/api/core/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
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
