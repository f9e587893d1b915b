// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// endpointLag is when to look again for endpoints of pods that are ready.
const endpointLag = 2 * time.Second

// pods counts the converter pods by the plan that they serve.
type pods struct {
	desired, current, old int32
}

// webhookAvailable: converter pods run with the current plan. Before the
// CustomResourceDefinition depends on them, all of them; afterwards one is
// enough for conversions to work, and the message tells the difference. A pod
// without it would refuse calls for it, so that every such pod must be gone.
func webhookAvailable(s *state) outcome {
	switch {
	case s.none():
		return s.notNeeded()
	case s.external():
		return s.externalAvailable()
	case s.Policy.Spec.Converter.Image != nil:
		return s.imageAvailable()
	}
	s.applyWorkload()
	count := s.countPods()
	s.plan.Status.Webhook = &v1alpha1.WebhookStatus{
		Desired: count.desired, Ready: count.current,
		Available: fmt.Sprintf("%d/%d", count.current, count.desired),
	}
	if missing := s.missing(); missing != nil && count.old > 0 {
		return *missing
	}
	switch {
	case count.old > 0 || s.fromElsewhere() && count.current < count.desired || s.replacing() && !s.RolledOut:
		return waiting(v1alpha1.ReasonRollingOut, fmt.Sprintf(
			"%d of %d converter pods are ready with the current plan", count.current, count.desired)+count.waits()+s.troubles()+s.meanwhile())
	case count.current == 0:
		return waiting(v1alpha1.ReasonNoReadyPods, fmt.Sprintf(
			"no converter pod is ready: objects that need a conversion cannot be read; see the pods of Deployment %s/%s",
			s.Settings.Namespace, ChildName(s.Policy.Name))+s.troubles())
	case s.Endpoints == 0:
		s.recheck(endpointLag)
		return waiting(v1alpha1.ReasonWaitingForEndpoints, fmt.Sprintf(
			"Service %s/%s has no ready endpoint yet", s.Settings.Namespace, ChildName(s.Policy.Name)))
	}
	s.dropUnused()
	if count.current < count.desired {
		return passed(v1alpha1.ReasonSomePodsReady, fmt.Sprintf(
			"%d of %d converter pods are ready: conversions work, with less to spare", count.current, count.desired)+s.troubles())
	}
	return passed(v1alpha1.ReasonPodsReady, fmt.Sprintf("%d of %d converter pods are ready", count.current, count.desired)+s.troubles())
}

// fromElsewhere tells that nobody depends on the pods with rules yet: nobody
// converts, or something else than rules does.
func (s *state) fromElsewhere() bool {
	named := s.named()
	return !s.engaged || s.replacing() && !slices.Contains(s.rules(), named) && (s.answers(named) || !s.pointsHere())
}

// waits says what is waited for once enough pods have the current plan.
func (p pods) waits() string {
	if p.old == 0 || p.current < p.desired {
		return ""
	}
	return fmt.Sprintf("; waits for the end of %d without it", p.old)
}

// podFailure says what keeps pods from being created, such as a quota.
func (s *state) podFailure() string {
	if s.PodFailure == "" {
		return ""
	}
	return "; the Deployment cannot create pods: " + s.PodFailure + s.hostNetworkHint(s.PodFailure)
}

// hostNetworkHints say what to do about what keeps pods from the network of their
// nodes, by what the scheduler, the kubelet and Pod Security admission say of it.
var hostNetworkHints = []struct{ says, hint string }{
	{"PodSecurity", ": spec.workload.hostNetwork takes a namespace that admits it: kubectl label namespace %s --overwrite pod-security.kubernetes.io/enforce=privileged"},
	{"free ports", ": with spec.workload.hostNetwork each pod takes its port on a node for itself: add nodes, lower spec.workload.replicas, or choose a port that no other policy has"},
	{"ends as soon as it starts", ": with spec.workload.hostNetwork, something else may listen at its port on that node: choose another port"},
}

func (s *state) hostNetworkHint(trouble string) string {
	if !s.Policy.Spec.Workload.HostNetwork {
		return ""
	}
	for _, known := range hostNetworkHints {
		if strings.Contains(trouble, known.says) {
			return strings.ReplaceAll(known.hint, "%s", s.Settings.Namespace)
		}
	}
	return ""
}

// countPods counts ready pods with the current plan, and all pods without it that
// may be called: those that end too, until they are gone or killed.
func (s *state) countPods() pods {
	count := pods{desired: replicas(s.Policy)}
	for _, pod := range s.Pods {
		switch {
		case pod.Image: // called at a port of its own
		case !slices.Contains(pod.Plans, s.planHash):
			count.old++
		case pod.Ready:
			count.current++
		}
	}
	for _, pod := range s.Ending {
		if left := pod.Until.Sub(s.Now); left > 0 && !pod.Image && !slices.Contains(pod.Plans, s.planHash) {
			count.old++
			s.recheck(left)
		}
	}
	return count
}

func replicas(policy *v1alpha1.ConversionPolicy) int32 {
	if policy.Spec.Workload.Replicas == nil {
		return defaultReplicas
	}
	return *policy.Spec.Workload.Replicas
}
