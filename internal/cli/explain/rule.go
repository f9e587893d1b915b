// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
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

// rulesOf returns the rules of a policy by their positions, those of groups for each of their uses.
func rulesOf(converter *v1alpha1.DeclarativeConverter) map[string]rule {
	rules := map[string]rule{}
	for i := range converter.Spokes {
		for _, rule := range compile.Rules(converter, i) {
			rules[rule.At] = ruleOf(&rule.Rule)
		}
	}
	return rules
}

// exclusion is what identifies a rule that excludes elements.
type exclusion struct {
	spoke    string
	ofHub    bool
	elements v1alpha1.Path
}

// exclusionsOf returns the positions of the rules that exclude elements.
func exclusionsOf(converter *v1alpha1.DeclarativeConverter) map[exclusion]string {
	exclusions := map[exclusion]string{}
	for i, spoke := range converter.Spokes {
		for _, rule := range compile.Rules(converter, i) {
			if rule.Exclude != nil {
				ofHub := rule.Exclude.From == ""
				exclusions[exclusion{string(spoke.Version), ofHub, rule.Exclude.From + rule.Exclude.To}] = rule.At
			}
		}
	}
	return exclusions
}

func ruleOf(r *v1alpha1.Rule) rule {
	spoke, hub := r.Paths()
	switch {
	case r.Move != nil:
		return rule{"move", "", spoke, hub, "the other version cannot hold this value"}
	case r.Format != nil:
		return rule{"format", quote(r.Format.Template), spoke, hub,
			"it differs from what " + quote(r.Format.Template) + " prints"}
	case r.Values != nil:
		return rule{"values", "", spoke, hub, "by the table, it would come back as another value"}
	case r.Wrap != nil && r.Wrap.Field != "":
		return rule{"wrap", "in " + r.Wrap.Field, spoke, hub,
			"the objects have other fields, or lack " + r.Wrap.Field}
	case r.Wrap != nil:
		return rule{"wrap", "", spoke, hub, "the list does not have exactly one element"}
	case r.Cast != nil:
		as := string(r.Cast.As)
		switch {
		case r.Cast.Unit != "":
			as += " " + r.Cast.Unit
		case r.Cast.Separator != "":
			as += " " + quote(r.Cast.Separator)
		}
		why := "it differs from what a cast to " + as + " writes"
		if r.Cast.As == v1alpha1.CastJSON || r.Cast.As == v1alpha1.CastYAML {
			why += ", or has no value that fits the other version"
		}
		return rule{"cast", "as " + as, spoke, hub, why}
	case r.Index != nil && r.Index.Value != "":
		return rule{"index", "by " + r.Index.Key + ", value " + r.Index.Value, spoke, hub,
			"the list is not in the order of " + r.Index.Key + ", has a duplicate or missing key, or its objects have other fields"}
	case r.Index != nil:
		return rule{"index", "by " + r.Index.Key, spoke, hub,
			"the list is not in the order of " + r.Index.Key + ", or has a duplicate or missing key"}
	case r.Exclude != nil:
		return rule{"exclude", "without " + string(r.Exclude.Without), spoke, hub, ""}
	case r.CEL != nil:
		detail := ""
		if r.CEL.Derives() {
			detail = "in one direction"
		}
		if r.CEL.WhenMissing == v1alpha1.CELEvaluate {
			detail = strings.TrimSpace(detail + " also of missing fields")
		}
		return rule{"cel", detail, spoke, hub, "the expressions would not restore the same value"}
	case r.Default != nil:
		value := string(r.Default.ValueFrom)
		if r.Default.Value != nil {
			value = string(r.Default.Value.Raw)
		}
		return rule{"default", value, spoke, hub, "it is not the default, " + value}
	case r.Drop != nil:
		return rule{"drop", "", spoke, hub, ""}
	}
	return rule{} // a rule that this version does not know; it does not compile
}

func (r rule) String() string { return strings.TrimSpace(r.kind + " " + r.detail) }

func quote(text string) string { return `"` + text + `"` }
