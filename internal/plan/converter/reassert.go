// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converter

import (
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	policyv1apply "k8s.io/client-go/applyconfigurations/policy/v1"
)

// Patches may change everything except the fields by which the operator finds, calls, verifies
// and replaces converter pods. reassert restores those fields after the patches.
// api/docs/own-converter.md lists them for users.

// converterContainer is the name of the converter container.
const converterContainer = "converter"

// PortOf is the port of the converter in a pod; 0 if it has none.
func PortOf(pod *corev1.PodSpec) int32 {
	for _, container := range pod.Containers {
		if container.Name == converterContainer && len(container.Ports) > 0 {
			return container.Ports[0].ContainerPort
		}
	}
	return 0
}

// usable rejects a patch that removes a whole part into which reassert would restore fields.
func (w workload) usable() error {
	switch d := w.deployment; {
	case d.Spec == nil || d.Spec.Template == nil || d.Spec.Template.Spec == nil:
		return errors.New("it removes spec.template.spec of the Deployment")
	case containerOf(d) == nil:
		return errors.New("it removes the container " + converterContainer + " of the Deployment")
	case w.service.Spec == nil:
		return errors.New("it removes spec of the Service")
	case w.service.Spec.Type != nil && *w.service.Spec.Type == corev1.ServiceTypeExternalName:
		return errors.New("it changes the type of the Service to ExternalName, which selects no pods")
	case w.budget.Spec == nil:
		return errors.New("it removes spec of the PodDisruptionBudget")
	}
	return nil
}

func containerOf(d *appsv1apply.DeploymentApplyConfiguration) *corev1apply.ContainerApplyConfiguration {
	containers := d.Spec.Template.Spec.Containers
	i := slices.IndexFunc(containers, func(c corev1apply.ContainerApplyConfiguration) bool {
		return c.Name != nil && *c.Name == converterContainer
	})
	if i < 0 {
		return nil
	}
	return &containers[i]
}

// reassert restores the fields that the operator needs. The operator's own converter also keeps
// its security context and liveness probe: it has no rights, and is trusted with all objects.
func (w workload) reassert(ours workload, own bool) {
	reassertService(w.service, ours.service)
	reassertBudget(w.budget, ours.budget)
	reassertDeployment(w.deployment, ours.deployment)
	reassertPod(w.deployment.Spec.Template.Spec, ours.deployment.Spec.Template.Spec)
	reassertContainer(containerOf(w.deployment), containerOf(ours.deployment))
	if own {
		w.deployment.Spec.Template.Spec.SecurityContext = ours.deployment.Spec.Template.Spec.SecurityContext
		containerOf(w.deployment).SecurityContext = containerOf(ours.deployment).SecurityContext
		containerOf(w.deployment).LivenessProbe = containerOf(ours.deployment).LivenessProbe
	}
}

func reassertService(s, ours *corev1apply.ServiceApplyConfiguration) {
	s.WithName(*ours.Name).WithNamespace(*ours.Namespace).WithLabels(ours.Labels).WithAnnotations(ours.Annotations)
	s.Spec.Selector = ours.Spec.Selector
	s.Spec.PublishNotReadyAddresses = nil
	s.Spec.Ports = replaced(s.Spec.Ports, ours.Spec.Ports, func(p corev1apply.ServicePortApplyConfiguration) *string { return p.Name })
}

func reassertBudget(b, ours *policyv1apply.PodDisruptionBudgetApplyConfiguration) {
	b.WithName(*ours.Name).WithNamespace(*ours.Namespace).WithLabels(ours.Labels).WithAnnotations(ours.Annotations)
	b.Spec.Selector = ours.Spec.Selector
	if b.Spec.MinAvailable != nil {
		b.Spec.MaxUnavailable = nil // the API server accepts only one of them
	}
}

func reassertDeployment(d, ours *appsv1apply.DeploymentApplyConfiguration) {
	d.WithName(*ours.Name).WithNamespace(*ours.Namespace).WithLabels(ours.Labels).WithAnnotations(ours.Annotations)
	d.Spec.Replicas, d.Spec.Selector, d.Spec.Strategy = ours.Spec.Replicas, ours.Spec.Selector, ours.Spec.Strategy
	d.Spec.Paused = nil
	d.Spec.Template.WithLabels(ours.Spec.Template.Labels).WithAnnotations(ours.Spec.Template.Annotations)
}

func reassertPod(p, ours *corev1apply.PodSpecApplyConfiguration) {
	p.ServiceAccountName, p.DeprecatedServiceAccount = ours.ServiceAccountName, nil
	p.AutomountServiceAccountToken = ours.AutomountServiceAccountToken
	p.RestartPolicy, p.ActiveDeadlineSeconds = nil, nil
	p.HostNetwork = ours.HostNetwork
	p.Volumes = replaced(p.Volumes, ours.Volumes, func(v corev1apply.VolumeApplyConfiguration) *string { return v.Name })
}

func reassertContainer(c, ours *corev1apply.ContainerApplyConfiguration) {
	c.Image, c.Command, c.Args = ours.Image, ours.Command, ours.Args
	c.Ports = replaced(c.Ports, ours.Ports, func(p corev1apply.ContainerPortApplyConfiguration) *string { return p.Name })
	c.VolumeMounts = replaced(c.VolumeMounts, ours.VolumeMounts, func(m corev1apply.VolumeMountApplyConfiguration) *string { return m.MountPath })
	c.ReadinessProbe = ours.ReadinessProbe
}

// replaced returns our elements, and those of the list that have other keys.
func replaced[T any](list, ours []T, key func(T) *string) []T {
	kept := slices.DeleteFunc(slices.Clone(list), func(element T) bool {
		return slices.ContainsFunc(ours, func(our T) bool {
			return key(element) != nil && key(our) != nil && *key(element) == *key(our)
		})
	})
	return append(slices.Clone(ours), kept...)
}
