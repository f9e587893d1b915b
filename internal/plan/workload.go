// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"strconv"

	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
	policyv1apply "k8s.io/client-go/applyconfigurations/policy/v1"

	corev1 "k8s.io/api/core/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

const (
	defaultReplicas = 2
	// servicePort is where the API server calls; 443 is open in every network.
	servicePort = 443
	// portName of that port, in the Service and in converter pods: pods of before
	// and after a change of spec.workload.port are both found by it.
	portName = "https"
	// ContainerPort is where converter pods listen, unless spec.workload.port says otherwise.
	ContainerPort = 9443
	// metricsPort is where converter and migration pods answer Prometheus, which
	// finds them by their labels and the port by its name.
	metricsPort = 8080
	// PlanKey is the key of a plan in its ConfigMap.
	PlanKey = "plan.json"

	plansMount       = "/etc/conversion-operator/plans"
	certificateMount = "/etc/conversion-operator/tls"
	// DefaultConverterAccount is the ServiceAccount of converter pods, which may nothing.
	DefaultConverterAccount = "conversion-operator-converter"

	// drainSeconds let endpoints and keep-alive connections go before a pod does.
	drainSeconds       = 10
	terminationSeconds = 45
)

// usePlan makes a plan the wanted one.
func (s *state) usePlan(plan *conversion.Plan) {
	if shortening := s.shortening(); shortening != nil {
		allowed := *plan
		allowed.Shortening, plan = shortening, &allowed
		s.Rules.Plan = plan
	}
	text, err := plan.Marshal()
	if err != nil {
		return // cannot be: a plan holds nothing that has no JSON form
	}
	s.planText, s.planHash = string(text), plan.Hash()
}

// applyWorkload brings everything that converts to its wanted state: the wanted
// plan, and the pods that serve it and others (carried.go). Nothing of it has an
// owner reference. Garbage collection knows no order, and the
// CustomResourceDefinition must let go before the pods do. A patch that cannot be
// applied leaves what is there as it is.
func (s *state) applyWorkload() {
	if s.renderErr == nil {
		s.do(Apply{s.rendered.service})
		s.do(Apply{s.rendered.budget})
	}
	if s.planText != "" {
		s.do(Apply{s.planConfigMap()})
	}
	if s.renderErr == nil && s.missing() == nil {
		s.do(Apply{s.rendered.deployment})
	}
}

func (s *state) planConfigMap() *corev1apply.ConfigMapApplyConfiguration {
	labels := s.labels(ConverterComponent)
	labels[PlanLabel] = s.planHash
	return corev1apply.ConfigMap(PlanName(s.Policy.Name, s.planHash), s.Settings.Namespace).
		WithLabels(labels).WithAnnotations(s.annotations()).
		WithData(map[string]string{PlanKey: s.planText}).
		WithImmutable(true)
}

func (s *state) service() *corev1apply.ServiceApplyConfiguration {
	return corev1apply.Service(ChildName(s.Policy.Name), s.Settings.Namespace).
		WithLabels(s.labels(ConverterComponent)).WithAnnotations(s.annotations()).
		WithSpec(corev1apply.ServiceSpec().
			WithSelector(s.selector()).
			WithPorts(s.servicePorts()...))
}

// servicePorts are one for all compiled rules, and one for each image (image.go).
func (s *state) servicePorts() []*corev1apply.ServicePortApplyConfiguration {
	port := func(name string, number int32) *corev1apply.ServicePortApplyConfiguration {
		return corev1apply.ServicePort().WithName(name).WithProtocol(corev1.ProtocolTCP).
			WithPort(number).WithTargetPort(intstr.FromString(name))
	}
	var ports []*corev1apply.ServicePortApplyConfiguration
	if image := s.Policy.Spec.Converter.Image; image == nil || len(s.rules()) > 0 {
		ports = append(ports, port(portName, servicePort))
	}
	for _, identity := range s.carried {
		if image := s.imageEndpoint(identity); image != nil {
			ports = append(ports, port(imagePortName(identity), image.Port))
		}
	}
	return ports
}

func (s *state) disruptionBudget() *policyv1apply.PodDisruptionBudgetApplyConfiguration {
	return policyv1apply.PodDisruptionBudget(ChildName(s.Policy.Name), s.Settings.Namespace).
		WithLabels(s.labels(ConverterComponent)).WithAnnotations(s.annotations()).
		WithSpec(policyv1apply.PodDisruptionBudgetSpec().
			WithMaxUnavailable(intstr.FromInt32(1)).
			WithSelector(metav1apply.LabelSelector().WithMatchLabels(s.guarded())))
}

// guarded selects the pods of which one at most may be evicted. Of images, those
// that serve: others, which may never become ready, must not count.
func (s *state) guarded() map[string]string {
	selector := s.selector()
	if s.Policy.Spec.Converter.Image == nil || s.CRD == nil {
		return selector
	}
	selector[PlanLabel] = s.planHash
	if serving := s.named(); s.armed && s.storedImage(serving) != nil {
		selector[PlanLabel] = serving
	}
	return selector
}

