// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package export

import (
	cmv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmv1apply "github.com/cert-manager/cert-manager/pkg/client/applyconfigurations/certmanager/v1"
	cmmetaapply "github.com/cert-manager/cert-manager/pkg/client/applyconfigurations/meta/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/conversion-operator/conversion-operator/internal/migration/standalone"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/certificates"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/workload"
)

// injectAnnotation makes the injector of cert-manager write caBundle.
const injectAnnotation = "cert-manager.io/inject-ca-from"

func (c Converter) certificate() string  { return c.Name + "-tls" }
func (c Converter) rulesetsName() string { return c.Name + "-rulesets" }
func (c Converter) nextRulesets() string { return c.rulesetsName() + "-next" }

// labels are on everything. The label managed-by is not that of the operator: it must not take the objects for its own.
func (c Converter) labels(component string) map[string]string {
	return map[string]string{"app.kubernetes.io/name": c.Name, names.InstanceLabel: c.Name, names.ComponentLabel: component}
}

// workload are the pods, as the operator renders them.
func (c Converter) workload() workload.Workload {
	return workload.Workload{
		Settings: observed.Settings{Namespace: c.Namespace, Image: c.Image, ConverterAccount: c.Name},
		Name:     c.Name, Labels: c.labels(names.ConverterComponent), Spec: workload.Default(c.Pods), Certificate: c.certificate(),
	}
}

// objects are all of the converter, without its ruleset in a chart.
func (c Converter) objects() ([]any, error) {
	w := c.workload()
	rendered, err := workload.Objects{
		Service: w.Service(workload.Port(workload.PortName, workload.ServicePort)), Budget: w.DisruptionBudget(w.Selector()),
		Deployment: w.Deployment(w.RulesPod(c.rulesetsVolume())),
	}.Patched("spec.workload.dedicated.patches", w.Spec.Patches, true)
	if err != nil {
		return nil, err
	}
	rulesets, err := c.rulesets()
	if err != nil {
		return nil, err
	}
	objects := []any{
		corev1apply.ServiceAccount(c.Name, c.Namespace).WithLabels(w.Labels).WithAutomountServiceAccountToken(false),
		corev1apply.ConfigMap(c.rulesetsName(), c.Namespace).WithLabels(w.Labels).WithBinaryData(rulesets),
		rendered.Service, rendered.Budget, w.NetworkPolicy(), rendered.Deployment,
	}
	// The check finds the pods.
	objects = append(objects, c.account(c.checkName(), checkComponent, standalone.Right{Verb: "list", Resource: "pods", Namespace: c.Namespace})...)
	if c.Certificates == ByCertManager {
		objects = append(objects, c.certificateRequest()...)
	}
	return objects, nil
}

// rulesetsVolume has the rulesets, and those that a chart stores before an upgrade.
func (c Converter) rulesetsVolume() *corev1apply.VolumeApplyConfiguration {
	return corev1apply.Volume().WithProjected(corev1apply.ProjectedVolumeSource().WithSources(
		corev1apply.VolumeProjection().WithConfigMap(corev1apply.ConfigMapProjection().WithName(c.rulesetsName())),
		corev1apply.VolumeProjection().WithConfigMap(corev1apply.ConfigMapProjection().WithName(c.nextRulesets()).WithOptional(true))))
}

// caLifetime is that of the authority. The serving certificate is renewed without a change of caBundle.
const caLifetime = certificates.DefaultCADuration

// certificateRequest asks cert-manager for an authority of the converter, and for a certificate by that.
func (c Converter) certificateRequest() []any {
	authority, root := c.Name+"-ca", c.Name+"-root"
	labels := c.labels(names.ConverterComponent)
	certificate := func(name, issuer string) *cmv1apply.CertificateApplyConfiguration {
		return certificates.Request(cmv1apply.Certificate(name, c.Namespace).WithLabels(labels),
			cmmetaapply.IssuerReference().WithName(issuer).WithKind(cmv1.IssuerKind), names.ServiceName(c.Name, c.Namespace))
	}
	ca := certificate(authority, root)
	ca.Spec.DNSNames, ca.Spec.Usages = nil, nil
	ca.Spec.WithIsCA(true).WithCommonName(authority).WithUsages(cmv1.UsageCertSign).WithDuration(metav1.Duration{Duration: caLifetime}).
		WithRenewBefore(metav1.Duration{Duration: caLifetime / 10})
	return []any{
		cmv1apply.Issuer(root, c.Namespace).WithLabels(labels).WithSpec(cmv1apply.IssuerSpec().WithSelfSigned(cmv1apply.SelfSignedIssuer())),
		ca,
		cmv1apply.Issuer(authority, c.Namespace).WithLabels(labels).WithSpec(cmv1apply.IssuerSpec().WithCA(cmv1apply.CAIssuer().WithSecretName(authority))),
		certificate(c.certificate(), authority),
	}
}
