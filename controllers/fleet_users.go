// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"reflect"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/fleet"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
)

// fleetUsers remembers which policies use which fleets, as their latest reconciliations saw it: a
// fleet must know the caBundle of every CustomResourceDefinition that it converts for, and those are
// too large to be read for each decision. It is in memory only. After a restart, a fleet knows
// nothing about a policy until the policy is reconciled, and changes no authority until then.
type fleetUsers struct {
	mu       sync.Mutex
	byPolicy map[string]fleetUser
	// wake reconciles a fleet.
	wake func(fleet string)
}

// fleetUser is what one policy does with fleets.
type fleetUser struct {
	// fleets that the policy uses, or that API servers may still call for it.
	fleets []string
	// converts is the fleet that its CustomResourceDefinition converts through, with this caBundle;
	// empty if it is none.
	converts, caBundle string
}

// record remembers what a policy does with fleets, and wakes those for which that is news.
func (u *fleetUsers) record(state *observed.Cluster, fleets []string) {
	now := fleetUser{fleets: fleets, converts: state.NamedFleet()}
	if now.converts != "" {
		now.caBundle = string(state.ActiveCABundle())
	}
	u.set(state.Policy.Name, now)
}

// forget drops a policy that no longer exists.
func (u *fleetUsers) forget(policy string) { u.set(policy, fleetUser{}) }

func (u *fleetUsers) set(policy string, now fleetUser) {
	u.mu.Lock()
	before := u.byPolicy[policy]
	if u.byPolicy == nil {
		u.byPolicy = map[string]fleetUser{}
	}
	u.byPolicy[policy] = now
	if len(now.fleets) == 0 {
		delete(u.byPolicy, policy)
	}
	wake := u.wake
	u.mu.Unlock()
	if wake == nil || reflect.DeepEqual(before, now) {
		return
	}
	changed := slices.Concat(before.fleets, now.fleets)
	slices.Sort(changed)
	for _, name := range slices.Compact(changed) {
		wake(name)
	}
}

// policiesOf returns the policies that use a fleet, sorted by name: those that ask for it, and those
// that are known to use it.
func (u *fleetUsers) policiesOf(name string, all []v1alpha1.ConversionPolicy) []fleet.Policy {
	u.mu.Lock()
	defer u.mu.Unlock()
	found, objects := map[string]fleet.Policy{}, map[string]*v1alpha1.ConversionPolicy{}
	for i := range all {
		if slices.Contains(observed.FleetsOf(&all[i], nil), name) {
			found[all[i].Name] = fleet.Policy{Name: all[i].Name}
		}
		objects[all[i].Name] = &all[i]
	}
	for policy, user := range u.byPolicy {
		if _, asks := found[policy]; !asks && !slices.Contains(user.fleets, name) {
			continue
		}
		of := fleet.Policy{Name: policy, Known: true}
		if user.converts == name {
			of.Converts, of.CABundle = true, []byte(user.caBundle)
		}
		found[policy] = of
	}
	policies := make([]fleet.Policy, 0, len(found))
	for _, policy := range found {
		policy.Object = objects[policy.Name]
		policies = append(policies, policy)
	}
	slices.SortFunc(policies, func(a, b fleet.Policy) int { return cmp.Compare(a.Name, b.Name) })
	return policies
}

// fleetsStoring returns the fleets in whose shards rulesets of a policy are stored.
func fleetsStoring(shards map[string]map[string]*corev1.ConfigMap, policy string) (fleets []string) {
	for name, of := range shards {
		for _, shard := range of {
			if storesFor(shard, names.Child(policy)) {
				fleets = append(fleets, name)
				break
			}
		}
	}
	return fleets
}

// storesFor reports whether a shard has a ruleset of a policy.
func storesFor(shard *corev1.ConfigMap, owner string) bool {
	for key := range shard.BinaryData {
		if of, is := conversion.StoredOwner(key); is && of == owner {
			return true
		}
	}
	return false
}
