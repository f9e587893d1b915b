// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
	policyv1apply "k8s.io/client-go/applyconfigurations/policy/v1"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

const (
	defaultReplicas = 2
	// servicePort is where the API server calls; 443 is open in every network.
	servicePort = 443
	// ContainerPort is where converter pods listen.
	ContainerPort = 9443
	// metricsPort is where converter pods answer Prometheus, which finds them by
	// their labels and the port by its name.
	metricsPort = 8080
	// PlanKey is the key of a plan in its ConfigMap.
	PlanKey = "plan.json"

	plansMount       = "/etc/conversion-operator/plans"
	certificateMount = "/etc/conversion-operator/tls"
	converterAccount = "conversion-operator-converter"

	// drainSeconds let endpoints and keep-alive connections go before a pod does.
	drainSeconds       = 10
	terminationSeconds = 45
)

// linux is what the image is built for.
var linux = map[string]string{"kubernetes.io/os": "linux"}

// usePlan makes a plan the wanted one.
func (s *state) usePlan(plan *conversion.Plan) {
	text, err := plan.Marshal()
	if err != nil {
		return // cannot be: a plan holds nothing that has no JSON form
	}
	s.planText, s.planHash = string(text), plan.Hash()
}

func (s *state) applyWorkload() {
	for _, object := range s.workload() {
		s.do(Apply{object})
	}
}

// workload is everything that converts: the wanted plan, and the pods that serve
// it and others (carried.go). Nothing of it has an owner reference. Garbage
// collection knows no order, and the CustomResourceDefinition must let go before
// the pods do.
func (s *state) workload() []runtime.ApplyConfiguration {
	objects := []runtime.ApplyConfiguration{s.service(), s.disruptionBudget()}
	if s.planHash != "" {
		objects = append(objects, s.planConfigMap())
	}
	if s.missing() == nil {
		objects = append(objects, s.deployment())
	}
	return objects
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
			WithPorts(corev1apply.ServicePort().
				WithName("https").WithProtocol(corev1.ProtocolTCP).WithPort(servicePort).
				WithTargetPort(intstr.FromInt32(ContainerPort))))
}

func (s *state) disruptionBudget() *policyv1apply.PodDisruptionBudgetApplyConfiguration {
	return policyv1apply.PodDisruptionBudget(ChildName(s.Policy.Name), s.Settings.Namespace).
		WithLabels(s.labels(ConverterComponent)).WithAnnotations(s.annotations()).
		WithSpec(policyv1apply.PodDisruptionBudgetSpec().
			WithMaxUnavailable(intstr.FromInt32(1)).
			WithSelector(metav1apply.LabelSelector().WithMatchLabels(s.selector())))
}

func (s *state) deployment() *appsv1apply.DeploymentApplyConfiguration {
	return appsv1apply.Deployment(ChildName(s.Policy.Name), s.Settings.Namespace).
		WithLabels(s.labels(ConverterComponent)).WithAnnotations(s.annotations()).
		WithSpec(appsv1apply.DeploymentSpec().
			WithReplicas(replicas(s.Policy)).
			WithRevisionHistoryLimit(2).
			WithSelector(metav1apply.LabelSelector().WithMatchLabels(s.selector())).
			WithStrategy(appsv1apply.DeploymentStrategy().
				WithType(appsv1.RollingUpdateDeploymentStrategyType).
				WithRollingUpdate(appsv1apply.RollingUpdateDeployment().
					WithMaxSurge(intstr.FromInt32(1)).WithMaxUnavailable(intstr.FromInt32(0)))).
			WithTemplate(s.converterPod()))
}

func (s *state) converterPod() *corev1apply.PodTemplateSpecApplyConfiguration {
	annotations := s.annotations()
	annotations[PlansAnnotation] = JoinPlans(s.carried)
	return corev1apply.PodTemplateSpec().
		WithLabels(s.labels(ConverterComponent)).WithAnnotations(annotations).
		WithSpec(corev1apply.PodSpec().
			WithServiceAccountName(converterAccount).
			WithAutomountServiceAccountToken(false).
			WithEnableServiceLinks(false).
			WithTerminationGracePeriodSeconds(terminationSeconds).
			WithSecurityContext(restrictedPod()).
			WithNodeSelector(linux).
			WithTopologySpreadConstraints(s.spread("kubernetes.io/hostname"), s.spread("topology.kubernetes.io/zone")).
			WithContainers(s.converterContainer()).
			WithVolumes(
				corev1apply.Volume().WithName("plans").WithProjected(s.plansVolume()),
				corev1apply.Volume().WithName("tls").WithSecret(corev1apply.SecretVolumeSource().
					WithSecretName(CertificateName(s.Policy.Name)))))
}

// plansVolume has each plan in a file of its own, whose name is the hash.
func (s *state) plansVolume() *corev1apply.ProjectedVolumeSourceApplyConfiguration {
	volume := corev1apply.ProjectedVolumeSource()
	for _, hash := range s.carried {
		volume.WithSources(corev1apply.VolumeProjection().WithConfigMap(corev1apply.ConfigMapProjection().
			WithName(PlanName(s.Policy.Name, hash)).
			WithItems(corev1apply.KeyToPath().WithKey(PlanKey).WithPath(hash + ".json"))))
	}
	return volume
}

func (s *state) converterContainer() *corev1apply.ContainerApplyConfiguration {
	return corev1apply.Container().
		WithName("converter").
		WithImage(s.Settings.Image).
		WithImagePullPolicy(corev1.PullIfNotPresent).
		WithArgs("serve",
			"--plans="+plansMount,
			"--certificates="+certificateMount,
			"--port="+strconv.Itoa(ContainerPort),
			"--metrics-bind-address=:"+strconv.Itoa(metricsPort),
			"--drain="+seconds(drainSeconds)).
		WithPorts(
			corev1apply.ContainerPort().WithName("https").WithContainerPort(ContainerPort).WithProtocol(corev1.ProtocolTCP),
			corev1apply.ContainerPort().WithName("metrics").WithContainerPort(metricsPort).WithProtocol(corev1.ProtocolTCP)).
		WithResources(resources(s.Policy.Spec.Workload.Resources)).
		WithSecurityContext(restrictedContainer()).
		WithReadinessProbe(httpsProbe("/readyz").WithPeriodSeconds(2).WithFailureThreshold(2)).
		WithLivenessProbe(httpsProbe("/healthz").WithPeriodSeconds(10).WithFailureThreshold(3)).
		WithVolumeMounts(
			corev1apply.VolumeMount().WithName("plans").WithMountPath(plansMount).WithReadOnly(true),
			corev1apply.VolumeMount().WithName("tls").WithMountPath(certificateMount).WithReadOnly(true))
}

func httpsProbe(path string) *corev1apply.ProbeApplyConfiguration {
	return corev1apply.Probe().WithHTTPGet(corev1apply.HTTPGetAction().
		WithScheme(corev1.URISchemeHTTPS).WithPath(path).WithPort(intstr.FromInt32(ContainerPort)))
}

// spread keeps one lost node or zone from taking every converter along.
func (s *state) spread(topologyKey string) *corev1apply.TopologySpreadConstraintApplyConfiguration {
	return corev1apply.TopologySpreadConstraint().
		WithMaxSkew(1).WithTopologyKey(topologyKey).WithWhenUnsatisfiable(corev1.ScheduleAnyway).
		WithLabelSelector(metav1apply.LabelSelector().WithMatchLabels(s.selector()))
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
