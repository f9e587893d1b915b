// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingv1apply "k8s.io/client-go/applyconfigurations/networking/v1"
	policyv1apply "k8s.io/client-go/applyconfigurations/policy/v1"
	"k8s.io/utils/ptr"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/podspec"
)

const (
	defaultReplicas = 2
	// ServicePort is the port that API servers call. Every network allows 443.
	ServicePort = 443
	// PortName is the name of that port in the Service and in converter pods. A Service finds pods by it
	// before and after a change of port.
	PortName = "https"
	// ContainerPort is the port of converter pods that have no other.
	ContainerPort = 9443

	// CertificateVolume is the name of the volume with the serving certificate.
	CertificateVolume = "tls"
	// converterProgram is that of converter pods in the operator's image: internal/webhook/converter.
	converterProgram = "/converter"
	rulesetsVolume   = "rulesets"
	rulesetsMount    = "/etc/conversion-operator/rulesets"
	certificateMount = "/etc/conversion-operator/tls"
	// DefaultConverterAccount is the ServiceAccount of converter pods. It has no rights.
	DefaultConverterAccount = "conversion-operator-converter"

	// EndpointsSeconds is the time until new connections lead to other pods than one that ends.
	EndpointsSeconds = 10
	// drainSeconds is the time for API servers to close the connections that they have, which they
	// keep for 90 s without calls.
	drainSeconds = 100
	// callSeconds is longer than the calls that a pod finishes after that. A pod that hangs, and fails its
	// liveness probe, gets no more time to end.
	callSeconds = 45

	// lostNodeSeconds is how long pods stay on a node that the control plane has lost. By default,
	// API servers let pods stay for 300 s: plugin/pkg/admission/defaulttolerationseconds of
	// k8s.io/kubernetes. Another converter pod starts within seconds and has no state, so that a
	// node which comes back a little later has cost nothing.
	lostNodeSeconds = 30
)

// Workload are converter pods, of one policy or of a fleet, with their Service and their
// PodDisruptionBudget.
type Workload struct {
	Settings observed.Settings
	// Name of the objects. Labels and Annotations are on all of them.
	Name                string
	Labels, Annotations map[string]string
	Spec                v1alpha1.ConverterPods
	// MaxReplicas is the number of pods up to which an autoscaler scales; zero without one.
	MaxReplicas int32
	// Certificate is the name of the Secret with the serving certificate.
	Certificate string
}

// Service leads to the pods. Each port leads to the container port of its name.
func (w Workload) Service(ports ...*corev1apply.ServicePortApplyConfiguration) *corev1apply.ServiceApplyConfiguration {
	return corev1apply.Service(w.Name, w.Settings.Namespace).
		WithLabels(w.Labels).WithAnnotations(w.Annotations).
		WithSpec(corev1apply.ServiceSpec().
			WithSelector(w.Selector()).
			WithPorts(ports...))
}

// Port is a port of the Service.
func Port(name string, number int32) *corev1apply.ServicePortApplyConfiguration {
	return corev1apply.ServicePort().WithName(name).WithProtocol(corev1.ProtocolTCP).
		WithPort(number).WithTargetPort(intstr.FromString(name))
}

// DisruptionBudget allows to evict one of the selected pods at a time.
func (w Workload) DisruptionBudget(selected map[string]string) *policyv1apply.PodDisruptionBudgetApplyConfiguration {
	return policyv1apply.PodDisruptionBudget(w.Name, w.Settings.Namespace).
		WithLabels(w.Labels).WithAnnotations(w.Annotations).
		WithSpec(policyv1apply.PodDisruptionBudgetSpec().
			WithMaxUnavailable(intstr.FromInt32(1)).
			WithSelector(metav1apply.LabelSelector().WithMatchLabels(selected)))
}

// Deployment runs pods with a template.
func (w Workload) Deployment(template *corev1apply.PodSpecApplyConfiguration) *appsv1apply.DeploymentApplyConfiguration {
	return appsv1apply.Deployment(w.Name, w.Settings.Namespace).
		WithLabels(w.Labels).WithAnnotations(w.Annotations).
		WithSpec(appsv1apply.DeploymentSpec().
			WithReplicas(w.Replicas()).
			WithRevisionHistoryLimit(2).
			WithSelector(metav1apply.LabelSelector().WithMatchLabels(w.Selector())).
			WithStrategy(w.rollingUpdate()).
			WithTemplate(corev1apply.PodTemplateSpec().
				WithLabels(w.Labels).WithAnnotations(w.Annotations).
				WithSpec(template)))
}

