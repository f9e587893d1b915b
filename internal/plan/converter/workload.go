// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converter

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
	policyv1apply "k8s.io/client-go/applyconfigurations/policy/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/podspec"
	"github.com/conversion-operator/conversion-operator/internal/plan/step"
)

const (
	defaultReplicas = 2
	// servicePort is the port that API servers call. Every network allows 443.
	servicePort = 443
	// portName of that port in the Service and in converter pods. A Service finds pods by it
	// before and after a change of spec.workload.port.
	portName = "https"
	// ContainerPort is the port of converter pods without spec.workload.port.
	ContainerPort = 9443

	rulesetsMount    = "/etc/conversion-operator/rulesets"
	certificateMount = "/etc/conversion-operator/tls"
	// DefaultConverterAccount is the ServiceAccount of converter pods. It has no rights.
	DefaultConverterAccount = "conversion-operator-converter"

	// drainSeconds is the time for endpoints and keep-alive connections to end before a pod does.
	drainSeconds       = 10
	terminationSeconds = 45

	// lostNodeSeconds is how long pods stay on a node that the control plane has lost. By default,
	// API servers let pods stay for 300 s: plugin/pkg/admission/defaulttolerationseconds of
	// k8s.io/kubernetes. Another converter pod starts within seconds and has no state, so that a
	// node which comes back a little later has cost nothing.
	lostNodeSeconds = 30
)

// applyWorkload applies the rulesets, and the pods that serve them (served.go). The objects have
// no owner reference: garbage collection has no order, and the conversion must be removed from the
// CustomResourceDefinition before the pods go. If a patch cannot be applied, the existing objects
// stay unchanged.
func (c *Converter) applyWorkload() {
	if c.renderErr == nil {
		c.work.Do(step.Apply{Object: c.rendered.service})
		c.work.Do(step.Apply{Object: c.rendered.budget})
	}
	if c.missing() != nil {
		return
	}
	if c.ruleset != nil {
		c.work.Do(step.Apply{Object: c.rulesets()})
	}
	if c.renderErr == nil {
		c.work.Do(step.Apply{Object: c.rendered.deployment})
	}
}

func (c *Converter) service() *corev1apply.ServiceApplyConfiguration {
	return corev1apply.Service(names.Child(c.Policy.Name), c.Settings.Namespace).
		WithLabels(c.Labels(names.ConverterComponent)).WithAnnotations(c.Annotations()).
		WithSpec(corev1apply.ServiceSpec().
			WithSelector(c.selector()).
			WithPorts(c.servicePorts()...))
}

// servicePorts are one port for all rulesets, and one for each image (image.go).
func (c *Converter) servicePorts() []*corev1apply.ServicePortApplyConfiguration {
	port := func(name string, number int32) *corev1apply.ServicePortApplyConfiguration {
		return corev1apply.ServicePort().WithName(name).WithProtocol(corev1.ProtocolTCP).
			WithPort(number).WithTargetPort(intstr.FromString(name))
	}
	var ports []*corev1apply.ServicePortApplyConfiguration
	if _, is := c.kind.(image); !is || len(c.ServedRules()) > 0 {
		ports = append(ports, port(portName, servicePort))
	}
	for _, identity := range c.Served {
		if image := c.imageEndpoint(identity); image != nil {
			ports = append(ports, port(imagePortName(identity), image.Port))
		}
	}
	return ports
}

func (c *Converter) disruptionBudget() *policyv1apply.PodDisruptionBudgetApplyConfiguration {
	return policyv1apply.PodDisruptionBudget(names.Child(c.Policy.Name), c.Settings.Namespace).
		WithLabels(c.Labels(names.ConverterComponent)).WithAnnotations(c.Annotations()).
		WithSpec(policyv1apply.PodDisruptionBudgetSpec().
			WithMaxUnavailable(intstr.FromInt32(1)).
			WithSelector(metav1apply.LabelSelector().WithMatchLabels(c.guarded())))
}

// guarded selects the pods of which at most one may be evicted. If there are images, it selects
// the pods of the active one: the others may never become ready, and must not count.
func (c *Converter) guarded() map[string]string {
	selector := c.selector()
	if _, is := c.kind.(image); !is || c.CRD == nil {
		return selector
	}
	selector[names.RevisionLabel] = c.Wanted
	if serving := c.Named(); c.Active && c.StoredImage(serving) != nil {
		selector[names.RevisionLabel] = serving
	}
	return selector
}

