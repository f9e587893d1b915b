// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converter

import (
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	policyv1apply "k8s.io/client-go/applyconfigurations/policy/v1"

	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/workload"
)

// applyWorkload applies the rulesets, and the pods that serve them (served.go). The objects have
// no owner reference: garbage collection has no order, and the conversion must be removed from the
// CustomResourceDefinition before the pods go. If a patch cannot be applied, the existing objects
// stay unchanged.
func (c *Converter) applyWorkload() {
	if c.renderErr == nil {
		c.work.Do(step.Apply{Object: c.rendered.Service})
		c.work.Do(step.Apply{Object: c.rendered.Budget})
	}
	if c.missing() != nil {
		return
	}
	if c.ruleset != nil {
		c.work.Do(step.Apply{Object: c.rulesets()})
	}
	if c.renderErr == nil {
		c.work.Do(step.Apply{Object: c.rendered.Deployment})
	}
}

// workload describes the pods of the policy.
func (c *Converter) workload() workload.Workload {
	return workload.Workload{Settings: c.Settings, Name: names.Child(c.Policy.Name), Spec: workload.Default(c.Policy.Spec.Pods()),
		Labels: c.Labels(names.ConverterComponent), Annotations: c.Annotations(), Certificate: names.CertificateSecret(c.Policy.Name)}
}

// Redundancy has the pods of the policy alone, of the active converter.
func (c *Converter) Redundancy() workload.Redundancy {
	if c.Fleet() != "" || !c.InCharge() {
		return workload.Redundancy{}
	}
	return workload.Redundancy{Pods: c.PodsOf(""), Ending: len(c.EndingOf("")), Workload: c.workload(), Evictable: c.Evictable, Others: c.Others,
		Before: c.Policy.Status.Conditions, Now: c.Now}
}

// render returns the objects to deploy, with the patches of the policy.
func (c *Converter) render() (workload.Objects, error) {
	ours := workload.Objects{Service: c.service(), Budget: c.disruptionBudget(), Deployment: c.kind.deployment()}
	return ours.Patched("spec.workload.dedicated.patches", c.workload().Spec.Patches, c.Rulesets())
}

func (c *Converter) service() *corev1apply.ServiceApplyConfiguration {
	return c.workload().Service(c.servicePorts()...)
}

func (c *Converter) disruptionBudget() *policyv1apply.PodDisruptionBudgetApplyConfiguration {
	return c.workload().DisruptionBudget(c.guarded())
}

func (r rules) deployment() *appsv1apply.DeploymentApplyConfiguration {
	w := r.workload()
	return w.Deployment(w.RulesPod(corev1apply.Volume().WithConfigMap(corev1apply.ConfigMapVolumeSource().WithName(names.Rulesets(r.Policy.Name)))))
}

// servicePorts are one port for all rulesets, and one for each image (image.go).
func (c *Converter) servicePorts() []*corev1apply.ServicePortApplyConfiguration {
	var ports []*corev1apply.ServicePortApplyConfiguration
	if _, is := c.kind.(image); !is || len(c.servedAt("")) > 0 {
		ports = append(ports, workload.Port(workload.PortName, workload.ServicePort))
	}
	for _, identity := range c.Served {
		if image := c.imageEndpoint(identity); image != nil {
			ports = append(ports, workload.Port(imagePortName(identity), image.Port))
		}
	}
	return ports
}

// guarded selects the pods of which at most one may be evicted. If there are images, it selects
// the pods of the active one: the others may never become ready, and must not count.
func (c *Converter) guarded() map[string]string {
	selector := c.workload().Selector()
	if _, is := c.kind.(image); !is || c.CRD == nil {
		return selector
	}
	selector[names.RevisionLabel] = c.Wanted
	if serving := c.Named(); c.Active && c.StoredImage(serving) != nil {
		selector[names.RevisionLabel] = serving
	}
	return selector
}
