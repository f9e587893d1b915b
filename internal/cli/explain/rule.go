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
	spoke, hub := r.Paths()
	switch {
	case r.Move != nil:
		return rule{"move", "", spoke, hub, "the other version cannot hold this value"}
	case r.Format != nil:
		return rule{"format", quote(r.Format.Template), spoke, hub,
			"it differs from what " + quote(r.Format.Template) + " prints"}
	case r.Values != nil:
		return rule{"values", "", spoke, hub, "by the table, it would come back as another value"}
	case r.Each != nil:
		return rule{"each", detailOf(r.Each), spoke, hub, "the other version cannot have it in its list, map or value"}
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

func detailOf(each *v1alpha1.EachRule) string {
	detail := ""
	if each.Key != "" {
		detail = "by " + each.Key
	}
	for _, where := range each.Where {
		detail += " where " + string(where.From+where.To)
	}
	return strings.TrimSpace(detail)
}

func (r rule) String() string { return strings.TrimSpace(r.kind + " " + r.detail) }

func quote(text string) string { return `"` + text + `"` }
