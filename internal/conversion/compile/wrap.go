// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

func (c *compiler) addWrap(rule *v1alpha1.WrapRule, at *field.Path) {
	p, ok := c.claimBoth(rule.From, rule.To, at)
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
		c.invalid(at.Child("to"), rule.To, "is of type %s, and %s of type %s: one of them is a list, and the other one of its elements",
			typeName(p.hubSchema), rule.From, typeName(p.spokeSchema))
		return
	case difference(one, list.Items, nil) != "":
		c.invalid(at.Child("to"), rule.To, "cannot be wrapped with %s: %s: the list's elements are of the value's type",
			rule.From, difference(one, list.Items, nil))
		return
	}
	exchange := p.exchange()
	exchange.Wrap = &conversion.Wrap{Hub: ofHub}
	p.scope.Exchanges = append(p.scope.Exchanges, exchange)
}
