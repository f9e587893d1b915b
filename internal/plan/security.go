// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	corev1 "k8s.io/api/core/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
)

// nonRoot is the user of the image.
const nonRoot = 65532

// restrictedPod and restrictedContainer satisfy the restricted Pod Security Standard.
func restrictedPod() *corev1apply.PodSecurityContextApplyConfiguration {
	return corev1apply.PodSecurityContext().
		WithRunAsNonRoot(true).WithRunAsUser(nonRoot).WithRunAsGroup(nonRoot).WithFSGroup(nonRoot).
		WithSeccompProfile(corev1apply.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
}

func restrictedContainer() *corev1apply.SecurityContextApplyConfiguration {
	return corev1apply.SecurityContext().
		WithAllowPrivilegeEscalation(false).
		WithReadOnlyRootFilesystem(true).
		WithCapabilities(corev1apply.Capabilities().WithDrop("ALL"))
}
