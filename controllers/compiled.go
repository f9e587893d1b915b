// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion/compile"
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
