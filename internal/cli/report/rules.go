// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
)

// kind of a link: the kind of its rule, or the result for a field without one.
type kind struct {
	Name string
	// Class is the style of its line, which several kinds share.
	Class string
	// Does describes it, and Keeps the values that it nevertheless preserves.
	Does, Keeps string
}

var kinds = map[string]kind{
	"":          {"unknown", "computed", "A newer version of conversion-operator has this rule.", ""},
	"move":      {"move", "copied", "The same value at another path.", "a value that cannot stand at the other path, such as a null"},
	"format":    {"format", "translated", "One string of the spoke is several fields of the hub, by a template.", "a string that the template does not parse, or would print differently"},
	"values":    {"values", "translated", "A table maps one value to another.", "a value that would come back as another one, or that is not in the table"},
	"each":      {"each", "translated", "The elements of a list or map are those of another list or map, or one value is the element of a list.", "the order of a list that is a map, elements beyond the one value, and those that the other version cannot have"},
	"cast":      {"cast", "translated", "A number is a string.", "a string that is not such a number, or has another format"},
	"cel":       {"cel", "computed", "An expression computes the fields in each direction, with whenMissing: Evaluate also from nothing.", "every value that would not come back unchanged"},
	"default":   {"default", "preserved", "The rule fills in a field that the other version lacks.", "any other value than the default"},
	"drop":      {"drop", "dropped", "Given up: the field does not come back.", ""},
	"preserved": {"preserved", "preserved", "The other version lacks the field: an annotation preserves it until the object comes back.", ""},
	"same":      {"same", "same", "The same field in both versions.", ""},
}

// rule is a rule of the policy. One of a group is a rule for each use of the group.
type rule struct {
	Kind  kind
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
				Kind: kinds[compiled.Kind()], Spoke: of.Spoke, number: j + 1, Place: compiled.At, Text: textOf(&compiled.Rule),
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
