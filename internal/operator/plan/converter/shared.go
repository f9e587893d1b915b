// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converter

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/pki"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/gate"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/step"
)

// A fleet serves the rules of many policies. Its pods mount a fixed number of ConfigMaps, the
// shards, which may or may not exist, so that its pod template does not change with the policies.
// A policy adds its rulesets to a shard and removes them from there, each by its own key, so that
// policies do not write over each other. Everything else is as for pods of the policy alone
// (served.go): a ruleset is stored, loaded, and proven by every ready pod before the
// CustomResourceDefinition names it, and it is removed when API servers no longer request it.
//
// A policy that moves between a fleet and pods of its own, or between fleets, has another
// revision: the hash of the ruleset stays, and the place changes. Both places serve until API
// servers have seen the change of the CustomResourceDefinition.

// maxShardBytes limits the rulesets in a shard, compressed. API servers refuse a ConfigMap of more
// than 1 MiB.
const maxShardBytes = 900 << 10

// roomAgain is the time after which a full fleet is looked at again: other policies may have left.
const roomAgain = time.Minute

// enough pods of a fleet must be ready before another policy uses it.
const enough = 2

// shared is the kind of a policy with rules that a fleet serves.
type shared struct{ rules }

// Fleet is the name of the fleet that the policy wants; empty for pods of its own.
func (c *Converter) Fleet() string { return observed.FleetOf(c.Policy) }

func (shared) prepare() {}

func (shared) deployment() *appsv1apply.DeploymentApplyConfiguration { return nil }

// FleetExists is a gate: the fleet that the policy wants exists, and has room for the ruleset. It
// comes before the certificates, which the fleet issues.
func (c *Converter) FleetExists() gate.Decision { return c.work.Decide(c.fleetExists()) }

func (c *Converter) fleetExists() gate.Outcome {
	full := c.store()
	if c.Fleet() == "" {
		return gate.Outcome{}
	}
	fleet := c.FleetNamed(c.Fleet())
	if fleet.Exists && (full == nil || c.exists(c.Wanted)) {
		return gate.Outcome{}
	}
	c.work.Add(c.ReleaseFleets(c.kept()...)) // which a later gate does otherwise
	switch byDefault := fleet.Name == string(v1alpha1.DefaultFleet); {
	case fleet.Exists:
		c.work.Recheck(roomAgain)
		full.Message += c.Meanwhile()
		return *full
	case !fleet.Found && byDefault:
		c.work.Do(step.CreateFleet{Name: fleet.Name})
		c.work.Recheck(loadAgain)
		return gate.Waiting(v1alpha1.ReasonRollingOut, "creating ConverterFleet "+fleet.Name+c.Meanwhile())
	case !fleet.Found:
		return gate.Stalled(v1alpha1.ReasonFleetUnavailable, fmt.Sprintf(
			"ConverterFleet %s does not exist: create it, or correct spec.workload.fleet.name", fleet.Name)+c.Meanwhile())
	}
	c.work.Recheck(loadAgain)
	return gate.Waiting(v1alpha1.ReasonFleetUnavailable, fmt.Sprintf(
		"ConverterFleet %s is being created or deleted: if it is being deleted, name another one in spec.workload.fleet", fleet.Name)+c.Meanwhile())
}

// available passes if ready pods of the fleet have the desired ruleset: all of them before the
// CustomResourceDefinition names it, and one of them afterwards.
func (s shared) available() gate.Outcome {
	fleet := s.FleetNamed(s.Fleet())
	s.awaitPods()
	desired, current, others := s.countPods()
	s.reportPods(desired, current)
	switch missing := s.missing(); {
	case missing != nil && (others > 0 || current == 0 || !s.exists(s.Wanted)):
		return *missing
	case !s.exists(s.Wanted):
		return gate.Waiting(v1alpha1.ReasonRollingOut, "storing the current ruleset for ConverterFleet "+fleet.Name+s.Meanwhile())
	case !s.InCharge() && (others > 0 || current < min(desired, enough) && s.fromElsewhere()):
		return gate.Waiting(v1alpha1.ReasonRollingOut, fmt.Sprintf(
			"%d of %d converter pods of ConverterFleet %s are ready with the current ruleset", current, desired, fleet.Name)+s.refused()+s.troubles()+s.Meanwhile())
	case current == 0:
		return s.noPodReady(names.Fleet(fleet.Name))
	case fleet.Endpoints == 0:
		s.work.Recheck(endpointLag)
		return gate.Waiting(v1alpha1.ReasonRollingOut, fmt.Sprintf(
			"Service %s/%s has no ready endpoint yet", s.Settings.Namespace, names.Fleet(fleet.Name)))
	}
	s.work.Add(s.DropUnused())
	return s.podsReady(current, desired)
}

