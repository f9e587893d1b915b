// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

func (c *compiler) addCast(rule *v1alpha1.CastRule, at *field.Path) {
	p, ok := c.claimBoth(rule.From, rule.To, at)
	if !ok {
		return
	}
	spoke, hub := typeName(p.spokeSchema), typeName(p.hubSchema)
	known := []v1alpha1.CastType{v1alpha1.CastInteger, v1alpha1.CastSeconds}
	switch {
	case !slices.Contains(known, rule.As):
		c.errs = append(c.errs, field.NotSupported(at.Child("as"), rule.As, known))
		return
	case spoke != "string" && spoke != "integer":
		c.invalid(at.Child("from"), rule.From, "is of type %s: a cast is between a string and an integer", spoke)
		return
	case hub != "string" && hub != "integer" || spoke == hub:
		c.invalid(at.Child("to"), rule.To, "is of type %s, and %s of type %s: a cast is between a string and an integer", hub, rule.From, spoke)
		return
	}
	exchange := p.exchange()
	exchange.Cast = &conversion.Cast{Hub: hub == "string", Seconds: rule.As == v1alpha1.CastSeconds}
	p.scope.Exchanges = append(p.scope.Exchanges, exchange)
}
