// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// Converter pods carry several plans while rules change: the wanted one; the one
// that the CustomResourceDefinition names, whoever wrote that; and those that it
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
// Each of these is decided from what is observed and from status.armedPlans. So
// it does not matter where a manager ended, and going back is a change like any.

// maxPlans bounds the plans of a pod, where rules change again and again before
// API servers can have followed. The next change waits.
const maxPlans = 4

// rememberArmed keeps status.armedPlans: the plan that the CustomResourceDefinition
// names, and those that it named, for as long as API servers may ask for them.
func (s *state) rememberArmed() {
	if !s.engaged {
		s.plan.Status.ArmedPlans = nil
		return
	}
	if s.inForce() && !s.drifted {
		s.recordArmed(s.named())
	}
	s.plan.Status.ArmedPlans = slices.DeleteFunc(s.plan.Status.ArmedPlans, func(armed v1alpha1.ArmedPlan) bool {
		if armed.ReplacedTime == nil {
			return false
		}
		left := armed.ReplacedTime.Add(s.Settings.Settle).Sub(s.Now)
		if left > 0 {
			s.recheck(left)
		}
		return left <= 0
	})
	s.forget()
}

// recordArmed records that the CustomResourceDefinition names a plan, and so no
// other. What nobody has is not one.
func (s *state) recordArmed(hash string) {
	recorded := hash == "" || hash != s.planHash && !s.exists(hash) && !slices.ContainsFunc(s.Pods, func(pod Pod) bool { return slices.Contains(pod.Plans, hash) })
	plans := s.plan.Status.ArmedPlans
	for i := range plans {
		switch {
		case plans[i].Hash == hash:
			plans[i].ReplacedTime, recorded = nil, true
		case plans[i].ReplacedTime == nil:
			plans[i].ReplacedTime = &metav1.Time{Time: s.Now}
		}
	}
	if !recorded {
		s.plan.Status.ArmedPlans = append(s.plan.Status.ArmedPlans, v1alpha1.ArmedPlan{Hash: hash})
	}
}

// carry decides which plans converter pods must serve.
func (s *state) carry() {
	if s.planHash != "" {
		s.carried = append(s.carried, s.planHash)
	}
	var asked []string
	for _, armed := range s.plan.Status.ArmedPlans {
		asked = append(asked, armed.Hash)
	}
	if s.armed {
		asked = append(asked, s.named())
	}
	for _, hash := range asked {
		// Where no pod has a plan and none can be started with it, nothing is left to keep.
		if s.exists(hash) || s.answers(hash) {
			s.carried = append(s.carried, hash)
		}
	}
	slices.Sort(s.carried)
	s.carried = slices.Compact(s.carried)
}

// missing says why no pod can be started with all the plans that it must carry,
// or nil. The pods that run go on.
func (s *state) missing() *outcome {
	if s.Policy.Spec.Converter.Declarative == nil {
		return nil // pods of before are left as they are
	}
	for _, armed := range s.plan.Status.ArmedPlans {
		if armed.Hash == s.planHash || !slices.Contains(s.carried, armed.Hash) || s.exists(armed.Hash) {
			continue
		}
		configMap := s.Settings.Namespace + "/" + PlanName(s.Policy.Name, armed.Hash)
		if armed.ReplacedTime != nil {
			return new(waiting(v1alpha1.ReasonRollingOut, fmt.Sprintf(
				"ConfigMap %s with the rules of before is gone: waits until no API server asks for them", configMap)))
		}
		return new(stalled(v1alpha1.ReasonPlanLost, fmt.Sprintf(
			"ConfigMap %s with the rules by which the CustomResourceDefinition converts is gone or unreadable. Running pods still have them, and convert. "+
				"To change rules without a failed conversion, put the rules of before back into the policy until it is Ready, and then change them; "+
				"or delete the converter pods, and conversions fail until others run", configMap)))
	}
	if len(s.carried) > maxPlans {
		return new(waiting(v1alpha1.ReasonRollingOut, fmt.Sprintf(
			"rules were changed %d times within %s: waits until no API server asks for the oldest", len(s.carried)-1, s.Settings.Settle)))
	}
	return nil
}

// replacing reports whether the CustomResourceDefinition is to name another plan.
func (s *state) replacing() bool { return s.armed && s.named() != s.planHash }

// meanwhile says which rules are in force while others are wanted.
func (s *state) meanwhile() string {
	if !s.replacing() || !s.answers(s.named()) {
		return ""
	}
	if s.storedImage(s.named()) != nil {
		return fmt.Sprintf("; meanwhile the CustomResourceDefinition converts through the image of before, Deployment %s", ImageName(s.Policy.Name, s.named()))
	}
	return fmt.Sprintf("; meanwhile the CustomResourceDefinition converts by the rules of before, plan %s", s.named())
}

// answerable is the plan to name where the CustomResourceDefinition names none
// that is answered: the one that it named, or else the wanted one, or else any of
// before. Empty where no pod is ready.
func (s *state) answerable() string {
	candidates := []string{s.planHash}
	for _, armed := range s.plan.Status.ArmedPlans {
		if armed.ReplacedTime == nil {
			candidates = slices.Insert(candidates, 0, armed.Hash)
		} else {
			candidates = append(candidates, armed.Hash)
		}
	}
	for _, hash := range candidates {
		if s.answers(hash) {
			return hash
		}
	}
	return ""
}

// answers reports whether a ready pod has the plan, or is the converter of that
// identity.
func (s *state) answers(hash string) bool {
	if s.external() && hash == s.planHash {
		return slices.ContainsFunc(s.External.Endpoints, func(endpoint Pod) bool { return endpoint.Ready })
	}
	return slices.ContainsFunc(s.Pods, func(pod Pod) bool { return pod.Ready && slices.Contains(pod.Plans, hash) })
}

// exists reports whether pods can be started with the plan, or have a Deployment.
func (s *state) exists(hash string) bool {
	return slices.ContainsFunc(s.Plans, func(stored StoredPlan) bool { return stored.Hash == hash && stored.Readable })
}

// rules are the hashes of the carried plans that are compiled rules.
func (s *state) rules() []string {
	return slices.DeleteFunc(slices.Clone(s.carried), func(hash string) bool { return s.storedImage(hash) != nil })
}

// namedPlan is the hash of the plan in the path of the webhook, or empty.
func namedPlan(crd *apiextensionsv1.CustomResourceDefinition) string {
	service := webhookService(crd)
	if service == nil || service.Path == nil {
		return ""
	}
	hash, found := strings.CutPrefix(*service.Path, ConvertPath+"/")
	if !found {
		return ""
	}
	return hash
}
