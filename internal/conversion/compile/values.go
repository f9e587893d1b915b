// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

func (c *compiler) addValues(rule *v1alpha1.ValuesRule, at *field.Path) {
	p, ok := c.claimBoth(rule.From, rule.To, at)
	if !ok {
		return
	}
	exchange := p.exchange()
	switch {
	case p.spokeSchema.Type != "string":
		c.invalid(at.Child("from"), rule.From, "is of type %s: a table is for strings", typeName(p.spokeSchema))
		return
	case p.hubSchema.Type != "string":
		c.invalid(at.Child("to"), rule.To, "is of type %s: a table is for strings", typeName(p.hubSchema))
		return
	case len(rule.Table) == 0:
		c.errs = append(c.errs, field.Required(at.Child("table"), "write the values, for example {from: Allow, to: Parallel}"))
		return
	}
	for i, pair := range rule.Table {
		at := at.Child("table").Index(i)
		if slices.ContainsFunc(rule.Table[:i], func(other v1alpha1.ValuePair) bool { return other.From == pair.From }) {
			c.errs = append(c.errs, field.Duplicate(at.Child("from"), pair.From))
			return
		}
		if !c.fits(quoted(pair.From), p.spokeSchema, at.Child("from")) || !c.fits(quoted(pair.To), p.hubSchema, at.Child("to")) {
			return
		}
		exchange.Table = append(exchange.Table, [2]string{pair.From, pair.To})
	}
	p.scope.Exchanges = append(p.scope.Exchanges, exchange)
}
