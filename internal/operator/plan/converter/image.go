// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converter

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/podspec"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/workload"
)

// A converter image does not say which rules it has, and answers at one path. So each image
// has a Deployment of its own, named by the hash of its pod template, and a port of its own
// in the Service, which leads to those pods only. A change of the image has the same order as
// a change of rules (served.go):
//
//  1. the new Deployment is created beside the active one
//  2. every new pod has been verified
//  3. the CustomResourceDefinition is changed, once, to name the new port
//  4. after the propagation delay, the previous Deployment is deleted
//
// A bad image stops at the first or second step, and changes nothing else.

const (
	// firstImagePort is the first of maxRevisions ports of the Service.
	firstImagePort = 444
	// identityLength is the length of a ruleset hash, too.
	identityLength = 16
)

// image is the kind of a converter of the user in pods of the operator.
type image struct {
	pods
	spec     *v1alpha1.ImageConverter
	versions []v1alpha1.ReviewVersion
}

func (i image) client() (*apiextensionsv1.WebhookClientConfig, []string) {
	return i.ownClient(i.endpoint.Path, i.endpoint.Port), i.endpoint.ConversionReviewVersions
}

// prepare adds the ports of the served revisions. choose has rendered the rest already, because
// the identity follows from it.
func (i image) prepare() {
	if i.Wanted != "" {
		workload.ReassertService(i.rendered.Service, i.service())
		workload.ReassertBudget(i.rendered.Budget, i.disruptionBudget())
	}
}

func (i image) valid([]string) gate.Outcome {
	if i.renderErr != nil {
		return i.notRendered()
	}
	return i.withoutRules("image "+i.spec.Reference, i.Wanted)
}

func (i image) choose() {
	if i.renderErr = i.checkAccount(); i.renderErr != nil {
		return
	}
	if i.rendered, i.renderErr = i.render(); i.renderErr == nil {
		i.Wanted = i.identify(i.rendered.Deployment)
	}
}

// errOperatorAccount is the error for a ServiceAccount of the operator.
var errOperatorAccount = errors.New("belongs to the operator, and its rights are not for a converter: create another ServiceAccount")

// checkAccount refuses the token of the manager, of a migration, of a search for dependents, and of the
// pods of all converters: an author of policies must not get their rights. Only the manager knows these
// accounts, whose names differ between installations. The rights to search may be left from an earlier
// installation.
func (i image) checkAccount() error {
	name := i.spec.ServiceAccountName
	ours := []string{i.Settings.ManagerAccount, i.workload().Account(), i.Settings.DependentsAccount, names.DependentsAccount}
	if name != "" && (slices.Contains(ours, name) || names.HasRights(name)) {
		return fmt.Errorf("spec.converter.image.serviceAccountName: %s %w", name, errOperatorAccount)
	}
	return nil
}

// identify names a Deployment, its pods and its port by the hash of the pod template.
func (i image) identify(deployment *appsv1apply.DeploymentApplyConfiguration) string {
	identity := names.Hash(shapeOf(deployment.Spec.Template))[:identityLength]
	i.endpoint = i.endpointOf(identity)
	endpoint, _ := json.Marshal(i.endpoint) // cannot fail, of strings and a number
	mark := map[string]string{names.RevisionLabel: identity}
	deployment.WithName(names.Image(i.Policy.Name, identity)).WithLabels(mark).
		WithAnnotations(map[string]string{names.EndpointAnnotation: string(endpoint)})
	deployment.Spec.Selector = metav1apply.LabelSelector().WithMatchLabels(i.workload().Selector()).WithMatchLabels(mark)
	deployment.Spec.Template.WithLabels(mark)
	workload.ContainerOf(deployment).Ports[0].WithName(imagePortName(identity))
	return identity
}

// shapeOf is the pod template as text, without empty members. Patches may add or remove those,
// and they change nothing.
func shapeOf(template *corev1apply.PodTemplateSpecApplyConfiguration) string {
	var content any
	text, _ := json.Marshal(template) // cannot fail: it was read from JSON, or is to become that
	if json.Unmarshal(text, &content) != nil {
		return ""
	}
	text, _ = json.Marshal(withoutEmpty(content))
	return string(text)
}

// withoutEmpty removes null members and empty objects from JSON.
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

func (i image) howToReplace() (hint string, evicts bool) {
	return fmt.Sprintf("see the log of the pods, and correct spec.converter.image; or restart them with kubectl -n %s delete pods -l %s=%s",
		i.Settings.Namespace, names.RevisionLabel, i.Wanted), true
}

// endpointOf is the address of the image. It keeps its port, or gets one that no other image
// has; 0 if all ports are taken.
func (i image) endpointOf(identity string) observed.ImageEndpoint {
	endpoint := observed.ImageEndpoint{Path: string(i.spec.Path), ConversionReviewVersions: reviewVersions(i.versions)}
	if stored := i.StoredImage(identity); stored != nil {
		endpoint.Port = stored.Port
		return endpoint
	}
	for port := int32(firstImagePort); port < firstImagePort+maxRevisions; port++ {
		taken := slices.ContainsFunc(i.Revisions, func(stored observed.StoredRevision) bool { return stored.Image != nil && stored.Image.Port == port })
		if !taken {
			endpoint.Port = port
			return endpoint
		}
	}
	return endpoint
}

