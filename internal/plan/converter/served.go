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

// Converter pods carry several plans while rules change: the wanted one; the one
// that the CustomResourceDefinition names, no matter who wrote that; and those that it
// named until a moment ago, for API servers that have not seen the change. So
// whatever an API server asks for is answered, and by the rules that it asked for.
// The order of a change:
//
//  1. pods are replaced by pods that carry the new plan besides the old
//  2. no pod without the new plan is left, not even one that is ending
//  3. every pod has proven the new plan
//  4. the CustomResourceDefinition is written, once, to name the new plan
//  5. when API servers have had the time to follow, pods are replaced by pods
//     that carry the new plan only
//
// Each of these is decided from what is observed and from status.activeRevisions. So
// it does not matter where a manager ended, and going back is a change like any.

// maxRevisions bounds the plans of a pod, where rules change again and again before
// API servers can have followed. The next change waits.
const maxRevisions = 4

// rememberActive keeps status.activeRevisions: the plan that the CustomResourceDefinition
// names, and those that it named, for as long as API servers may ask for them.
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
		// No API server asks for the previous converter any more.
		c.EverActive = false
		c.Status.ActiveCRD, c.Status.Webhook = "", nil
	}
}

// recordActive records that the CustomResourceDefinition names a plan, and so no
// other. What no one has is not one.
func (c *Converter) recordActive(hash string) {
	recorded := hash == "" || hash != c.Wanted && !c.exists(hash) && !slices.ContainsFunc(c.Pods, func(pod observed.Pod) bool { return slices.Contains(pod.Revisions, hash) })
	plans := c.Status.Active
	for i := range plans {
		switch {
		case plans[i].Revision == hash:
			plans[i].ReplacedTime, recorded = nil, true
		case plans[i].ReplacedTime == nil:
			plans[i].ReplacedTime = &metav1.Time{Time: c.Now}
		}
	}
	if !recorded {
		c.Status.Active = append(c.Status.Active, v1alpha1.ActiveRevision{Revision: hash})
	}
}

// serve decides which plans converter pods must serve.
func (c *Converter) serve() {
	if c.Wanted != "" {
		c.Served = append(c.Served, c.Wanted)
	}
	var asked []string
	for _, active := range c.Status.Active {
		asked = append(asked, active.Revision)
	}
	if c.Active {
		asked = append(asked, c.Named())
	}
	for _, hash := range asked {
		// If no pod has a plan and none can be started with it, nothing is left to keep.
		if c.exists(hash) || c.Answers(hash) {
			c.Served = append(c.Served, hash)
		}
	}
	slices.Sort(c.Served)
	c.Served = slices.Compact(c.Served)
}

// missing says why no pod can be started with all the plans that it must carry,
// or nil. The pods that run go on.
func (c *Converter) missing() *gate.Outcome {
	if !c.Rulesets() {
		return nil // previous pods are left unchanged
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

// Meanwhile says which rules are in force while others are wanted.
func (c *Converter) Meanwhile() string {
	if !c.replacing() || !c.Answers(c.Named()) {
		return ""
	}
	if c.StoredImage(c.Named()) != nil {
		return fmt.Sprintf("; still uses the previous image, Deployment %s", names.Image(c.Policy.Name, c.Named()))
	}
	return fmt.Sprintf("; still uses the previous ruleset %s", c.Named())
}

// Answerable is the plan to name where the CustomResourceDefinition names none
// that is answered: the one that it named, or else the wanted one, or else any of
// before. Empty where no pod is ready.
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

// Answers reports whether a ready pod has the ruleset, or is the converter of that
// identity.
func (c *Converter) Answers(identity string) bool {
	return identity == c.Wanted && len(c.ReadyEndpoints()) > 0 || c.podHas(identity)
}

// podHas reports whether a ready pod of ours is the converter of that identity.
func (c *Converter) podHas(identity string) bool {
	return slices.ContainsFunc(c.Pods, func(pod observed.Pod) bool { return pod.Ready && slices.Contains(pod.Revisions, identity) })
}

// exists reports whether pods can be started with the plan, or have a Deployment.
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