// RulesPod serves the rulesets of a volume.
func (w Workload) RulesPod(rulesets *corev1apply.VolumeApplyConfiguration, args ...string) *corev1apply.PodSpecApplyConfiguration {
	return w.Pod().
		WithTerminationGracePeriodSeconds(int64(w.drainSeconds()+callSeconds)).
		WithServiceAccountName(w.Account()).
		WithAutomountServiceAccountToken(false).
		WithContainers(w.container(args)).
		WithVolumes(rulesets.WithName(rulesetsVolume), w.CertificateVolume())
}

// Pod is what all converter pods have in common. It satisfies the restricted Pod Security
// Standard, which the operator's namespace enforces.
func (w Workload) Pod() *corev1apply.PodSpecApplyConfiguration {
	return w.shape(corev1apply.PodSpec()).
		WithEnableServiceLinks(false).
		WithTerminationGracePeriodSeconds(callSeconds).
		WithSecurityContext(podspec.Restricted())
}

// CertificateVolume has the serving certificate.
func (w Workload) CertificateVolume() *corev1apply.VolumeApplyConfiguration {
	return corev1apply.Volume().WithName(CertificateVolume).WithSecret(corev1apply.SecretVolumeSource().WithSecretName(w.Certificate))
}

func (w Workload) container(args []string) *corev1apply.ContainerApplyConfiguration {
	port := w.port()
	if w.alone() {
		args = append([]string{"--alone"}, args...)
	}
	container := corev1apply.Container().
		WithName(Container).
		WithImage(w.Settings.Image).
		WithImagePullPolicy(corev1.PullIfNotPresent).
		WithCommand(converterProgram).
		WithArgs(append([]string{
			"--rulesets=" + rulesetsMount,
			"--certificates=" + certificateMount,
			"--bind-address=:" + strconv.Itoa(int(port)),
			"--metrics-bind-address=" + w.metricsAddress(),
			"--drain=" + strconv.Itoa(w.drainSeconds()) + "s"}, args...)...).
		WithPorts(corev1apply.ContainerPort().WithName(PortName).WithContainerPort(port).WithProtocol(corev1.ProtocolTCP)).
		WithResources(podspec.Resources(w.Spec.Resources)).
		WithSecurityContext(podspec.RestrictedContainer()).
		WithReadinessProbe(httpsProbe("/readyz", port).WithPeriodSeconds(2).WithFailureThreshold(2)).
		WithLivenessProbe(httpsProbe("/healthz", port).WithPeriodSeconds(10).WithFailureThreshold(3).
			WithTerminationGracePeriodSeconds(callSeconds)).
		WithVolumeMounts(
			corev1apply.VolumeMount().WithName(rulesetsVolume).WithMountPath(rulesetsMount).WithReadOnly(true),
			corev1apply.VolumeMount().WithName(CertificateVolume).WithMountPath(certificateMount).WithReadOnly(true))
	if !w.Spec.HostNetwork {
		container.WithPorts(corev1apply.ContainerPort().WithName("metrics").WithContainerPort(podspec.MetricsPort).WithProtocol(corev1.ProtocolTCP))
	}
	return container
}

// metricsAddress serves no metrics on the network of nodes, where the converters of all
// policies would need the same port.
func (w Workload) metricsAddress() string {
	if w.Spec.HostNetwork {
		return "0"
	}
	return ":" + strconv.Itoa(podspec.MetricsPort)
}

// port is the port of the operator's converter.
func (w Workload) port() int32 {
	if port := w.Spec.Port; port != 0 {
		return port
	}
	return ContainerPort
}

// drainSeconds is short if the next pod cannot start before this one ends: it needs the port of its
// node, and there is no other pod.
func (w Workload) drainSeconds() int {
	if w.Spec.HostNetwork && w.alone() {
		return EndpointsSeconds
	}
	return drainSeconds
}

// alone reports that there is never more than one pod, so that an autoscaler does not change the template.
// Between the end of that pod and the start of the next one, there is no other to convert.
func (w Workload) alone() bool { return max(w.Replicas(), w.MaxReplicas) == 1 }

func httpsProbe(path string, port int32) *corev1apply.ProbeApplyConfiguration {
	return corev1apply.Probe().WithHTTPGet(corev1apply.HTTPGetAction().
		WithScheme(corev1.URISchemeHTTPS).WithPath(path).WithPort(intstr.FromInt32(port)))
}

