// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"

	corev1 "k8s.io/api/core/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// A converter image says nothing of which rules it has, and answers at one path.
// So each has a Deployment of its own, named by the hash of all that shapes its
// pods, and a port of its own in the one Service, which leads to those pods alone.
// That makes of a change what carried.go does with rules:
//
//  1. the new Deployment is created beside the one that serves
//  2. every new pod has proven itself
//  3. the CustomResourceDefinition is written, once, to name the new port
//  4. when API servers have had the time to follow, the Deployment of before goes
//
// A bad image ends in the first or second of these, and changes nothing else.

const (
	// firstImagePort is the first of maxPlans ports of the Service.
	firstImagePort = 444
	// identityLength is that of a hash of rules too.
	identityLength = 16
)

// ImageEndpoint is where API servers find the converter of one image. It is kept
// with the Deployment: the policy may have changed since.
type ImageEndpoint struct {
	// Port of the Service.
	Port int32 `json:"port"`
	// Path where it answers ConversionReviews.
	Path string `json:"path"`
	// ConversionReviewVersions that it understands.
	ConversionReviewVersions []string `json:"conversionReviewVersions"`
}

// useImage makes the pods of the policy's image the wanted converter.
func (s *state) useImage() {
	s.rendered, s.renderErr = s.render()
	if s.renderErr == nil {
		s.planHash = s.identify(s.rendered.deployment)
	}
}

// identify gives a Deployment, its pods and their port names from what shapes them.
func (s *state) identify(deployment *appsv1apply.DeploymentApplyConfiguration) string {
	identity := hash(shapeOf(deployment.Spec.Template))[:identityLength]
	s.endpoint = s.endpointOf(identity)
	endpoint, _ := json.Marshal(s.endpoint) // cannot fail, of strings and a number
	mark := map[string]string{PlanLabel: identity}
	deployment.WithName(ImageName(s.Policy.Name, identity)).WithLabels(mark).
		WithAnnotations(map[string]string{EndpointAnnotation: string(endpoint)})
	deployment.Spec.Selector = metav1apply.LabelSelector().WithMatchLabels(s.selector()).WithMatchLabels(mark)
	deployment.Spec.Template.WithLabels(mark).WithAnnotations(map[string]string{PlansAnnotation: identity})
	containerOf(deployment).Ports[0].WithName(imagePortName(identity))
	return identity
}

// shapeOf is what shapes pods, as text. What is empty shapes nothing: whether it is
// there depends on whether the Deployment has been through patches.
func shapeOf(template *corev1apply.PodTemplateSpecApplyConfiguration) string {
	var content any
	text, _ := json.Marshal(template) // cannot fail: it was read from JSON, or is to become that
	if json.Unmarshal(text, &content) != nil {
		return ""
	}
	text, _ = json.Marshal(withoutEmpty(content))
	return string(text)
}

// withoutEmpty is JSON without members that hold nothing.
func withoutEmpty(value any) any {
	members, ok := value.(map[string]any)
	if !ok {
		elements, _ := value.([]any)
		for i := range elements {
			elements[i] = withoutEmpty(elements[i])
		}
		return value
	}
	for name, member := range members {
		members[name] = withoutEmpty(member)
		switch member := members[name].(type) {
		case nil:
			delete(members, name)
		case map[string]any:
			if len(member) == 0 {
				delete(members, name)
			}
		}
	}
	return members
}

// endpointOf is where the image is to be found: at its port of before, or at one
// that no other image has. Its port is 0 where all are taken.
func (s *state) endpointOf(identity string) ImageEndpoint {
	image := s.Policy.Spec.Converter.Image
	endpoint := ImageEndpoint{Path: string(image.Path), ConversionReviewVersions: reviewVersions(image.ConversionReviewVersions)}
	if stored := s.storedImage(identity); stored != nil {
		endpoint.Port = stored.Port
		return endpoint
	}
	for port := int32(firstImagePort); port < firstImagePort+maxPlans; port++ {
		taken := slices.ContainsFunc(s.Plans, func(stored StoredPlan) bool { return stored.Image != nil && stored.Image.Port == port })
		if !taken {
			endpoint.Port = port
			return endpoint
		}
	}
	return endpoint
}

// storedImage is where an image with a Deployment is to be found, or nil.
func (s *state) storedImage(identity string) *ImageEndpoint {
	for _, stored := range s.Plans {
		if stored.Hash == identity {
			return stored.Image
		}
	}
	return nil
}

// imageEndpoint is where an image is to be found, wanted or of before, or nil.
func (s *state) imageEndpoint(identity string) *ImageEndpoint {
	if s.Policy.Spec.Converter.Image != nil && identity == s.planHash {
		return &s.endpoint
	}
	return s.storedImage(identity)
}

// imagePortName is the name of the port that leads to one image's pods, at most 15
// characters.
func imagePortName(identity string) string { return "c" + identity[:14] }

