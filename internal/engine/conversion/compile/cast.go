// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"cmp"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/document"
)

func (c *compiler) addCast(of *policyRule, fldPath place) {
	rule := of.Cast
	p, ok := c.claimBoth(rule.From, rule.To, fldPath)
	if !ok {
		return
	}
	spoke, hub := castTypeOf(p.spokeSchema, rule.As), castTypeOf(p.hubSchema, rule.As)
	other := cmp.Or(castFields[rule.As], "integer")
	switch {
	case !slices.Contains(castTypes, rule.As):
		c.refuse(fldPath.Child("as"), field.NotSupported(fldPath.Child("as").path, rule.As, castTypes))
		return
	case rule.As == v1alpha1.CastQuantity && !slices.Contains(conversion.Units, rule.Unit):
		c.refuse(fldPath.Child("unit"), field.NotSupported(fldPath.Child("unit").path, rule.Unit, conversion.Units))
		return
	case rule.As != v1alpha1.CastQuantity && rule.Unit != "":
		c.invalid(fldPath.Child("unit"), rule.Unit, "is only for as: Quantity: remove it")
		return
	case (rule.As == v1alpha1.CastList) != (rule.Separator != ""):
		c.invalid(fldPath.Child("separator"), rule.Separator, "is for as: List, which needs it, and for no other cast")
		return
	case spoke != "string" && spoke != other:
		c.invalid(fldPath.Child("from"), rule.From, "is of type %s: this cast is between a string and a field of type %s", spoke, other)
		return
	case hub != "string" && hub != other || spoke == hub:
		c.invalid(fldPath.Child("to"), rule.To, "is of type %s, and %s of type %s: this cast is between a string and a field of type %s", hub, rule.From, spoke, other)
		return
	}
	exchange := p.exchange()
	exchange.Cast = &conversion.Cast{
		Hub: hub == "string", Number: rule.As == v1alpha1.CastNumber, Quantity: rule.Unit, Separator: rule.Separator,
		Seconds: rule.As == v1alpha1.CastSeconds, Milliseconds: rule.As == v1alpha1.CastMilliseconds,
		Boolean: rule.As == v1alpha1.CastBoolean, Timestamp: rule.As == v1alpha1.CastTimestamp,
	}
	if isDocument(rule.As) {
		exchange.Cast.Document, exchange.Cast.List = string(rule.As), p.spokeSchema.Items != nil || p.hubSchema.Items != nil
	}
	p.scope.Exchanges = append(p.scope.Exchanges, exchange)
}

const (
	// listOfStrings is the type of the lists that a cast can join.
	listOfStrings = "array of string"
	// structure is the type of the values that a cast can write as a document.
	structure = "object or array, or without a type"
)

// castFields are the types of the field that is not a string, if that is not an integer.
var castFields = map[v1alpha1.CastType]string{
	v1alpha1.CastNumber: "number", v1alpha1.CastBoolean: "boolean", v1alpha1.CastList: listOfStrings,
	v1alpha1.CastJSON: structure, v1alpha1.CastYAML: structure,
}

func castTypeOf(s *schema.Structural, as v1alpha1.CastType) string {
	switch {
	case isDocument(as) && (s.Type == "object" || s.Type == "array" || isAnything(s)):
		return structure
	case !isDocument(as) && s.Items != nil && typeName(s.Items) == "string":
		return listOfStrings
	}
	return typeName(s)
}

func isDocument(as v1alpha1.CastType) bool { return document.Known(string(as)) }

var castTypes = []v1alpha1.CastType{
	v1alpha1.CastInteger, v1alpha1.CastNumber, v1alpha1.CastSeconds, v1alpha1.CastMilliseconds, v1alpha1.CastQuantity,
	v1alpha1.CastBoolean, v1alpha1.CastTimestamp, v1alpha1.CastList, v1alpha1.CastJSON, v1alpha1.CastYAML,
}

// castNotRoundTrippable: a text may not be a canonical integer, and an integer may be out of range,
// because integers in JSON have any size. A number may be written in another form, a string in a
// list may contain the separator, and an object may be too large for a text.
func (c *compiler) castNotRoundTrippable(rule *policyRule, ofHub bool) bool {
	s := c.schemaOf(rule, ofHub)
	if s != nil && s.Type == "boolean" {
		return false
	}
	if s == nil || s.Type != "integer" || s.ValueValidation == nil {
		return true
	}
	limit := float64(1 << 53)
	switch rule.Cast.As {
	case v1alpha1.CastTimestamp:
		limit = float64(conversion.MaxCastTimestamp)
	case v1alpha1.CastSeconds:
		limit = float64(conversion.MaxCastSeconds)
	case v1alpha1.CastMilliseconds:
		limit = float64(conversion.MaxCastSeconds) * 1000
	case v1alpha1.CastQuantity:
		limit = 1 << 20 // with each unit, a quantity of the API can be as much
	}
	return mayExceed(*s.ValueValidation, limit)
}

// mayExceed reports whether a schema allows numbers above a limit, or below its negative.
func mayExceed(of schema.ValueValidation, limit float64) bool {
	return of.Minimum == nil || *of.Minimum < -limit || of.Maximum == nil || *of.Maximum > limit
}
