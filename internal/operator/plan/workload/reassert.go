// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	policyv1apply "k8s.io/client-go/applyconfigurations/policy/v1"
	kjson "sigs.k8s.io/json"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/workload/patch"
)

// Objects are deployed for converter pods.
type Objects struct {
	Service    *corev1apply.ServiceApplyConfiguration
	Budget     *policyv1apply.PodDisruptionBudgetApplyConfiguration
	Deployment *appsv1apply.DeploymentApplyConfiguration
}

// Patched returns the objects with the patches of a field. It restores the fields that the operator needs: more of
// them for the operator's own converter than for one of the user. An error names the patch that cannot be
// applied.
func (o Objects) Patched(field string, patches []v1alpha1.Patch, own bool) (Objects, error) {
	if len(patches) == 0 {
		return o, nil
	}
	patched := o
	for i, one := range patches {
		var err error
		if patched, err = patched.with(one); err != nil {
			return Objects{}, fmt.Errorf("%s[%d]: %w", field, i, err)
		}
	}
	patched.reassert(o, own)
	return patched, nil
}

// with returns the objects with one patch applied. Each object must keep its kind.
func (o Objects) with(one v1alpha1.Patch) (Objects, error) {
	var contents []map[string]any
	for _, object := range []runtime.ApplyConfiguration{o.Service, o.Budget, o.Deployment} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return Objects{}, err
		}
		contents = append(contents, content)
	}
	patched, err := patch.Apply(contents, one)
	if err != nil {
		return Objects{}, err
	}
	var result Objects
	for i, into := range []any{&result.Service, &result.Budget, &result.Deployment} {
		if err := typed(patched[i], into); err != nil {
			return Objects{}, fmt.Errorf("it makes no %s: %w", contents[i]["kind"], err)
		}
	}
	return result, result.usable()
}

// typed decodes an object, and rejects fields that its kind does not have.
func typed(content map[string]any, into any) error {
	text, err := json.Marshal(content)
	if err != nil {
		return err
	}
	unknown, err := kjson.UnmarshalStrict(text, into)
	if err == nil && len(unknown) > 0 {
		err = unknown[0]
	}
	return err
}

// Patches may change everything except the fields by which the operator finds, calls, verifies
// and replaces converter pods. reassert restores those fields after the patches.
// api/docs/own-converter.md lists them for users.

// Container is the name of the converter container.
const Container = "converter"

// PortOf is the port of the converter in a pod; 0 if it has none.
func PortOf(pod *corev1.PodSpec) int32 {
	for _, container := range pod.Containers {
		if container.Name == Container && len(container.Ports) > 0 {
			return container.Ports[0].ContainerPort
		}
	}
	return 0
}

// IsReady reports that a pod is ready, and has an address to reach it at.
func IsReady(pod *corev1.Pod) bool {
	return pod.Status.PodIP != "" && slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	})
}

// usable rejects a patch that removes a whole part into which reassert would restore fields.
func (o Objects) usable() error {
	switch d := o.Deployment; {
	case d.Spec == nil || d.Spec.Template == nil || d.Spec.Template.Spec == nil:
		return errors.New("it removes spec.template.spec of the Deployment")
	case ContainerOf(d) == nil:
		return errors.New("it removes the container " + Container + " of the Deployment")
	case o.Service.Spec == nil:
		return errors.New("it removes spec of the Service")
	case o.Service.Spec.Type != nil && *o.Service.Spec.Type == corev1.ServiceTypeExternalName:
		return errors.New("it changes the type of the Service to ExternalName, which selects no pods")
	case o.Budget.Spec == nil:
		return errors.New("it removes spec of the PodDisruptionBudget")
	}
	return nil
}

// ContainerOf is the converter container of a Deployment, or nil.
func ContainerOf(d *appsv1apply.DeploymentApplyConfiguration) *corev1apply.ContainerApplyConfiguration {
	containers := d.Spec.Template.Spec.Containers
	i := slices.IndexFunc(containers, func(c corev1apply.ContainerApplyConfiguration) bool {
		return c.Name != nil && *c.Name == Container
	})
	if i < 0 {
		return nil
	}
	return &containers[i]
}

// reassert restores the fields that the operator needs. The operator's own converter also keeps
// its security context and liveness probe: it has no rights, and is trusted with all objects.
func (o Objects) reassert(ours Objects, own bool) {
	ReassertService(o.Service, ours.Service)
	ReassertBudget(o.Budget, ours.Budget)
	reassertDeployment(o.Deployment, ours.Deployment)
	reassertPod(o.Deployment.Spec.Template.Spec, ours.Deployment.Spec.Template.Spec)
	reassertContainer(ContainerOf(o.Deployment), ContainerOf(ours.Deployment))
	if own {
		o.Deployment.Spec.Template.Spec.SecurityContext = ours.Deployment.Spec.Template.Spec.SecurityContext
		ContainerOf(o.Deployment).SecurityContext = ContainerOf(ours.Deployment).SecurityContext
		ContainerOf(o.Deployment).LivenessProbe = ContainerOf(ours.Deployment).LivenessProbe
	}
}

// ReassertService restores the fields of a patched Service that the operator needs.
func ReassertService(s, ours *corev1apply.ServiceApplyConfiguration) {
	s.WithName(*ours.Name).WithNamespace(*ours.Namespace).WithLabels(ours.Labels).WithAnnotations(ours.Annotations)
	s.Spec.Selector = ours.Spec.Selector
	s.Spec.PublishNotReadyAddresses = nil
	s.Spec.Ports = replaced(s.Spec.Ports, ours.Spec.Ports, func(p corev1apply.ServicePortApplyConfiguration) *string { return p.Name })
}

// ReassertBudget restores the fields of a patched PodDisruptionBudget that the operator needs.
func ReassertBudget(b, ours *policyv1apply.PodDisruptionBudgetApplyConfiguration) {
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
