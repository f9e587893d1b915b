// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rulekinds says what each kind of rule does, for reports and explanations.
package rulekinds

import (
	"fmt"
	"strings"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// Kind is a kind of rule, or what happens to a field without one.
type Kind struct {
	Name string
	// Class is the style of its line in drawings, which several kinds share.
	Class string
	// Does describes it, and Keeps the values that it nevertheless preserves.
	Does, Keeps string
	// why says why it preserves a value, with the details of the rule in the place of %.
	why string
	// details distinguish a rule from others of its kind. They are nil if nothing does.
	details func(rule *v1alpha1.Rule) string
}

// All are the kinds by their names, and that of a rule that this version does not know by none.
var All = map[string]*Kind{
	"": {"unknown", "computed", "A newer version of conversion-operator has this rule.", "", "", nil},
	"move": {"move", "copied", "The same value at another path.",
		"a value that cannot stand at the other path, such as a null", "the other version cannot hold this value", nil},
	"format": {"format", "translated", "One string of the spoke is several fields of the hub, by a template.",
		"a string that the template does not parse, or would print differently", "it differs from what % prints",
		func(rule *v1alpha1.Rule) string { return quote(rule.Format.Template) }},
	"values": {"values", "translated", "A table maps one value to another.",
		"a value that would come back as another one, or that is not in the table", "by the table, it would come back as another value", nil},
	"each": {"each", "translated", "The elements of a list or map are those of another list or map, or one value is the element of a list.",
		"the order of a list that is a map, elements beyond the one value, and those that the other version cannot have",
		"the other version cannot have it in its list, map or value", detailsOfEach},
	"cast": {"cast", "translated", "A number is a string.",
		"a string that is not such a number, or has another format",
		"it differs from what a cast % writes, or has no value that fits the other version", detailsOfCast},
	"scale": {"scale", "translated", "A number is multiplied or divided, because it has another unit.",
		"a number that has no exact value in the other unit, such as 90 seconds in whole minutes", "it has no exact value in the other unit", detailsOfScale},
	"cel": {"cel", "computed", "An expression computes the fields in each direction, with whenMissing: Evaluate also from nothing.",
		"every value that would not come back unchanged", "the expressions would not restore the same value", detailsOfCEL},
	"default": {"default", "preserved", "The rule fills in a field that the other version lacks.",
		"any other value than the default", "it is not the default, %", detailsOfDefault},
	"drop":      {"drop", "dropped", "Given up: the field does not come back.", "", "", nil},
	"preserved": {"preserved", "preserved", "The other version lacks the field: an annotation preserves it until the object comes back.", "", "", nil},
	"same":      {"same", "same", "The same field in both versions.", "", "", nil},
}

// Of returns the kind of a rule.
func Of(rule *v1alpha1.Rule) *Kind { return All[rule.Kind()] }

// Details returns what distinguishes a rule from others of its kind, empty if nothing does.
func (k *Kind) Details(rule *v1alpha1.Rule) string {
	if k.details == nil {
		return ""
	}
	return strings.TrimSpace(k.details(rule))
}

// Why says why a rule preserves a value that it cannot convert, empty if it preserves none.
func (k *Kind) Why(rule *v1alpha1.Rule) string {
	return strings.Replace(k.why, "%", k.Details(rule), 1)
}

func detailsOfEach(rule *v1alpha1.Rule) string {
	details := ""
	if rule.Each.Key != "" {
		details = "by " + rule.Each.Key
	}
	for _, where := range rule.Each.Where {
		details += " where " + string(where.From+where.To)
	}
	return details
}

func detailsOfCast(rule *v1alpha1.Rule) string {
	details := "as " + string(rule.Cast.As) + " " + rule.Cast.Unit
	if rule.Cast.Separator != "" {
		details += quote(rule.Cast.Separator)
	}
	return details
}

func detailsOfScale(rule *v1alpha1.Rule) string {
	if rule.Scale.Divide != 0 {
		return fmt.Sprint("divide ", rule.Scale.Divide)
	}
	return fmt.Sprint("multiply ", rule.Scale.Multiply)
}

func detailsOfCEL(rule *v1alpha1.Rule) string {
	details := ""
	if rule.CEL.Derives() {
		details = "in one direction"
	}
	if rule.CEL.WhenMissing == v1alpha1.CELEvaluate {
		details += " also of missing fields"
	}
	return details
}

func detailsOfDefault(rule *v1alpha1.Rule) string {
	if rule.Default.Value != nil {
		return string(rule.Default.Value.Raw)
	}
	return string(rule.Default.ValueFrom)
}

func quote(text string) string { return `"` + text + `"` }
