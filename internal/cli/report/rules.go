// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/cli/rulekinds"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
)

// rule is a rule of the policy. One of a group is a rule for each use of the group.
type rule struct {
	Kind  *rulekinds.Kind
	Spoke string
	// Number counts the rules of a spoke from 1.
	number int
	// Place is the field of the policy, for a rule of a group also that of the rule that uses it.
	Place string
	// Text is the rule in YAML, with all paths from the root of the object.
	Text string
}

// Label is the name of the rule in drawings.
func (r *rule) Label() string { return fmt.Sprint(r.number) }

// ID is the ID of the rule's HTML element.
func (r *rule) ID() string { return fmt.Sprintf("rule-%s-%d", r.Spoke, r.number) }

// spokeRules are the rules of one spoke.
type spokeRules struct {
	Spoke string
	Rules []*rule
}

func rulesOf(policy *v1alpha1.ConversionPolicy) []spokeRules {
	declarative := policy.Spec.Converter.Declarative
	if declarative == nil {
		return nil
	}
	var all []spokeRules
	for i, spoke := range declarative.Spokes {
		of := spokeRules{Spoke: string(spoke.Version)}
		for j, compiled := range compile.Rules(declarative, i) {
			of.Rules = append(of.Rules, &rule{
				Kind: rulekinds.Of(&compiled.Rule), Spoke: of.Spoke, number: j + 1, Place: compiled.At, Text: textOf(&compiled.Rule),
			})
		}
		all = append(all, of)
	}
	return all
}

func textOf(rule *v1alpha1.Rule) string {
	text, err := yaml.Marshal(rule)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
