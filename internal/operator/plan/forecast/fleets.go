// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// Fleet is a ConverterFleet. Its pods, and the rulesets of the policy in its shards, are in the state of the
// cluster.
type Fleet struct {
	Spec        v1alpha1.ConverterFleetSpec
	Deleted     bool
	Certificate *corev1.Secret
	// Others are the bytes in each shard that other policies take.
	Others int
	// Replicas is the number of its pods; 0 for fleetPods.
	Replicas int32
}

// fleetPods is the number of pods of a new fleet.
const fleetPods = 3

// CreateFleet lets the pods of a fleet start.
func (c *Cluster) CreateFleet(name string) {
	c.Fleets[name] = &Fleet{Certificate: c.IssueForFleet(name)}
	if !c.HoldBack {
		c.startFleet(name)
	}
}

func (c *Cluster) startFleet(name string) {
	for i := range fleetPods {
		c.State.Pods = append(c.State.Pods, observed.Pod{Name: fmt.Sprintf("%s-%d", name, i), Fleet: name,
			Revisions: c.StoredRulesets(name), Ready: true, Scheduled: true})
	}
}

// IssueForFleet returns a Secret for the pods of a fleet to mount, with a certificate of a new authority.
func (c *Cluster) IssueForFleet(name string) *corev1.Secret {
	_, serving, _ := names.FleetSecrets(name)
	_, secret := c.issued(serving, names.FleetServerName(name, c.State.Settings.Namespace))
	return secret
}

// ofFleets are the pods of all fleets, and the rulesets of the policy in their shards.
func (c *Cluster) ofFleets() (pods []observed.Pod, revisions []observed.StoredRevision) {
	for _, pod := range c.State.Pods {
		if pod.Fleet != "" {
			pods = append(pods, pod)
		}
	}
	for _, stored := range c.State.Revisions {
		if stored.Fleet() != "" {
			revisions = append(revisions, stored)
		}
	}
	return pods, revisions
}

// storeInFleet changes shards as the controller does.
func (c *Cluster) storeInFleet(s step.StoreRulesets) {
	state := c.State
	for _, old := range slices.Concat(s.Remove, s.Add) {
		state.Revisions = slices.DeleteFunc(state.Revisions, func(stored observed.StoredRevision) bool {
			return stored.Hash == names.RevisionIn(old.Hash, s.Fleet) && stored.ConfigMap == old.ConfigMap
		})
	}
	for _, add := range s.Add {
		state.Revisions = append(state.Revisions, observed.StoredRevision{Hash: names.RevisionIn(add.Hash, s.Fleet), Readable: true, Stored: add.Stored, ConfigMap: add.ConfigMap})
	}
}

// observeFleets observes the fleets that matter to the policy, and probes the pods that it wants, as
// the controller does. What else pods have is not known to be proven.
func (c *Cluster) observeFleets() {
	if c.Fleets == nil {
		return
	}
	state, wanted := c.State, observed.FleetOf(c.State.Policy)
	switch before := c.place; {
	case before == "" && wanted != "":
		state.OwnCertificate = state.Certificate
	case before != "" && wanted == "":
		state.Certificate, state.OwnCertificate = state.OwnCertificate, nil
	}
	c.place = wanted
	if wanted != "" {
		state.Certificate = nil
		if there := c.Fleets[wanted]; there != nil {
			state.Certificate = there.Certificate
		}
	}
	used := observed.FleetsOf(state.Policy, state.CRD)
	for _, stored := range state.Revisions {
		if fleet := stored.Fleet(); fleet != "" && !slices.Contains(used, fleet) {
			used = append(used, fleet)
		}
	}
	state.Fleets = nil
	for _, name := range used {
		state.Fleets = append(state.Fleets, c.observeFleet(name))
	}
	c.probeFleets(wanted)
}

func (c *Cluster) observeFleet(name string) observed.Fleet {
	there := c.Fleets[name]
	if there == nil {
		return observed.Fleet{Name: name}
	}
	of := observed.Fleet{Name: name, Found: true, Exists: !there.Deleted, Spec: there.Spec, Replicas: cmp.Or(there.Replicas, fleetPods), Certificate: there.Certificate, Evictable: 1}
	for _, pod := range c.State.Pods {
		if pod.Fleet == name && pod.Ready {
			of.Endpoints++
		}
	}
	for number := range of.Shards {
		of.Shards[number] = there.Others
		for _, stored := range c.State.Revisions {
			if stored.ConfigMap == names.Shard(name, number) {
				of.Shards[number] += len(stored.Stored)
			}
		}
	}
	return of
}

// probeFleets probes the ready pods of the wanted place by what they will be asked for.
func (c *Cluster) probeFleets(wanted string) {
	if c.State.CRD == nil {
		return
	}
	asked := names.RevisionIn(plan.TrustOf(*c.State).RulesetHash, wanted)
	for i := range c.State.Pods {
		switch pod := &c.State.Pods[i]; {
		case pod.Image:
		case !pod.Ready || pod.Fleet != wanted || asked == "" || c.State.Certificate == nil:
			pod.Proof = nil
		case c.Misbehave == "" && !slices.Contains(pod.Revisions, asked):
			pod.Proof = &observed.Proof{Reason: v1alpha1.ReasonWrongRuleset, Message: "it does not serve the ruleset"}
		default:
			pod.Proof = c.proof()
		}
	}
}

// loadInFleet lets the pods of a fleet load the stored rulesets.
func (c *Cluster) loadInFleet(s step.AwaitRuleset) {
	for i := range c.State.Pods {
		if pod := &c.State.Pods[i]; pod.Fleet == s.Fleet && !c.HoldBack && !c.Lies {
			pod.Revisions = c.StoredRulesets(pod.Fleet)
			c.tell("  %s loads %s", pod.Name, strings.Join(pod.Revisions, " and "))
		}
	}
}
