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

// compiledRules caches compiled rules: they are compiled once for each generation of a policy and
// of its CustomResourceDefinition. Callers share the results and must not change them.
type compiledRules struct {
	mu sync.Mutex
	// byPolicy holds one result for each policy, by name.
	byPolicy map[string]compiled
}

type compiled struct {
	generations
	result compile.Result
}

// generations identify the compiled specs: rules and schemas depend on nothing else.
type generations struct {
	policy, crd                     types.UID
	policyGeneration, crdGeneration int64
}

func (c *compiledRules) result(policy *v1alpha1.ConversionPolicy, crd *apiextensionsv1.CustomResourceDefinition) compile.Result {
	declarative := policy.Spec.Converter.Declarative
	if declarative == nil {
		return compile.Result{}
	}
	current := generations{policy.UID, crd.UID, policy.Generation, crd.Generation}
	c.mu.Lock()
	known, found := c.byPolicy[policy.Name]
	c.mu.Unlock()
	if found && known.generations == current {
		return known.result
	}
	result := compile.Compile(crd, declarative)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byPolicy == nil {
		c.byPolicy = map[string]compiled{}
	}
	c.byPolicy[policy.Name] = compiled{current, result}
	return result
}

// forget drops the result of a deleted policy.
func (c *compiledRules) forget(policy string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byPolicy, policy)
}

// storedRulesets caches which ConfigMaps hold a ruleset that this version of the operator can
// read. Each resourceVersion is loaded once.
type storedRulesets struct {
	mu sync.Mutex
	// byPolicy holds the answers for each policy, by name.
	byPolicy map[string]map[storedRuleset]bool
}

// storedRuleset identifies the content of a ConfigMap.
type storedRuleset struct {
	name            string
	uid             types.UID
	resourceVersion string
}

// readable reports for each ConfigMap of a policy whether pods can start with it. It forgets
// ConfigMaps that no longer exist.
func (s *storedRulesets) readable(policy string, configMaps []corev1.ConfigMap) []bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.byPolicy[policy]
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
	if s.byPolicy == nil {
		s.byPolicy = map[string]map[storedRuleset]bool{}
	}
	s.byPolicy[policy] = present
	return answers
}

// isReadable reports whether a ConfigMap is not being deleted, matches the hash in its label, and
// can be loaded.
func isReadable(configMap *corev1.ConfigMap) bool {
	text := []byte(configMap.Data[converter.RulesetKey])
	if !configMap.DeletionTimestamp.IsZero() || conversion.HashOf(text) != configMap.Labels[names.RevisionLabel] {
		return false
	}
	_, err := conversion.Load(text)
	return err == nil
}

// forget drops the answers for a deleted policy.
func (s *storedRulesets) forget(policy string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byPolicy, policy)
}
