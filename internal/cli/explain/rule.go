// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/cli/rulekinds"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
)

// rule is a rule of a policy.
type rule struct {
	kind string
	// detail distinguishes it from other rules of its kind.
	detail string
	// spoke and hub are its paths on each side.
	spoke, hub []v1alpha1.Path
	// whyPreserved says why a value that the rule cannot convert is preserved.
	whyPreserved string
}

// pairsInside reports whether the rule is for a value of which fields correspond without rules of their own.
func (r rule) pairsInside() bool { return r.kind == "move" || r.kind == "each" }

// rulesOf returns the rules of a policy by their positions, those of groups for each of their uses, and the fields by
// which rules identify elements of lists.
func rulesOf(converter *v1alpha1.DeclarativeConverter) (rules map[string]rule, keys []string) {
	rules = map[string]rule{}
	for i := range converter.Spokes {
		for _, rule := range compile.Rules(converter, i) {
			rules[rule.At] = ruleOf(&rule.Rule)
			if rule.Each != nil && rule.Each.Key != "" {
				keys = append(keys, rule.Each.Key)
			}
		}
	}
	return rules, keys
}

func ruleOf(r *v1alpha1.Rule) rule {
	kind := rulekinds.Of(r)
	spoke, hub := r.Paths()
	return rule{kind.Name, kind.Details(r), spoke, hub, kind.Why(r)}
}

func (r rule) String() string { return strings.TrimSpace(r.kind + " " + r.detail) }