// StoredImage is the address of an image that has a Deployment, or nil.
func (c *Converter) StoredImage(identity string) *observed.ImageEndpoint {
	for _, stored := range c.Revisions {
		if stored.Hash == identity {
			return stored.Image
		}
	}
	return nil
}

// imageEndpoint is the address of the desired image or of a previous one, or nil.
func (c *Converter) imageEndpoint(identity string) *observed.ImageEndpoint {
	if _, is := c.kind.(image); is && identity == c.Wanted {
		return &c.endpoint
	}
	return c.StoredImage(identity)
}

// imagePortName is the name of the Service port of an image, at most 15 characters.
func imagePortName(identity string) string { return "c" + identity[:14] }

// available passes if pods of the image are ready: all of them before the
// CustomResourceDefinition depends on them, and one of them afterwards.
func (i image) available() gate.Outcome {
	i.work.Add(i.DropUnused())
	if i.endpoint.Port == 0 {
		return gate.Waiting(v1alpha1.ReasonRollingOut, fmt.Sprintf(
			"the converter pods changed %d times within %s: waiting until API servers stop requesting the oldest revision", maxRevisions, i.Settings.PropagationDelay)+i.Meanwhile())
	}
	i.applyWorkload()
	desired, ready := i.workload().Replicas(), i.readyWith(i.Wanted)
	i.reportPods(desired, ready)
	serves := i.Active && i.Named() == i.Wanted
	switch {
	case !serves && ready < desired:
		return gate.Waiting(v1alpha1.ReasonRollingOut, fmt.Sprintf(
			"%d of %d converter pods of image %s are ready", ready, desired, i.spec.Reference)+i.troubles()+i.Meanwhile())
	case ready == 0:
		return i.noPodReady(names.Image(i.Policy.Name, i.Wanted))
	case i.PortEndpoints[imagePortName(i.Wanted)] == 0:
		i.work.Recheck(endpointLag)
		return gate.Waiting(v1alpha1.ReasonRollingOut, fmt.Sprintf(
			"Service %s/%s has no ready endpoint yet for port %d", i.Settings.Namespace, names.Child(i.Policy.Name), i.endpoint.Port)+i.Meanwhile())
	}
	return i.podsReady(ready, desired)
}

func (c *Converter) readyWith(identity string) int32 {
	var ready int32
	for _, pod := range c.Pods {
		if pod.Ready && slices.Contains(pod.Revisions, identity) {
			ready++
		}
	}
	return ready
}

// troubles say what prevents pods from being created or from starting.
func (c *Converter) troubles() string {
	// The pods usually have the same trouble, so the message names one of them.
	pods := c.kind.endpoints()
	i := slices.IndexFunc(pods, func(pod observed.Pod) bool {
		return pod.Trouble.Message != "" && !pod.Ready && c.kind.serves(pod)
	})
	if i < 0 {
		return c.podFailure()
	}
	trouble := pods[i].Trouble
	return c.podFailure() + "; pod " + pods[i].Name + ": " + gate.Cut(trouble.Message) + c.hostNetworkHint(trouble)
}

func (i image) deployment() *appsv1apply.DeploymentApplyConfiguration {
	deployment := i.workload().Deployment(i.pod())
	deployment.Spec.WithRevisionHistoryLimit(0) // its template never changes
	return deployment
}

// pod runs as the user of the image.
func (i image) pod() *corev1apply.PodSpecApplyConfiguration {
	w := i.workload()
	return w.Pod().
		WithServiceAccountName(cmp.Or(i.spec.ServiceAccountName, w.Account())).
		WithAutomountServiceAccountToken(i.spec.ServiceAccountName != "").
		WithContainers(i.container()).
		WithVolumes(w.CertificateVolume())
}

// container is ready when its port is open, because nothing else is known about the image. It
// continues for a while before it terminates, because API servers keep connections open.
func (i image) container() *corev1apply.ContainerApplyConfiguration {
	container := corev1apply.Container().
		WithName(workload.Container).
		WithImage(i.spec.Reference).
		WithCommand(i.spec.Command...).
		WithArgs(i.spec.Args...).
		WithPorts(corev1apply.ContainerPort().WithName(workload.PortName).WithContainerPort(i.spec.Port).WithProtocol(corev1.ProtocolTCP)).
		WithResources(podspec.Resources(i.workload().Spec.Resources)).
		WithSecurityContext(corev1apply.SecurityContext().
			WithAllowPrivilegeEscalation(false).
			WithCapabilities(corev1apply.Capabilities().WithDrop("ALL"))).
		WithReadinessProbe(corev1apply.Probe().
			WithTCPSocket(corev1apply.TCPSocketAction().WithPort(intstr.FromInt32(i.spec.Port))).
			WithPeriodSeconds(2).WithFailureThreshold(2)).
		WithLifecycle(corev1apply.Lifecycle().WithPreStop(
			corev1apply.LifecycleHandler().WithSleep(corev1apply.SleepAction().WithSeconds(workload.EndpointsSeconds)))).
		WithVolumeMounts(corev1apply.VolumeMount().WithName(workload.CertificateVolume).WithMountPath(i.spec.CertificateMountPath).WithReadOnly(true))
	for at := range i.spec.Env {
		container.WithEnv(podspec.ConfigOf[corev1apply.EnvVarApplyConfiguration](&i.spec.Env[at]))
	}
	return container
}
