// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	corev1 "k8s.io/api/core/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
)

// restrictedPod and restrictedContainer satisfy the restricted Pod Security Standard.
// The user is that of the image, or the one that the cluster assigns: OpenShift
// gives each namespace users of its own, and refuses pods that name another.
func restrictedPod() *corev1apply.PodSecurityContextApplyConfiguration {
	return corev1apply.PodSecurityContext().
		WithRunAsNonRoot(true).
		WithSeccompProfile(corev1apply.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
}

func restrictedContainer() *corev1apply.SecurityContextApplyConfiguration {
	return corev1apply.SecurityContext().
		WithAllowPrivilegeEscalation(false).
		WithReadOnlyRootFilesystem(true).
		WithCapabilities(corev1apply.Capabilities().WithDrop("ALL"))
}