// store adds the served rulesets to the shards of their fleets. A fleet that is being deleted gets
// only those that API servers may request. It returns an outcome if a fleet has no room.
func (c *Converter) store() (full *gate.Outcome) {
	for _, fleet := range c.Fleets {
		stores := step.StoreRulesets{Fleet: fleet.Name, Owner: names.Child(c.Policy.Name)}
		for _, identity := range c.servedAt(fleet.Name) {
			text := c.stored(identity)
			mayAdd := c.requested(identity) && fleet.Found || fleet.Exists && len(c.Served) <= maxRevisions
			if text == nil || c.exists(identity) || !mayAdd {
				continue
			}
			number, found := roomIn(fleet, len(text))
			if !found {
				full = new(gate.Stalled(v1alpha1.ReasonFleetUnavailable, fmt.Sprintf(
					"ConverterFleet %s has no room for the ruleset of %d bytes: create another ConverterFleet, and name it in spec.workload.fleet; or set spec.workload to {type: Dedicated}",
					fleet.Name, len(text))))
				continue
			}
			fleet.Shards[number] += len(text)
			stores.Add = append(stores.Add, step.StoredRuleset{ConfigMap: names.Shard(fleet.Name, number), Hash: names.RevisionOf(identity).Hash, Stored: text})
		}
		if len(stores.Add) > 0 {
			c.work.Do(stores)
		}
	}
	return full
}

// awaitAgain is the time after which the wait for pods is repeated, for example because the manager
// that waited has ended.
const awaitAgain = 10 * time.Second

// awaitPods has the pods of the fleet load the desired ruleset. A policy does not ask the pods and
// their kubelets itself: with many policies, these would be asked the same all the time.
func (s shared) awaitPods() {
	if s.stored(s.Wanted) == nil || !slices.ContainsFunc(s.endpoints(), func(pod observed.Pod) bool { return pod.Ready && !slices.Contains(pod.Revisions, s.Wanted) }) {
		return
	}
	s.work.Do(step.AwaitRuleset{Fleet: s.Fleet(), Hash: s.Ruleset()})
	s.work.Recheck(awaitAgain)
}

// requested reports that API servers may request a revision.
func (c *Converter) requested(identity string) bool {
	return slices.ContainsFunc(c.Status.Active, func(active v1alpha1.ActiveRevision) bool { return active.Revision == identity })
}

// roomIn returns the first shard that has room for a ruleset.
func roomIn(fleet observed.Fleet, bytes int) (number int, found bool) {
	number = slices.IndexFunc(fleet.Shards[:], func(size int) bool { return size == 0 || size+bytes <= maxShardBytes })
	return number, number >= 0
}

// ReleaseFleets removes the rulesets of the policy from fleets, except those to keep.
func (c *Converter) ReleaseFleets(keep ...string) (work gate.Work) {
	for _, stored := range c.Revisions {
		if revision := names.RevisionOf(stored.Hash); revision.Fleet != "" && !slices.Contains(keep, stored.Hash) {
			work.Do(step.StoreRulesets{Fleet: revision.Fleet, Owner: names.Child(c.Policy.Name),
				Remove: []step.StoredRuleset{{ConfigMap: stored.ConfigMap, Hash: revision.Hash}}})
		}
	}
	return work
}

// CABundleOf has the authorities by which API servers must verify the pods of a revision.
func (c *Converter) CABundleOf(identity string) []byte {
	if c.AtWantedPlace(identity) {
		return c.CABundle()
	}
	if certificate := c.CertificateAt(names.RevisionOf(identity).Fleet); certificate != nil {
		return certificate.Data[observed.CAKey]
	}
	return nil
}

// AtWantedPlace reports that the pods of a revision are those that the policy wants, of a fleet or
// of its own.
func (c *Converter) AtWantedPlace(identity string) bool {
	return names.RevisionOf(identity).Fleet == c.Fleet()
}

// CertificateAt is the Secret that pods mount, of a fleet or of the policy alone; nil if there is
// none.
func (c *Converter) CertificateAt(fleet string) *corev1.Secret {
	switch fleet {
	case c.Fleet():
		return c.Certificate
	case "":
		return c.OwnCertificate
	}
	return c.FleetNamed(fleet).Certificate
}

// Certified reports that API servers which trust CABundleOf a revision accept the certificate of its
// pods.
func (c *Converter) Certified(identity string) bool {
	fleet := names.RevisionOf(identity).Fleet
	certificate := c.CertificateAt(fleet)
	trusted, err := pki.ParseBundle(c.CABundleOf(identity))
	return err == nil && certificate != nil && pki.CheckLeaf(observed.KeyPair(certificate), trusted, c.ServerNameAt(fleet), c.Now) == nil
}

// NamesPlace reports that the CustomResourceDefinition converts through the pods that the policy
// wants, of a fleet or of its own, and so trusts their certificates.
func (c *Converter) NamesPlace() bool { return c.CRD != nil && c.NamedFleet() == c.Fleet() }

// podsName is the name of the Deployment and the PodDisruptionBudget of the pods.
func (c *Converter) podsName() string {
	if fleet := c.Fleet(); fleet != "" {
		return names.Fleet(fleet)
	}
	return names.Child(c.Policy.Name)
}

// replicas is the wanted number of pods.
func (c *Converter) replicas() int32 {
	if fleet := c.Fleet(); fleet != "" {
		return c.FleetNamed(fleet).Replicas
	}
	return c.workload().Replicas()
}

// evictable is the number of pods that the PodDisruptionBudget allows to evict now.
func (c *Converter) evictable() int {
	if fleet := c.Fleet(); fleet != "" {
		return c.FleetNamed(fleet).Evictable
	}
	return c.Evictable
}
