// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	admissionregistrationv1apply "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1apply "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// startImage lets the pods of an image start, beside all others.
func (c *Cluster) startImage(identity string, deployment *appsv1apply.DeploymentApplyConfiguration) {
	var endpoint observed.ImageEndpoint
	c.note(json.Unmarshal([]byte(deployment.Annotations[names.EndpointAnnotation]), &endpoint))
	stored := observed.StoredRevision{Hash: identity, Readable: true, Image: &endpoint}
	c.State.Revisions = slices.DeleteFunc(c.State.Revisions, func(there observed.StoredRevision) bool { return there.Hash == identity })
	c.State.Revisions = append(c.State.Revisions, stored)
	isOfImage := func(pod observed.Pod) bool { return slices.Contains(pod.Revisions, identity) }
	if c.HoldBack || slices.ContainsFunc(c.State.Pods, isOfImage) {
		return
	}
	container := deployment.Spec.Template.Spec.Containers[0]
	c.tell("  pods of %s start beside others", *container.Image)
	for i := range *deployment.Spec.Replicas {
		c.State.Pods = append(c.State.Pods, observed.Pod{Name: fmt.Sprintf("%s-%d", *deployment.Name, i),
			Revisions: []string{identity}, Image: true, Ready: true, Scheduled: true, Proof: c.proof()})
	}
	if c.State.PortEndpoints == nil {
		c.State.PortEndpoints = map[string]int{}
	}
	c.State.PortEndpoints[*container.Ports[0].Name] = int(*deployment.Spec.Replicas)
}

// proof is the answer of new pods to their probe.
func (c *Cluster) proof() *observed.Proof {
	if c.Misbehave != "" {
		return &observed.Proof{Reason: v1alpha1.ReasonCanaryFailed, Message: c.Misbehave}
	}
	return &observed.Proof{}
}

// ofPolicy reports that a pod serves rulesets for the policy alone.
func ofPolicy(pod observed.Pod) bool { return !pod.Image && pod.Fleet == "" }

func (c *Cluster) deleteDeployment(name string) {
	if name == names.Child(c.State.Policy.Name) {
		c.State.Deployed, c.State.Endpoints = false, 0
		c.State.Pods = slices.DeleteFunc(c.State.Pods, ofPolicy)
		return
	}
	ofDeployment := func(identity string) bool { return names.Image(c.State.Policy.Name, identity) == name }
	c.State.Pods = slices.DeleteFunc(c.State.Pods, func(pod observed.Pod) bool { return pod.Image && ofDeployment(pod.Revisions[0]) })
	c.State.Revisions = slices.DeleteFunc(c.State.Revisions, func(stored observed.StoredRevision) bool { return ofDeployment(stored.Hash) })
}

// applied lets the pods of a Deployment start with the stored rulesets.
func (c *Cluster) applied(object runtime.ApplyConfiguration) {
	switch object := object.(type) {
	case *appsv1apply.DeploymentApplyConfiguration:
		if identity := object.Labels[names.RevisionLabel]; identity != "" {
			c.startImage(identity, object)
			return
		}
		c.State.Deployed = true
		if c.HoldBack || c.Lies && slices.ContainsFunc(c.State.Pods, ofPolicy) {
			return // pods stay unchanged
		}
		before := map[string]observed.Pod{}
		for _, pod := range c.State.Pods {
			if ofPolicy(pod) {
				before[pod.Name] = pod
			}
		}
		c.State.Pods = slices.DeleteFunc(c.State.Pods, ofPolicy)
		c.State.Endpoints = int(*object.Spec.Replicas)
		for i := range *object.Spec.Replicas {
			pod := observed.Pod{Name: fmt.Sprintf("converter-%d", i), Revisions: c.StoredRulesets("")}
			if known, runs := before[pod.Name]; runs {
				pod = known
			}
			pod.Ready, pod.Scheduled, pod.Proof = true, true, c.proof()
			c.State.Pods = append(c.State.Pods, pod)
		}
	case *admissionregistrationv1apply.ValidatingWebhookConfigurationApplyConfiguration:
		c.admit(object)
	case *corev1apply.ServiceApplyConfiguration:
		c.State.Exposed = true
	case *corev1apply.ConfigMapApplyConfiguration:
		if *object.Name == names.Rulesets(c.State.Policy.Name) {
			c.store(object.BinaryData)
		}
	case *corev1apply.ServiceAccountApplyConfiguration:
		c.State.Rights = true
	case *rbacv1apply.ClusterRoleApplyConfiguration:
		if c.State.Granted != nil {
			c.fail("it makes the ClusterRole %s, which another client is to make", *object.Name)
		}
		*c.rights(*object.Name) = true
	}
}

