// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"cmp"
	"slices"
	"strconv"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/document"
)

func (c *compiler) addValues(of *policyRule, fldPath place) {
	rule := of.Values
	p, ok := c.claimBoth(rule.From, rule.To, fldPath)
	if !ok {
		return
	}
	exchange, spoke, hub := p.exchange(), typeName(p.spokeSchema), typeName(p.hubSchema)
	switch {
	case !slices.Contains(tableTypes, spoke):
		c.invalid(fldPath.Child("from"), rule.From, "is of type %s: a table is for strings, booleans and integers", spoke)
		return
	case !slices.Contains(tableTypes, hub):
		c.invalid(fldPath.Child("to"), rule.To, "is of type %s: a table is for strings, booleans and integers", hub)
		return
	case len(rule.Table) == 0:
		c.refuse(fldPath.Child("table"), field.Required(fldPath.Child("table").path, "write the values, for example {from: Allow, to: Parallel}"))
		return
	}
	for i, pair := range rule.Table {
		fldPath := fldPath.Child("table").Index(i)
		if slices.Contains(rule.Table[:i], pair) {
			c.refuse(fldPath, field.Duplicate(fldPath.path, pair))
			return
		}
		from, fromFits := c.literal(pair.From, p.spokeSchema, fldPath.Child("from"))
		to, toFits := c.literal(pair.To, p.hubSchema, fldPath.Child("to"))
		switch {
		case !fromFits || !toFits:
			return
		case spoke == "string" && hub == "string":
			exchange.Table = append(exchange.Table, [2]string{pair.From, pair.To})
		default:
			exchange.Literals = append(exchange.Literals, [2]string{from, to})
		}
	}
	exchange.Closed = spoke != hub
	p.scope.Exchanges = append(p.scope.Exchanges, exchange)
}

// tableTypes are the types of fields that a table may translate.
var tableTypes = []string{"string", "boolean", "integer"}

// literal returns the JSON of a value that a table writes as text. It adds an error if the field
// cannot have the value.
func (c *compiler) literal(text string, s *schema.Structural, fldPath place) (json string, fits bool) {
	if s.Type == "string" {
		quoted, _ := document.Encode(text)
		return string(quoted), c.fits(quoted, s, fldPath)
	}
	if number, err := strconv.ParseInt(text, 10, 64); err == nil && strconv.FormatInt(number, 10) != text {
		c.invalid(fldPath, text, "is not the shortest form of the integer: write %d", number)
		return "", false
	}
	return text, c.fits([]byte(text), s, fldPath)
}

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

func (c *compiler) addDrop(of *policyRule, fldPath place) {
	rule := of.Drop
	text, ofHub, fldPath, ok := c.oneOf(rule.From, rule.To, fldPath, setOneField)
	if !ok {
		return
	}
	at, _, ok := c.claim(ofHub, text, fldPath)
	if !ok {
		return
	}
	scope, local, ok := c.scopeOfOne(at, ofHub, fldPath, text)
	if !ok {
		return
	}
	if ofHub {
		scope.DropHub = append(scope.DropHub, local)
	} else {
		scope.DropSpoke = append(scope.DropSpoke, local)
	}
}