func (s *state) deployment() *appsv1apply.DeploymentApplyConfiguration {
	return appsv1apply.Deployment(ChildName(s.Policy.Name), s.Settings.Namespace).
		WithLabels(s.labels(ConverterComponent)).WithAnnotations(s.annotations()).
		WithSpec(appsv1apply.DeploymentSpec().
			WithReplicas(replicas(s.Policy)).
			WithRevisionHistoryLimit(2).
			WithSelector(metav1apply.LabelSelector().WithMatchLabels(s.selector())).
			WithStrategy(s.rollingUpdate()).
			WithTemplate(s.converterPod()))
}

func (s *state) converterPod() *corev1apply.PodTemplateSpecApplyConfiguration {
	annotations := s.annotations()
	annotations[PlansAnnotation] = JoinPlans(s.rules())
	return corev1apply.PodTemplateSpec().
		WithLabels(s.labels(ConverterComponent)).WithAnnotations(annotations).
		WithSpec(s.shape(corev1apply.PodSpec()).
			WithServiceAccountName(s.converterAccount()).
			WithAutomountServiceAccountToken(false).
			WithEnableServiceLinks(false).
			WithTerminationGracePeriodSeconds(terminationSeconds).
			WithSecurityContext(restrictedPod()).
			WithContainers(s.container()).
			WithVolumes(
				corev1apply.Volume().WithName("plans").WithProjected(s.plansVolume()),
				corev1apply.Volume().WithName("tls").WithSecret(corev1apply.SecretVolumeSource().
					WithSecretName(CertificateName(s.Policy.Name)))))
}

// plansVolume has each plan in a file of its own, whose name is the hash.
func (s *state) plansVolume() *corev1apply.ProjectedVolumeSourceApplyConfiguration {
	volume := corev1apply.ProjectedVolumeSource()
	for _, hash := range s.rules() {
		volume.WithSources(corev1apply.VolumeProjection().WithConfigMap(corev1apply.ConfigMapProjection().
			WithName(PlanName(s.Policy.Name, hash)).
			WithItems(corev1apply.KeyToPath().WithKey(PlanKey).WithPath(hash + ".json"))))
	}
	return volume
}

func (s *state) container() *corev1apply.ContainerApplyConfiguration {
	port := s.port()
	container := corev1apply.Container().
		WithName(converterContainer).
		WithImage(s.Settings.Image).
		WithImagePullPolicy(corev1.PullIfNotPresent).
		WithArgs("serve",
			"--plans="+plansMount,
			"--certificates="+certificateMount,
			"--port="+strconv.Itoa(int(port)),
			"--metrics-bind-address="+s.metricsAddress(),
			"--drain="+seconds(drainSeconds)).
		WithPorts(corev1apply.ContainerPort().WithName(portName).WithContainerPort(port).WithProtocol(corev1.ProtocolTCP)).
		WithResources(resources(s.Policy.Spec.Workload.Resources)).
		WithSecurityContext(restrictedContainer()).
		WithReadinessProbe(httpsProbe("/readyz", port).WithPeriodSeconds(2).WithFailureThreshold(2)).
		WithLivenessProbe(httpsProbe("/healthz", port).WithPeriodSeconds(10).WithFailureThreshold(3)).
		WithVolumeMounts(
			corev1apply.VolumeMount().WithName("plans").WithMountPath(plansMount).WithReadOnly(true),
			corev1apply.VolumeMount().WithName("tls").WithMountPath(certificateMount).WithReadOnly(true))
	if !s.Policy.Spec.Workload.HostNetwork {
		container.WithPorts(corev1apply.ContainerPort().WithName("metrics").WithContainerPort(metricsPort).WithProtocol(corev1.ProtocolTCP))
	}
	return container
}

// metricsAddress is nowhere on the network of the nodes, where the converters of
// all policies would want the same port.
func (s *state) metricsAddress() string {
	if s.Policy.Spec.Workload.HostNetwork {
		return "0"
	}
	return ":" + strconv.Itoa(metricsPort)
}

// port is where the operator's own converter listens.
func (s *state) port() int32 {
	if port := s.Policy.Spec.Workload.Port; port != 0 {
		return port
	}
	return ContainerPort
}

func httpsProbe(path string, port int32) *corev1apply.ProbeApplyConfiguration {
	return corev1apply.Probe().WithHTTPGet(corev1apply.HTTPGetAction().
		WithScheme(corev1.URISchemeHTTPS).WithPath(path).WithPort(intstr.FromInt32(port)))
}

func (s *state) labels(component string) map[string]string { return Labels(s.Policy.Name, component) }

func (s *state) annotations() map[string]string {
	return map[string]string{PolicyAnnotation: s.Policy.Name}
}

func (s *state) selector() map[string]string {
	return map[string]string{InstanceLabel: ChildName(s.Policy.Name), ComponentLabel: ConverterComponent}
}

func resources(wanted v1alpha1.Resources) *corev1apply.ResourceRequirementsApplyConfiguration {
	return corev1apply.ResourceRequirements().WithRequests(wanted.Requests).WithLimits(wanted.Limits)
}

// seconds prints whole seconds as time.ParseDuration reads them.
func seconds(n int) string { return strconv.Itoa(n) + "s" }

func (s *state) converterAccount() string {
	return cmp.Or(s.Settings.ConverterAccount, DefaultConverterAccount)
}
