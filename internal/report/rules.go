// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// kind of a link: that of its rule, or what becomes of a field without one.
type kind struct {
	Name string
	// Class is the line with which it is drawn, for several kinds have one.
	Class string
	// Does says it in words, and Keeps what is preserved all the same.
	Does, Keeps string
}

var kinds = map[string]kind{
	"":        {"unknown", "computed", "A newer version of conversion-operator knows it.", ""},
	"move":    {"move", "copied", "The same value at another path.", "a value that cannot stand at the other path, such as a null"},
	"format":  {"format", "translated", "One text of the spoke that is several fields of the hub, by a template.", "a text that the template does not parse, or would print otherwise"},
	"values":  {"values", "translated", "A word for a word, by a table.", "a word that would not come back as it was"},
	"wrap":    {"wrap", "translated", "One value that is a list with one element.", "a list that has no element, or more than one"},
	"cast":    {"cast", "translated", "An integer that is a text.", "a text that is no integer, or writes it otherwise"},
	"index":   {"index", "translated", "A list of objects that is a map by one of their fields.", "the order of the list, and a list that has a key twice"},
	"cel":     {"cel", "computed", "Computed by an expression for each direction.", "whatever would not come back as it was"},
	"default": {"default", "kept", "Filled in where the other version has no such field.", "any other value than the one that is filled in"},
	"drop":    {"drop", "dropped", "Given up: it does not come back.", ""},
	"kept":    {"preserved", "kept", "The other version has no such field: an annotation keeps it until the object comes back.", ""},
	"same":    {"same", "same", "The same field in both versions.", ""},
}

// rule is one of the policy.
type rule struct {
	Kind  kind
	Spoke string
	// Number counts the rules of a spoke from 1, as people do.
	number int
	// Place is the field of the policy.
	Place string
	// Text is the rule as a policy has it, in YAML.
	Text string
}

// Label is what the rule is called in drawings.
func (r *rule) Label() string { return fmt.Sprint(r.number) }

// ID is that of the rule's element.
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
		for j := range spoke.Rules {
			of.Rules = append(of.Rules, &rule{
				Kind: kinds[kindOf(&spoke.Rules[j])], Spoke: of.Spoke, number: j + 1,
				Place: fmt.Sprintf("spec.converter.declarative.spokes[%d].rules[%d]", i, j), Text: textOf(&spoke.Rules[j]),
			})
		}
		all = append(all, of)
	}
	return all
}

func kindOf(rule *v1alpha1.Rule) string {
	for name, is := range map[string]bool{
		"move": rule.Move != nil, "format": rule.Format != nil, "default": rule.Default != nil, "values": rule.Values != nil,
		"drop": rule.Drop != nil, "wrap": rule.Wrap != nil, "cast": rule.Cast != nil, "index": rule.Index != nil, "cel": rule.CEL != nil,
	} {
		if is {
			return name
		}
	}
	return ""
}

func textOf(rule *v1alpha1.Rule) string {
	text, err := yaml.Marshal(rule)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
