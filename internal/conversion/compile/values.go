// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

func (c *compiler) addValues(rule *v1alpha1.ValuesRule, fldPath *field.Path) {
	p, ok := c.claimBoth(rule.From, rule.To, fldPath)
	if !ok {
		return
	}
	exchange := p.exchange()
	switch {
	case p.spokeSchema.Type != "string":
		c.invalid(fldPath.Child("from"), rule.From, "is of type %s: a table is for strings", typeName(p.spokeSchema))
		return
	case p.hubSchema.Type != "string":
		c.invalid(fldPath.Child("to"), rule.To, "is of type %s: a table is for strings", typeName(p.hubSchema))
		return
	case len(rule.Table) == 0:
		c.errs = append(c.errs, field.Required(fldPath.Child("table"), "write the values, for example {from: Allow, to: Parallel}"))
		return
	}
	for i, pair := range rule.Table {
		fldPath := fldPath.Child("table").Index(i)
		if slices.ContainsFunc(rule.Table[:i], func(other v1alpha1.ValuePair) bool { return other.From == pair.From }) {
			c.errs = append(c.errs, field.Duplicate(fldPath.Child("from"), pair.From))
			return
		}
		if !c.fits(quoted(pair.From), p.spokeSchema, fldPath.Child("from")) || !c.fits(quoted(pair.To), p.hubSchema, fldPath.Child("to")) {
			return
		}
		exchange.Table = append(exchange.Table, [2]string{pair.From, pair.To})
	}
	p.scope.Exchanges = append(p.scope.Exchanges, exchange)
}

func (c *compiler) addWrap(rule *v1alpha1.WrapRule, fldPath *field.Path) {
	p, ok := c.claimBoth(rule.From, rule.To, fldPath)
	if !ok {
		return
	}
	one, list := p.spokeSchema, p.hubSchema
	ofHub := list.Items != nil
	if !ofHub {
		one, list = list, one
	}
	switch {
	case one.Items != nil || list.Items == nil:
		c.invalid(fldPath.Child("to"), rule.To, "is of type %s, and %s of type %s: one of them is a list, and the other one of its elements",
			typeName(p.hubSchema), rule.From, typeName(p.spokeSchema))
		return
	case difference(one, list.Items, nil) != "":
		c.invalid(fldPath.Child("to"), rule.To, "cannot be wrapped with %s: %s: the list's elements are of the value's type",
			rule.From, difference(one, list.Items, nil))
		return
	}
	exchange := p.exchange()
	exchange.Wrap = &conversion.Wrap{Hub: ofHub}
	p.scope.Exchanges = append(p.scope.Exchanges, exchange)
}

func (c *compiler) addCast(rule *v1alpha1.CastRule, fldPath *field.Path) {
	p, ok := c.claimBoth(rule.From, rule.To, fldPath)
	if !ok {
		return
	}
	spoke, hub := typeName(p.spokeSchema), typeName(p.hubSchema)
	known := []v1alpha1.CastType{v1alpha1.CastInteger, v1alpha1.CastSeconds}
	switch {
	case !slices.Contains(known, rule.As):
		c.errs = append(c.errs, field.NotSupported(fldPath.Child("as"), rule.As, known))
		return
	case spoke != "string" && spoke != "integer":
		c.invalid(fldPath.Child("from"), rule.From, "is of type %s: a cast is between a string and an integer", spoke)
		return
	case hub != "string" && hub != "integer" || spoke == hub:
		c.invalid(fldPath.Child("to"), rule.To, "is of type %s, and %s of type %s: a cast is between a string and an integer", hub, rule.From, spoke)
		return
	}
	exchange := p.exchange()
	exchange.Cast = &conversion.Cast{Hub: hub == "string", Seconds: rule.As == v1alpha1.CastSeconds}
	p.scope.Exchanges = append(p.scope.Exchanges, exchange)
}

func (c *compiler) addDrop(rule *v1alpha1.DropRule, fldPath *field.Path) {
	text, ofHub, fldPath, ok := c.oneOf(rule.From, rule.To, fldPath)
	if !ok {
		return
	}
	own, other := c.sides(ofHub)
	path, _, ok := c.claim(own, text, fldPath)
	if !ok {
		return
	}
	scope, ok := c.scopeOfOne(path, other, fldPath, text)
	if !ok {
		return
	}
	_, local := splitScope(path)
	if ofHub {
		scope.DropHub = append(scope.DropHub, local)
	} else {
		scope.DropSpoke = append(scope.DropSpoke, local)
	}
}
