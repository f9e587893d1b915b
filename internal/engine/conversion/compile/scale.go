// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"cmp"
	"math"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

func (c *compiler) addScale(of *policyRule, fldPath place) {
	rule := of.Scale
	p, ok := c.claimBoth(rule.From, rule.To, fldPath)
	if !ok {
		return
	}
	factor := cmp.Or(rule.Multiply, rule.Divide)
	isNumeric := func(name string) bool { return name == "integer" || name == "number" }
	switch spoke, hub := typeName(p.spokeSchema), typeName(p.hubSchema); {
	case !isNumeric(spoke):
		c.invalid(fldPath.Child("from"), rule.From, "is of type %s: a scale is between integers and numbers", spoke)
		return
	case !isNumeric(hub):
		c.invalid(fldPath.Child("to"), rule.To, "is of type %s: a scale is between integers and numbers", hub)
		return
	case factor == 0:
		c.invalid(fldPath.Child("multiply"), factor, "set multiply or divide, by which the spoke's number gives the hub's")
		return
	}
	exchange := p.exchange()
	exchange.Scale = &conversion.Scale{
		Factor: factor, Divide: rule.Divide != 0, SpokeInteger: p.spokeSchema.Type == "integer", HubInteger: p.hubSchema.Type == "integer",
	}
	p.scope.Exchanges = append(p.scope.Exchanges, exchange)
}

// scaleNotRoundTrippable: a number may be too large to multiply, and may have no exact quotient. A quotient by a power of ten has
// as many digits, and a number has 15 of them for sure.
func (c *compiler) scaleNotRoundTrippable(rule *policyRule, ofHub bool) bool {
	own, other := c.schemaOf(rule, ofHub), c.schemaOf(rule, !ofHub)
	if own == nil || other == nil || own.Type != "integer" {
		return true
	}
	factor, limit := cmp.Or(rule.Scale.Multiply, rule.Scale.Divide), 1e15
	validation := validationOf(own)
	switch multiplies := (rule.Scale.Multiply != 0) != ofHub; {
	case multiplies:
		limit = float64(1<<53) / float64(factor)
	case other.Type == "number" && math.Pow10(int(math.Round(math.Log10(float64(factor))))) == float64(factor):
	case validation.MultipleOf == nil || math.Mod(*validation.MultipleOf, float64(factor)) != 0:
		return true
	}
	return mayExceed(validation, limit)
}