func (r rules) deployment() *appsv1apply.DeploymentApplyConfiguration {
	return appsv1apply.Deployment(names.Child(r.Policy.Name), r.Settings.Namespace).
		WithLabels(r.Labels(names.ConverterComponent)).WithAnnotations(r.Annotations()).
		WithSpec(appsv1apply.DeploymentSpec().
			WithReplicas(replicas(r.Policy)).
			WithRevisionHistoryLimit(2).
			WithSelector(metav1apply.LabelSelector().WithMatchLabels(r.selector())).
			WithStrategy(r.rollingUpdate()).
			WithTemplate(r.converterPod()))
}

func (c *Converter) converterPod() *corev1apply.PodTemplateSpecApplyConfiguration {
	return corev1apply.PodTemplateSpec().
		WithLabels(c.Labels(names.ConverterComponent)).WithAnnotations(c.Annotations()).
		WithSpec(c.shape(corev1apply.PodSpec()).
			WithServiceAccountName(c.converterAccount()).
			WithAutomountServiceAccountToken(false).
			WithEnableServiceLinks(false).
			WithTerminationGracePeriodSeconds(terminationSeconds).
			WithSecurityContext(podspec.Restricted()).
			WithContainers(c.container()).
			WithVolumes(
				corev1apply.Volume().WithName("rulesets").WithConfigMap(corev1apply.ConfigMapVolumeSource().
					WithName(names.Rulesets(c.Policy.Name))),
				corev1apply.Volume().WithName("tls").WithSecret(corev1apply.SecretVolumeSource().
					WithSecretName(names.CertificateSecret(c.Policy.Name)))))
}

func (c *Converter) container() *corev1apply.ContainerApplyConfiguration {
	port := c.port()
	container := corev1apply.Container().
		WithName(converterContainer).
		WithImage(c.Settings.Image).
		WithImagePullPolicy(corev1.PullIfNotPresent).
		WithArgs("serve",
			"--rulesets="+rulesetsMount,
			"--certificates="+certificateMount,
			"--port="+strconv.Itoa(int(port)),
			"--metrics-bind-address="+c.metricsAddress(),
			"--drain="+seconds(drainSeconds)).
		WithPorts(corev1apply.ContainerPort().WithName(portName).WithContainerPort(port).WithProtocol(corev1.ProtocolTCP)).
		WithResources(resources(c.Policy.Spec.Workload.Resources)).
		WithSecurityContext(podspec.RestrictedContainer()).
		WithReadinessProbe(httpsProbe("/readyz", port).WithPeriodSeconds(2).WithFailureThreshold(2)).
		WithLivenessProbe(httpsProbe("/healthz", port).WithPeriodSeconds(10).WithFailureThreshold(3)).
		WithVolumeMounts(
			corev1apply.VolumeMount().WithName("rulesets").WithMountPath(rulesetsMount).WithReadOnly(true),
			corev1apply.VolumeMount().WithName("tls").WithMountPath(certificateMount).WithReadOnly(true))
	if !c.Policy.Spec.Workload.HostNetwork {
		container.WithPorts(corev1apply.ContainerPort().WithName("metrics").WithContainerPort(podspec.MetricsPort).WithProtocol(corev1.ProtocolTCP))
	}
	return container
}

// metricsAddress serves no metrics on the network of nodes, where the converters of all
// policies would need the same port.
func (c *Converter) metricsAddress() string {
	if c.Policy.Spec.Workload.HostNetwork {
		return "0"
	}
	return ":" + strconv.Itoa(podspec.MetricsPort)
}

// port is the port of the operator's converter.
func (c *Converter) port() int32 {
	if port := c.Policy.Spec.Workload.Port; port != 0 {
		return port
	}
	return ContainerPort
}

func httpsProbe(path string, port int32) *corev1apply.ProbeApplyConfiguration {
	return corev1apply.Probe().WithHTTPGet(corev1apply.HTTPGetAction().
		WithScheme(corev1.URISchemeHTTPS).WithPath(path).WithPort(intstr.FromInt32(port)))
}

func (c *Converter) selector() map[string]string {
	return map[string]string{names.InstanceLabel: names.Child(c.Policy.Name), names.ComponentLabel: names.ConverterComponent}
}

func resources(wanted v1alpha1.Resources) *corev1apply.ResourceRequirementsApplyConfiguration {
	return corev1apply.ResourceRequirements().WithRequests(wanted.Requests).WithLimits(wanted.Limits)
}

