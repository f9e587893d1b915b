// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/plan/converter"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
)

// compiledRules remembers what the rules of policies compile to: they are compiled once
// for each generation of a policy and of its CustomResourceDefinition. Results are shared
// by all who ask; they only read them.
type compiledRules struct {
	mu sync.Mutex
	// of has one result for each policy, by name.
	of map[string]compiled
}

type compiled struct {
	generations
	result compile.Result
}

// generations say what was compiled: rules and schemas are in the specs alone.
type generations struct {
	policy, crd                     types.UID
	policyGeneration, crdGeneration int64
}

func (c *compiledRules) result(policy *v1alpha1.ConversionPolicy, crd *apiextensionsv1.CustomResourceDefinition) compile.Result {
	declarative := policy.Spec.Converter.Declarative
	if declarative == nil {
		return compile.Result{}
	}
	of := generations{policy.UID, crd.UID, policy.Generation, crd.Generation}
	c.mu.Lock()
	known, found := c.of[policy.Name]
	c.mu.Unlock()
	if found && known.generations == of {
		return known.result
	}
	result := compile.Compile(crd, declarative)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string]compiled{}
	}
	c.of[policy.Name] = compiled{of, result}
	return result
}

// forget drops what is remembered of a policy that is gone.
func (c *compiledRules) forget(policy string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.of, policy)
}

// storedRulesets remembers which ConfigMaps hold a ruleset that this version of the
// operator can read: each is loaded once for each of its resourceVersions.
type storedRulesets struct {
	mu sync.Mutex
	// of has those of each policy, by name.
	of map[string]map[storedRuleset]bool
}

// storedRuleset is the exact content of a ConfigMap.
type storedRuleset struct {
	name            string
	uid             types.UID
	resourceVersion string
}

// readable reports of each ConfigMap of a policy whether pods can be started with it.
// Those that are no longer there are forgotten.
func (s *storedRulesets) readable(policy string, configMaps []corev1.ConfigMap) []bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.of[policy]
	present, answers := map[storedRuleset]bool{}, make([]bool, len(configMaps))
	for i := range configMaps {
		configMap := &configMaps[i]
		key := storedRuleset{configMap.Name, configMap.UID, configMap.ResourceVersion}
		answer, found := known[key]
		if !found {
			answer = isReadable(configMap)
		}
		present[key], answers[i] = answer, answer
	}
	if s.of == nil {
		s.of = map[string]map[storedRuleset]bool{}
	}
	s.of[policy] = present
	return answers
}

// isReadable reports that a ConfigMap stays, is what its name says, and can be loaded.
func isReadable(configMap *corev1.ConfigMap) bool {
	text := []byte(configMap.Data[converter.RulesetKey])
	if !configMap.DeletionTimestamp.IsZero() || conversion.HashOf(text) != configMap.Labels[names.RevisionLabel] {
		return false
	}
	_, err := conversion.Load(text)
	return err == nil
}

// forget drops what is remembered of a policy that is gone.
func (s *storedRulesets) forget(policy string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, policy)
}
