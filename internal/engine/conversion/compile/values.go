// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"slices"
	"strconv"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
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
		quoted := tree.Quote(nil, text)
		return string(quoted), c.fits(quoted, s, fldPath)
	}
	if number, err := strconv.ParseInt(text, 10, 64); err == nil && strconv.FormatInt(number, 10) != text {
		c.invalid(fldPath, text, "is not the shortest form of the integer: write %d", number)
		return "", false
	}
	return text, c.fits([]byte(text), s, fldPath)
}

// tableNotRoundTrippable: a value may not come back through the table. Without an enum, any string
// or integer is possible.
func (c *compiler) tableNotRoundTrippable(rule *policyRule, ofHub bool) bool {
	values := valuesIn(c.schemaOf(rule, ofHub))
	if values == nil || c.lacksValue(rule, ofHub) {
		return true
	}
	for _, value := range values {
		if translated(rule.Values.Table, translated(rule.Values.Table, value, ofHub), !ofHub) != value {
			return true
		}
	}
	return false
}

// lacksValue reports whether a table between fields of different types lacks a value that the
// hub, or the spoke, may have.
func (c *compiler) lacksValue(rule *policyRule, ofHub bool) bool {
	own, other := c.schemaOf(rule, ofHub), c.schemaOf(rule, !ofHub)
	if own == nil || other == nil || own.Type == other.Type {
		return false
	}
	values := valuesIn(own)
	return values == nil || slices.ContainsFunc(values, func(value string) bool {
		return !slices.ContainsFunc(rule.Values.Table, func(pair v1alpha1.ValuePair) bool { return ofHub && pair.To == value || !ofHub && pair.From == value })
	})
}

// valuesIn returns the values that a schema allows, as tables write them, nil if they are not
// limited.
func valuesIn(s *schema.Structural) (values []string) {
	if s == nil {
		return nil
	}
	for _, allowed := range validationOf(s).Enum {
		text, isText := allowed.Object.(string)
		if !isText {
			text = string(preserved.Encode(allowed.Object))
		}
		values = append(values, text)
	}
	if values == nil && s.Type == "boolean" {
		return []string{"true", "false"}
	}
	return values
}

// translated returns what a table makes of a value of the hub, or of the spoke.
func translated(table []v1alpha1.ValuePair, value string, ofHub bool) string {
	for _, pair := range table {
		if ofHub && pair.To == value {
			return pair.From
		}
		if !ofHub && pair.From == value {
			return pair.To
		}
	}
	return value
}