// seconds prints whole seconds as time.ParseDuration reads them.
func seconds(n int) string { return strconv.Itoa(n) + "s" }

func (c *Converter) converterAccount() string {
	return cmp.Or(c.Settings.ConverterAccount, DefaultConverterAccount)
}

// rollingUpdate removes no pod before another one is ready. With hostNetwork it removes one
// first, because a new pod may find no node with a free port.
func (c *Converter) rollingUpdate() *appsv1apply.DeploymentStrategyApplyConfiguration {
	unavailable := 0
	if c.Policy.Spec.Workload.HostNetwork {
		unavailable = 1
	}
	return appsv1apply.DeploymentStrategy().
		WithType(appsv1.RollingUpdateDeploymentStrategyType).
		WithRollingUpdate(appsv1apply.RollingUpdateDeployment().
			WithMaxSurge(intstr.FromInt32(1)).WithMaxUnavailable(intstr.FromInt(unavailable)))
}

// shape applies spec.workload to a pod.
func (c *Converter) shape(pod *corev1apply.PodSpecApplyConfiguration) *corev1apply.PodSpecApplyConfiguration {
	workload := c.Policy.Spec.Workload
	nodes := maps.Clone(podspec.Linux)
	maps.Copy(nodes, workload.NodeSelector)
	pod.WithNodeSelector(nodes).WithTopologySpreadConstraints(c.spreads()...)
	if class := cmp.Or(workload.PriorityClassName, c.Settings.PriorityClass); class != "" {
		pod.WithPriorityClassName(class)
	}
	for i := range workload.Tolerations {
		pod.WithTolerations(configOf[corev1apply.TolerationApplyConfiguration](&workload.Tolerations[i]))
	}
	pod.WithTolerations(lostNodes(workload.Tolerations)...)
	if workload.Affinity != nil {
		pod.WithAffinity(configOf[corev1apply.AffinityApplyConfiguration](workload.Affinity))
	}
	if workload.HostNetwork {
		pod.WithHostNetwork(true)
	}
	return pod
}

// lostNodes tolerate lost nodes for some seconds, unless the policy tolerates them for another time.
func lostNodes(wanted []corev1.Toleration) (tolerations []*corev1apply.TolerationApplyConfiguration) {
	for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		tolerated := slices.ContainsFunc(wanted, func(toleration corev1.Toleration) bool {
			return (toleration.Key == taint || toleration.Key == "") && (toleration.Effect == corev1.TaintEffectNoExecute || toleration.Effect == "")
		})
		if !tolerated {
			tolerations = append(tolerations, corev1apply.Toleration().WithKey(taint).WithOperator(corev1.TolerationOpExists).
				WithEffect(corev1.TaintEffectNoExecute).WithTolerationSeconds(lostNodeSeconds))
		}
	}
	return tolerations
}

// spreads are those of the policy, or defaults that keep a node or a zone from having all
// converter pods.
func (c *Converter) spreads() []*corev1apply.TopologySpreadConstraintApplyConfiguration {
	wanted := c.Policy.Spec.Workload.TopologySpreadConstraints
	if len(wanted) == 0 {
		return []*corev1apply.TopologySpreadConstraintApplyConfiguration{
			c.spread(corev1.LabelHostname), c.spread(corev1.LabelTopologyZone)}
	}
	var spreads []*corev1apply.TopologySpreadConstraintApplyConfiguration
	for i := range wanted {
		spread := configOf[corev1apply.TopologySpreadConstraintApplyConfiguration](&wanted[i])
		if spread.LabelSelector == nil {
			spread.WithLabelSelector(metav1apply.LabelSelector().WithMatchLabels(c.selector()))
		}
		spreads = append(spreads, spread)
	}
	return spreads
}

func (c *Converter) spread(topologyKey string) *corev1apply.TopologySpreadConstraintApplyConfiguration {
	return corev1apply.TopologySpreadConstraint().
		WithMaxSkew(1).WithTopologyKey(topologyKey).WithWhenUnsatisfiable(corev1.ScheduleAnyway).
		WithLabelSelector(metav1apply.LabelSelector().WithMatchLabels(c.selector()))
}

// configOf converts an API type into its apply configuration. Both have the same JSON.
func configOf[T any](value any) *T {
	config := new(T)
	if text, err := json.Marshal(value); err == nil {
		_ = json.Unmarshal(text, config)
	}
	return config
}
