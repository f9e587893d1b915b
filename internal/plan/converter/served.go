// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converter

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/observed"
)

// Converter pods serve several rulesets while rules change: the desired one; the one that the
// CustomResourceDefinition names, no matter who wrote it; and previous ones, for API servers
// that have not seen the change yet. Every request is answered by the ruleset that it names.
// The order of a change:
//
//  1. pods are replaced by pods that serve the new ruleset and the previous ones
//  2. all pods without the new ruleset have terminated
//  3. every pod has been verified with the new ruleset
//  4. the CustomResourceDefinition is changed, once, to name the new ruleset
//  5. after the propagation delay, pods are replaced by pods that serve only the new ruleset
//
// Each step is decided from the observed cluster and status.activeRevisions. Another manager
// can therefore continue at any step, and a rollback is a change like any other.

// maxRevisions limits the rulesets of a pod. If rules change more often within the propagation
// delay, the next change waits.
const maxRevisions = 4

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
		if active.ReplacedTime == nil {
			return false
		}
		left := active.ReplacedTime.Add(c.Settings.PropagationDelay).Sub(c.Now)
		if left > 0 {
			c.work.Recheck(left)
		}
		return left <= 0
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
	var requested []string
	for _, active := range c.Status.Active {
		requested = append(requested, active.Revision)
	}
	if c.Active {
		requested = append(requested, c.Named())
	}
	for _, hash := range requested {
		// A ruleset that no pod has, and that none can be started with, is lost.
		if c.exists(hash) || c.Answers(hash) {
			c.Served = append(c.Served, hash)
		}
	}
	slices.Sort(c.Served)
	c.Served = slices.Compact(c.Served)
}

// missing says why no pod can be started with all rulesets that it must serve, or nil. Running
// pods continue.
func (c *Converter) missing() *gate.Outcome {
	if !c.Rulesets() {
		return nil // pods of the previous kind stay unchanged
	}
	for _, active := range c.Status.Active {
		if active.Revision == c.Wanted || !slices.Contains(c.Served, active.Revision) || c.exists(active.Revision) {
			continue
		}
		configMap := c.Settings.Namespace + "/" + names.Ruleset(c.Policy.Name, active.Revision)
		if active.ReplacedTime != nil {
			return new(gate.Waiting(v1alpha1.ReasonRollingOut, fmt.Sprintf(
				"ConfigMap %s with the previous ruleset is gone: waiting until API servers stop requesting it", configMap)))
		}
		return new(gate.Stalled(v1alpha1.ReasonRulesetLost, fmt.Sprintf(
			"ConfigMap %s with the active ruleset is missing or unreadable. Running pods still have it and convert. "+
				"To change rules without a failed conversion, put the previous rules back into the policy until it is Ready, and then change them; "+
				"or delete the converter pods: conversions fail until new pods run", configMap)))
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
	return fmt.Sprintf("; still uses the previous ruleset %s", c.Named())
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
	return identity == c.Wanted && len(c.ReadyEndpoints()) > 0 || c.podHas(identity)
}

// podHas reports that a ready pod of the operator serves a revision.
func (c *Converter) podHas(identity string) bool {
	return slices.ContainsFunc(c.Pods, func(pod observed.Pod) bool { return pod.Ready && slices.Contains(pod.Revisions, identity) })
}

// exists reports that pods can be started with a ruleset, or that an image has a Deployment.
func (c *Converter) exists(hash string) bool {
	return slices.ContainsFunc(c.Revisions, func(stored observed.StoredRevision) bool { return stored.Hash == hash && stored.Readable })
}

// ServedRules are the hashes of the served rulesets that are compiled rules.
func (c *Converter) ServedRules() []string {
	return slices.DeleteFunc(slices.Clone(c.Served), func(hash string) bool { return c.StoredImage(hash) != nil })
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
	return hash
}