// Selector selects the pods.
func (w Workload) Selector() map[string]string {
	return map[string]string{names.InstanceLabel: w.Labels[names.InstanceLabel], names.ComponentLabel: names.ConverterComponent}
}

// Account is the ServiceAccount of the operator's own converter pods.
func (w Workload) Account() string {
	return cmp.Or(w.Settings.ConverterAccount, DefaultConverterAccount)
}

// rollingUpdate removes no pod before another one is ready. With hostNetwork it removes one
// first, because a new pod may find no node with a free port.
func (w Workload) rollingUpdate() *appsv1apply.DeploymentStrategyApplyConfiguration {
	unavailable := 0
	if w.Spec.HostNetwork {
		unavailable = 1
	}
	return appsv1apply.DeploymentStrategy().
		WithType(appsv1.RollingUpdateDeploymentStrategyType).
		WithRollingUpdate(appsv1apply.RollingUpdateDeployment().
			WithMaxSurge(intstr.FromInt32(1)).WithMaxUnavailable(intstr.FromInt(unavailable)))
}

// shape applies the settings of a workload to a pod, and what it inherits from the manager's. An inherited
// toleration says nothing about when a pod leaves a lost node.
func (w Workload) shape(pod *corev1apply.PodSpecApplyConfiguration) *corev1apply.PodSpecApplyConfiguration {
	w.Settings.Inherited.Apply(pod, w.Spec.Placement)
	pod.WithTolerations(lostNodes(w.Spec.Tolerations)...).WithTopologySpreadConstraints(w.spreads()...)
	if w.Spec.HostNetwork {
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
func (w Workload) spreads() []*corev1apply.TopologySpreadConstraintApplyConfiguration {
	wanted := w.Spec.TopologySpreadConstraints
	if len(wanted) == 0 {
		return []*corev1apply.TopologySpreadConstraintApplyConfiguration{
			w.spread(corev1.LabelHostname), w.spread(corev1.LabelTopologyZone)}
	}
	var spreads []*corev1apply.TopologySpreadConstraintApplyConfiguration
	for i := range wanted {
		spread := podspec.ConfigOf[corev1apply.TopologySpreadConstraintApplyConfiguration](&wanted[i])
		if spread.LabelSelector == nil {
			spread.WithLabelSelector(metav1apply.LabelSelector().WithMatchLabels(w.Selector()))
		}
		spreads = append(spreads, spread)
	}
	return spreads
}

func (w Workload) spread(topologyKey string) *corev1apply.TopologySpreadConstraintApplyConfiguration {
	return corev1apply.TopologySpreadConstraint().
		WithMaxSkew(1).WithTopologyKey(topologyKey).WithWhenUnsatisfiable(corev1.ScheduleAnyway).
		WithLabelSelector(metav1apply.LabelSelector().WithMatchLabels(w.Selector()))
}

// Replicas is the number of pods.
func (w Workload) Replicas() int32 { return ptr.Deref(w.Spec.Replicas, defaultReplicas) }

// Default adds the resources that converter pods need, unless there are others.
func Default(pods v1alpha1.ConverterPods) v1alpha1.ConverterPods {
	if pods.Resources == nil {
		pods.Resources = &v1alpha1.Resources{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("32Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")},
		}
	}
	return pods
}

// NetworkPolicy allows what config/components/network-policies allows to all converter pods: API servers, which have no
// labels, and Prometheus. The pods connect to nothing.
func (w Workload) NetworkPolicy() *networkingv1apply.NetworkPolicyApplyConfiguration {
	port := func(name string) *networkingv1apply.NetworkPolicyPortApplyConfiguration {
		return networkingv1apply.NetworkPolicyPort().WithPort(intstr.FromString(name)).WithProtocol(corev1.ProtocolTCP)
	}
	return networkingv1apply.NetworkPolicy(w.Name, w.Settings.Namespace).
		WithLabels(w.Labels).WithAnnotations(w.Annotations).
		WithSpec(networkingv1apply.NetworkPolicySpec().
			WithPodSelector(metav1apply.LabelSelector().WithMatchLabels(w.Selector())).
			WithPolicyTypes(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress).
			WithIngress(
				networkingv1apply.NetworkPolicyIngressRule().WithPorts(port(PortName)),
				networkingv1apply.NetworkPolicyIngressRule().WithPorts(port("metrics")).WithFrom(networkingv1apply.NetworkPolicyPeer().
					WithNamespaceSelector(metav1apply.LabelSelector().WithMatchLabels(map[string]string{"metrics": "enabled"})))))
}