// store replaces the stored rulesets.
func (c *Cluster) store(rulesets map[string][]byte) {
	c.State.Revisions = slices.DeleteFunc(c.State.Revisions, func(stored observed.StoredRevision) bool {
		return stored.Image == nil && stored.Fleet() == "" && rulesets[conversion.StoredName(names.Child(c.State.Policy.Name), stored.Hash)] == nil
	})
	for _, key := range slices.Sorted(maps.Keys(rulesets)) {
		hash, _ := conversion.StoredHash(key)
		if !slices.ContainsFunc(c.State.Revisions, func(stored observed.StoredRevision) bool { return stored.Hash == hash }) {
			c.State.Revisions = append(c.State.Revisions, observed.StoredRevision{Hash: hash, Readable: true, Stored: rulesets[key]})
		}
	}
}

// StoredRulesets are the revisions that are stored in a fleet, or for the pods of the policy alone,
// in the order in which they came.
func (c *Cluster) StoredRulesets(fleet string) []string {
	hashes := []string{}
	for _, stored := range c.State.Revisions {
		if stored.Image == nil && stored.Fleet() == fleet {
			hashes = append(hashes, stored.Hash)
		}
	}
	return hashes
}

// refresh lets a pod load the stored rulesets.
func (c *Cluster) refresh(s step.RefreshPod) {
	for i := range c.State.Pods {
		pod := &c.State.Pods[i]
		if pod.Name != s.Name {
			continue
		}
		if s.Annotation == names.CertificateAnnotation {
			pod.Certificate = s.Value
			continue
		}
		pod.Ruleset = s.Value
		if !c.HoldBack && !c.Lies {
			pod.Revisions = c.StoredRulesets(pod.Fleet)
			c.tell("  it loads %s", strings.Join(pod.Revisions, " and "))
		}
	}
}

// Observe lets pods, which follow their Secret at once, answer the probes that the next plan needs.
func (c *Cluster) Observe() {
	c.observeFleets()
	successor := len(plan.TrustOf(*c.State).Successor) > 0
	for _, pod := range c.Answerers() {
		if proof := pod.Proof; proof != nil && proof.Reason == "" {
			pod.Proof = &observed.Proof{Warning: proof.Warning, Successor: successor}
		}
	}
}

// Answerers are the pods, and the endpoints of a converter that users run.
func (c *Cluster) Answerers() []*observed.Pod {
	var all []*observed.Pod
	for i := range c.State.Pods {
		all = append(all, &c.State.Pods[i])
	}
	for i := range c.State.External.Endpoints {
		all = append(all, &c.State.External.Endpoints[i])
	}
	return all
}

// evict ends a pod, and starts another that answers as it should.
func (c *Cluster) evict(name string) {
	i := slices.IndexFunc(c.State.Pods, func(pod observed.Pod) bool { return pod.Name == name })
	if i < 0 {
		c.fail("there is no pod %s to evict", name)
		return
	}
	c.tell("  another pod starts in its place")
	another := c.State.Pods[i]
	another.Name, another.Created, another.Proof = another.Name+"-again", c.State.Now, &observed.Proof{}
	c.State.Pods[i] = another
}

// admit stores a webhook configuration as the API server does.
func (c *Cluster) admit(object *admissionregistrationv1apply.ValidatingWebhookConfigurationApplyConfiguration) {
	text, err := json.Marshal(object)
	c.note(err)
	c.State.Admission = &admissionregistrationv1.ValidatingWebhookConfiguration{}
	c.note(json.Unmarshal(text, c.State.Admission))
}
