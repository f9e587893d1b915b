// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converter

import (
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// Converter pods serve several rulesets while rules change: the desired one; the one that the
// CustomResourceDefinition names, no matter who wrote it; and previous ones, for API servers
// that have not seen the change yet. Every request is answered by the ruleset that it names.
// The order of a change:
//
//  1. the new ruleset is written beside the previous ones, into the ConfigMap that pods mount
//  2. every ready pod has loaded it; kubelets are asked to update the mounted files
//  3. every pod has been verified with the new ruleset
//  4. the CustomResourceDefinition is changed, once, to name the new ruleset
//  5. after the propagation delay, the previous rulesets are removed from the ConfigMap
//
// No pod is replaced. A pod that lacks a ruleset refuses requests for it, and API servers retry.
//
// Each step is decided from the observed cluster and status.activeRevisions. Another manager
// can therefore continue at any step, and a rollback is a change like any other.

const (
	// maxRevisions limits the rulesets of a pod. If rules change more often within the propagation
	// delay, the next change waits.
	maxRevisions = 4
	// maxStoredBytes limits the compressed rulesets of a policy. API servers refuse a ConfigMap of
	// more than 1 MiB, in which binary data take a third more.
	maxStoredBytes = 700 << 10
	// refreshAgain is the time after which a kubelet is asked again to update mounted files: it
	// may not have seen the change of the ConfigMap when it was asked first.
	refreshAgain = 5 * time.Second
	// loadAgain is the time until pods are asked again whether they have loaded a ruleset.
	loadAgain = 500 * time.Millisecond
)

// rememberActive updates status.activeRevisions: the active revision, and previous ones for as
// long as API servers may request them.
func (c *Converter) rememberActive() {
	if !c.EverActive {
		c.Status.Active = nil
		return
	}
	if c.InForce() && !c.Drifted {
		c.recordActive(c.Named())
	}
	c.Status.Active = slices.DeleteFunc(c.Status.Active, func(active v1alpha1.ActiveRevision) bool {
		return active.ReplacedTime != nil && c.work.Due(active.ReplacedTime.Add(c.Settings.PropagationDelay).Sub(c.Now))
	})
	if c.None() && c.Unconverted() && len(c.Status.Active) == 0 {
		// No API server requests the previous converter any more.
		c.EverActive = false
		c.Status.ActiveCRD, c.Status.Webhook = "", nil
	}
}

// recordActive records that the CustomResourceDefinition names this revision and no other. It
// ignores a hash that no pod, no ConfigMap and no Deployment has.
func (c *Converter) recordActive(hash string) {
	recorded := hash == "" || hash != c.Wanted && !c.exists(hash) && !slices.ContainsFunc(c.Pods, func(pod observed.Pod) bool { return slices.Contains(pod.Revisions, hash) })
	active := c.Status.Active
	for i := range active {
		switch {
		case active[i].Revision == hash:
			active[i].ReplacedTime, recorded = nil, true
		case active[i].ReplacedTime == nil:
			active[i].ReplacedTime = &metav1.Time{Time: c.Now}
		}
	}
	if !recorded {
		c.Status.Active = append(c.Status.Active, v1alpha1.ActiveRevision{Revision: hash})
	}
}

// serve determines the revisions that must be served.
func (c *Converter) serve() {
	if c.Wanted != "" {
		c.Served = append(c.Served, c.Wanted)
	}
	for _, hash := range c.called() {
		// A ruleset that no pod has, and that none can be started with, is lost.
		if c.exists(hash) || c.Answers(hash) {
			c.Served = append(c.Served, hash)
		}
	}
	slices.Sort(c.Served)
	c.Served = slices.Compact(c.Served)
}

// called are the revisions that API servers may request.
func (c *Converter) called() (revisions []string) {
	for _, active := range c.Status.Active {
		revisions = append(revisions, active.Revision)
	}
	if c.Active {
		revisions = append(revisions, c.Named())
	}
	return revisions
}

// kept are the revisions whose objects and rulesets stay: those that must be served, and those that
// API servers may request although their rulesets seem to be lost, because pods may have them in memory.
// A manager that has started does not know what the pods have at a place that the policy leaves.
func (c *Converter) kept() []string { return slices.Concat(c.Served, c.called()) }

// Lost reports that no pod has the revision that the CustomResourceDefinition names. Pods at a place
// that the policy leaves may have it if they were not asked.
func (c *Converter) Lost() bool {
	if !c.Active || !c.PointsHere() || c.Answers(c.Named()) {
		return false
	}
	place := names.RevisionOf(c.Named()).Fleet
	return place == c.Fleet() || !slices.ContainsFunc(c.PodsOf(place), func(pod observed.Pod) bool { return pod.Ready && pod.Revisions == nil })
}

// missing says why no pod of the wanted place can be started with all rulesets that it must serve,
// or nil. Running pods continue.
func (c *Converter) missing() *gate.Outcome {
	if !c.Rulesets() {
		return nil // pods of the previous kind stay unchanged
	}
	for _, active := range c.Status.Active {
		elsewhere := names.RevisionOf(active.Revision).Fleet != c.Fleet()
		if elsewhere || active.Revision == c.Wanted || !slices.Contains(c.Served, active.Revision) || c.exists(active.Revision) {
			continue
		}
		where := "ConfigMap " + c.Settings.Namespace + "/" + names.Rulesets(c.Policy.Name)
		if fleet := c.Fleet(); fleet != "" {
			where = "ConverterFleet " + fleet
		}
		if active.ReplacedTime != nil {
			return new(gate.Waiting(v1alpha1.ReasonRollingOut, fmt.Sprintf(
				"%s lacks the previous ruleset %s: waiting until API servers stop requesting it", where, active.Revision)))
		}
		return new(gate.Stalled(v1alpha1.ReasonRulesetLost, fmt.Sprintf(
			"%s lacks the active ruleset %s, or has it in an unreadable form. Running pods still have it and convert. "+
				"To change rules without a failed conversion, put the previous rules back into the policy until it is Ready, and then change them; "+
				"or delete the converter pods: conversions fail until new pods run", where, active.Revision)))
	}
	if bytes := c.storedBytes(); bytes > maxStoredBytes && c.Fleet() == "" {
		return new(gate.Waiting(v1alpha1.ReasonRollingOut, fmt.Sprintf(
			"the current and previous rulesets take %d bytes together, and may take %d: waiting until API servers stop requesting the previous ones", bytes, maxStoredBytes)))
	}
	if len(c.Served) > maxRevisions {
		return new(gate.Waiting(v1alpha1.ReasonRollingOut, fmt.Sprintf(
			"rules changed %d times within %s: waiting until API servers stop requesting the oldest ruleset", len(c.Served)-1, c.Settings.PropagationDelay)))
	}
	return nil
}

// Meanwhile says which revision is still active while another one is desired.
func (c *Converter) Meanwhile() string {
	if !c.replacing() || !c.Answers(c.Named()) {
		return ""
	}
	if c.StoredImage(c.Named()) != nil {
		return fmt.Sprintf("; still uses the previous image, Deployment %s", names.Image(c.Policy.Name, c.Named()))
	}
	return fmt.Sprintf("; still uses the previous ruleset %s", names.RevisionOf(c.Named()).Hash)
}

// Answerable is the revision to restore if no endpoint serves the one that the
// CustomResourceDefinition names: the active one, the desired one, or a previous one. Empty
// if no pod is ready.
func (c *Converter) Answerable() string {
	candidates := []string{c.Wanted}
	for _, active := range c.Status.Active {
		if active.ReplacedTime == nil {
			candidates = slices.Insert(candidates, 0, active.Revision)
		} else {
			candidates = append(candidates, active.Revision)
		}
	}
	for _, hash := range candidates {
		if c.Answers(hash) {
			return hash
		}
	}
	return ""
}

// Answers reports that a ready pod or endpoint serves a revision.
func (c *Converter) Answers(identity string) bool {
	return identity == c.Wanted && slices.ContainsFunc(c.ReadyEndpoints(), func(endpoint observed.Pod) bool { return mayServe(endpoint, identity) }) ||
		c.podHas(identity)
}

// podHas reports that a ready pod of the operator serves a revision, or could have loaded it.
func (c *Converter) podHas(identity string) bool {
	return slices.ContainsFunc(c.Pods, func(pod observed.Pod) bool {
		return pod.Ready && (slices.Contains(pod.Revisions, identity) ||
			pod.Revisions == nil && pod.Fleet == names.RevisionOf(identity).Fleet && c.exists(identity))
	})
}

// mayServe reports that a pod serves a revision, or that it is unknown what the pod serves.
func mayServe(pod observed.Pod, identity string) bool {
	return pod.Revisions == nil || slices.Contains(pod.Revisions, identity)
}

// rulesets is the ConfigMap that pods mount: the desired ruleset and previous ones.
func (c *Converter) rulesets() *corev1apply.ConfigMapApplyConfiguration {
	stored := map[string][]byte{}
	for _, hash := range c.servedAt("") {
		if text := c.stored(hash); text != nil {
			stored[conversion.StoredName(names.Child(c.Policy.Name), hash)] = text
		}
	}
	return corev1apply.ConfigMap(names.Rulesets(c.Policy.Name), c.Settings.Namespace).
		WithLabels(c.Labels(names.ConverterComponent)).WithAnnotations(c.Annotations()).
		WithBinaryData(stored)
}

// stored is a compressed ruleset, no matter where it is stored; nil if it is unknown.
func (c *Converter) stored(identity string) []byte {
	hash := names.RevisionOf(identity).Hash
	for _, stored := range c.Revisions {
		if names.RevisionOf(stored.Hash).Hash == hash && stored.Readable && stored.Image == nil {
			return stored.Stored
		}
	}
	if hash == names.RevisionOf(c.Wanted).Hash {
		return c.ruleset
	}
	return nil
}

// storedBytes is the size of all served rulesets, compressed.
func (c *Converter) storedBytes() int {
	bytes := 0
	for _, hash := range c.servedAt("") {
		bytes += len(c.stored(hash))
	}
	return bytes
}

// lacks reports that a pod with rules is known to lack the desired ruleset.
func (c *Converter) lacks(pod observed.Pod) bool { return !pod.Image && !mayServe(pod, c.Wanted) }

// refreshPods asks the kubelets of pods that lack the desired ruleset to update mounted files. By
// itself, a kubelet takes a minute or two.
func (c *Converter) refreshPods() {
	if !c.exists(c.Wanted) {
		return // it is not written yet, or this was not observed yet
	}
	for _, pod := range c.kind.endpoints() {
		if !pod.Ready || !c.lacks(pod) {
			continue
		}
		c.work.Recheck(loadAgain)
		hash, text, _ := strings.Cut(pod.Ruleset, " ")
		if last, err := time.Parse(time.RFC3339, text); err == nil && hash == c.Wanted && c.Now.Sub(last) < refreshAgain {
			continue
		}
		c.work.Do(step.RefreshPod{Name: pod.Name, Annotation: names.RulesetAnnotation, Value: c.Wanted + " " + c.Now.UTC().Format(time.RFC3339)})
	}
}

// exists reports that pods can be started with a ruleset, or that an image has a Deployment.
func (c *Converter) exists(hash string) bool {
	return slices.ContainsFunc(c.Revisions, func(stored observed.StoredRevision) bool { return stored.Hash == hash && stored.Readable })
}

// ServedRules are the hashes of the served rulesets that are compiled rules.
func (c *Converter) ServedRules() []string {
	return slices.DeleteFunc(slices.Clone(c.Served), func(hash string) bool { return c.StoredImage(hash) != nil })
}

// servedAt are those of the rulesets that a fleet serves, or the pods of the policy.
func (c *Converter) servedAt(fleet string) []string {
	return slices.DeleteFunc(c.ServedRules(), func(identity string) bool { return names.RevisionOf(identity).Fleet != fleet })
}

// namedRuleset is the ruleset hash in the path of the webhook, or empty.
func namedRuleset(crd *apiextensionsv1.CustomResourceDefinition) string {
	service := observed.WebhookService(crd)
	if service == nil || service.Path == nil {
		return ""
	}
	hash, found := strings.CutPrefix(*service.Path, ConvertPath+"/")
	if !found {
		return ""
	}
	return names.RevisionIn(hash, names.FleetOf(service.Name))
}