// imageAvailable: the pods of the image are ready. Before the
// CustomResourceDefinition depends on them, all of them; afterwards one is enough.
func (s *state) imageAvailable() outcome {
	s.dropUnused()
	if s.endpoint.Port == 0 {
		return waiting(v1alpha1.ReasonRollingOut, fmt.Sprintf(
			"what shapes the converter pods was changed %d times within %s: waits until no API server asks for the oldest", maxPlans, s.Settings.Settle)+s.meanwhile())
	}
	s.applyWorkload()
	desired, ready := replicas(s.Policy), s.readyWith(s.planHash)
	s.plan.Status.Webhook = &v1alpha1.WebhookStatus{Desired: desired, Ready: ready, Available: fmt.Sprintf("%d/%d", ready, desired)}
	serves := s.armed && s.named() == s.planHash
	switch {
	case !serves && ready < desired:
		return waiting(v1alpha1.ReasonRollingOut, fmt.Sprintf(
			"%d of %d converter pods of image %s are ready", ready, desired, s.Policy.Spec.Converter.Image.Image)+s.troubles()+s.meanwhile())
	case ready == 0:
		return waiting(v1alpha1.ReasonNoReadyPods, fmt.Sprintf(
			"no converter pod is ready: objects that need a conversion cannot be read; see the pods of Deployment %s/%s",
			s.Settings.Namespace, ImageName(s.Policy.Name, s.planHash))+s.troubles())
	case s.PortEndpoints[imagePortName(s.planHash)] == 0:
		s.recheck(endpointLag)
		return waiting(v1alpha1.ReasonWaitingForEndpoints, fmt.Sprintf(
			"Service %s/%s has no ready endpoint yet for port %d", s.Settings.Namespace, ChildName(s.Policy.Name), s.endpoint.Port)+s.meanwhile())
	}
	if ready < desired {
		return passed(v1alpha1.ReasonSomePodsReady, fmt.Sprintf(
			"%d of %d converter pods are ready: conversions work, with less to spare", ready, desired)+s.troubles())
	}
	return passed(v1alpha1.ReasonPodsReady, fmt.Sprintf("%d of %d converter pods are ready", ready, desired)+s.troubles())
}

func (s *state) readyWith(identity string) int32 {
	var ready int32
	for _, pod := range s.Pods {
		if pod.Ready && slices.Contains(pod.Plans, identity) {
			ready++
		}
	}
	return ready
}

// troubles say what keeps pods from being created, or from starting.
func (s *state) troubles() string {
	// One pod is enough: the others have the same, more often than not.
	i := slices.IndexFunc(s.Pods, func(pod Pod) bool {
		return pod.Trouble != "" && !pod.Ready && slices.Contains(pod.Plans, s.planHash)
	})
	if i < 0 {
		return s.podFailure()
	}
	return s.podFailure() + "; pod " + s.Pods[i].Name + ": " + cut(s.Pods[i].Trouble) + s.hostNetworkHint(s.Pods[i].Trouble)
}

func (s *state) imageDeployment(image *v1alpha1.ImageConverter) *appsv1apply.DeploymentApplyConfiguration {
	return appsv1apply.Deployment(ChildName(s.Policy.Name), s.Settings.Namespace).
		WithLabels(s.labels(ConverterComponent)).WithAnnotations(s.annotations()).
		WithSpec(appsv1apply.DeploymentSpec().
			WithReplicas(replicas(s.Policy)).
			WithRevisionHistoryLimit(0). // its template never changes
			WithSelector(metav1apply.LabelSelector().WithMatchLabels(s.selector())).
			WithStrategy(s.rollingUpdate()).
			WithTemplate(corev1apply.PodTemplateSpec().
				WithLabels(s.labels(ConverterComponent)).WithAnnotations(s.annotations()).
				WithSpec(s.imagePod(image))))
}

// imagePod satisfies the restricted Pod Security Standard, which the operator's
// namespace asks for, as whatever user the image has.
func (s *state) imagePod(image *v1alpha1.ImageConverter) *corev1apply.PodSpecApplyConfiguration {
	account := cmp.Or(image.ServiceAccountName, s.converterAccount())
	return s.shape(corev1apply.PodSpec()).
		WithServiceAccountName(account).
		WithAutomountServiceAccountToken(image.ServiceAccountName != "").
		WithEnableServiceLinks(false).
		WithTerminationGracePeriodSeconds(terminationSeconds).
		WithSecurityContext(restrictedPod()).
		WithContainers(s.imageContainer(image)).
		WithVolumes(corev1apply.Volume().WithName("tls").WithSecret(corev1apply.SecretVolumeSource().
			WithSecretName(CertificateName(s.Policy.Name))))
}

// imageContainer is ready once it listens: nothing else is known of it. It goes on
// for a while when it is told to end, as API servers keep connections.
func (s *state) imageContainer(image *v1alpha1.ImageConverter) *corev1apply.ContainerApplyConfiguration {
	container := corev1apply.Container().
		WithName(converterContainer).
		WithImage(image.Image).
		WithCommand(image.Command...).
		WithArgs(image.Args...).
		WithPorts(corev1apply.ContainerPort().WithName(portName).WithContainerPort(image.Port).WithProtocol(corev1.ProtocolTCP)).
		WithResources(resources(s.Policy.Spec.Workload.Resources)).
		WithSecurityContext(corev1apply.SecurityContext().
			WithAllowPrivilegeEscalation(false).
			WithCapabilities(corev1apply.Capabilities().WithDrop("ALL"))).
		WithReadinessProbe(corev1apply.Probe().
			WithTCPSocket(corev1apply.TCPSocketAction().WithPort(intstr.FromInt32(image.Port))).
			WithPeriodSeconds(2).WithFailureThreshold(2)).
		WithLifecycle(corev1apply.Lifecycle().WithPreStop(
			corev1apply.LifecycleHandler().WithSleep(corev1apply.SleepAction().WithSeconds(drainSeconds)))).
		WithVolumeMounts(corev1apply.VolumeMount().WithName("tls").WithMountPath(image.CertificateMountPath).WithReadOnly(true))
	for i := range image.Env {
		container.WithEnv(configOf[corev1apply.EnvVarApplyConfiguration](&image.Env[i]))
	}
	return container
}
