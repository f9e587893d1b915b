// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"bytes"
	"maps"
	"runtime"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
)

// compiledRules caches compiled rules: they are compiled once for each generation of a policy and
// of its CustomResourceDefinition. Callers share the results and must not change them. The results have no
// Leaves: they take more memory than all else, and nothing decides by them.
type compiledRules struct{ memory[string, compiled] }

type compiled struct {
	generations
	result compile.Result
}

// generations identify the compiled specs, and whether Crossplane writes the CustomResourceDefinition: rules
// and schemas depend on nothing else.
type generations struct {
	policy, crd                     types.UID
	policyGeneration, crdGeneration int64
	composite                       bool
}

func (c *compiledRules) result(policy *v1alpha1.ConversionPolicy, crd *apiextensionsv1.CustomResourceDefinition) compile.Result {
	declarative := policy.Spec.Converter.Declarative
	if declarative == nil {
		return compile.Result{}
	}
	current := generations{policy.UID, crd.UID, policy.Generation, crd.Generation, crds.CompositeOf(crd) != nil}
	known, found := c.get(policy.Name)
	if found && known.generations == current {
		return known.result
	}
	result := compileRules(crd, declarative)
	c.put(policy.Name, compiled{current, result})
	return result
}

// compilations bounds how many rules are compiled at once. A compilation takes the memory of several copies
// of the schemas, and a manager that starts compiles the rules of all policies.
var compilations = make(slots, runtime.GOMAXPROCS(0))

func compileRules(crd *apiextensionsv1.CustomResourceDefinition, rules *v1alpha1.DeclarativeConverter) compile.Result {
	compilations <- struct{}{}
	defer compilations.release()
	result := crds.CompileRules(crd, rules)
	result.Leaves = nil
	return result
}

// storedRulesets caches the rulesets in ConfigMaps, and which of them this version of the operator
// can read. Each resourceVersion is loaded once.
type storedRulesets struct {
	// byPolicy holds the rulesets of each policy, by name.
	byPolicy memory[string, map[configMapVersion][]observed.StoredRevision]
	// shared are the rulesets of each policy that fleets serve, by hash. Only reconciliations of the
	// policy use them.
	shared memory[string, map[string]loaded]
}

// configMapVersion identifies the content of a ConfigMap.
type configMapVersion struct {
	name            string
	uid             types.UID
	resourceVersion string
	deleted         bool
}

// read returns the rulesets in the ConfigMaps of a policy. It forgets ConfigMaps that no longer
// exist.
func (s *storedRulesets) read(policy string, configMaps []corev1.ConfigMap) (all []observed.StoredRevision) {
	known, _ := s.byPolicy.get(policy)
	present := map[configMapVersion][]observed.StoredRevision{}
	for i := range configMaps {
		configMap := &configMaps[i]
		key := configMapVersion{configMap.Name, configMap.UID, configMap.ResourceVersion, !configMap.DeletionTimestamp.IsZero()}
		rulesets, found := known[key]
		if !found {
			rulesets = readRulesets(configMap)
		}
		present[key], all = rulesets, append(all, rulesets...)
	}
	s.byPolicy.put(policy, present)
	return all
}

// readRulesets returns the rulesets in a ConfigMap. None of them is readable if the ConfigMap is
// being deleted.
func readRulesets(configMap *corev1.ConfigMap) (all []observed.StoredRevision) {
	for _, key := range slices.Sorted(maps.Keys(configMap.BinaryData)) {
		hash, is := conversion.StoredHash(key)
		if !is {
			continue
		}
		stored := configMap.BinaryData[key]
		_, err := conversion.LoadStored(hash, stored)
		all = append(all, observed.StoredRevision{Hash: hash, Readable: err == nil && configMap.DeletionTimestamp.IsZero(), Stored: stored, ConfigMap: configMap.Name})
	}
	return all
}

// readShard adds the rulesets of a policy that are in a shard of a fleet. Each content is loaded
// once, although the shard changes with the rulesets of other policies.
func (s *storedRulesets) readShard(policy, fleet string, shard *corev1.ConfigMap) (all []observed.StoredRevision) {
	child := names.Child(policy)
	s.shared.add(policy, map[string]loaded{})
	before, _ := s.shared.get(policy)
	for key, stored := range shard.BinaryData {
		hash, is := conversion.StoredHash(key)
		if owner, _ := conversion.StoredOwner(key); !is || owner != child {
			continue
		}
		known, found := before[hash]
		if !found || !bytes.Equal(known.stored, stored) {
			_, err := conversion.LoadStored(hash, stored)
			known = loaded{bytes.Clone(stored), err == nil}
			before[hash] = known
		}
		all = append(all, observed.StoredRevision{Hash: names.RevisionIn(hash, fleet),
			Readable: known.readable && shard.DeletionTimestamp.IsZero(), Stored: known.stored, ConfigMap: shard.Name})
	}
	return all
}

// loaded tells whether this version of the operator can read a ruleset.
type loaded struct {
	stored   []byte
	readable bool
}

// forget drops the rulesets of a deleted policy.
func (s *storedRulesets) forget(policy string) {
	s.byPolicy.forget(policy)
	s.shared.forget(policy)
}
