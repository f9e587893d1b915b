// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// warnStricter names the fields that allow less on one side. The API server does not validate the
// result of a conversion, so such an object can be read, but its next write is refused.
func (c *compiler) warnStricter() {
	for _, ofHub := range []bool{true, false} {
		target, source := c.root().sides(ofHub)
		var fields, nulls []string
		for _, t := range c.pairedSubtrees() {
			at, from, to := t.inSpoke, t.inHub.in.selected(t.hub, t.inHub.path, true), t.spoke
			if ofHub {
				at, from, to = t.inHub, t.inSpoke.in.selected(t.spoke, t.inSpoke.path, false), t.hub
			}
			for _, limit := range stricter(from, to, source.version) {
				fields = append(fields, pathText(at.shown(ofHub))+" has "+limit)
			}
			own, _ := at.in.sides(ofHub)
			if claim := claimOf(own.claims, at.path); claim != nil && len(claim.path) < len(at.path) && losesNull(from, to) {
				nulls = append(nulls, pathText(at.shown(ofHub)))
			}
		}
		if fields = append(fields, c.strictTables(ofHub)...); len(fields) > 0 {
			c.warn("%s allows less than %s: %s: an object from %s that goes beyond can be read at %s, and not be written there: let the schema of %s allow as much",
				target.version, source.version, few(fields), source.version, target.version, target.version)
		}
		if len(nulls) > 0 {
			c.warn("%s has no null in %s, which may be null at %s: the API server takes it away there, as part of what a rule moves as a whole: make the field nullable in %s",
				target.version, few(nulls), source.version, target.version)
		}
	}
}

// strictTables returns the fields whose table may give them a value that is not in their enum.
func (c *compiler) strictTables(ofHub bool) []string {
	_, source := c.root().sides(ofHub)
	var fields []string
	for _, to := range c.allClaims(ofHub) {
		rule := to.rule.Values
		if from := c.partner(to); rule == nil || from == nil || from.isText() {
			continue
		}
		own, other := c.schemaOf(to.rule, ofHub), c.schemaOf(to.rule, !ofHub)
		allowed, values := valuesIn(own), valuesIn(other)
		if allowed == nil || typeName(own) != typeName(other) { // all values are then in the table, which fits
			continue
		}
		var missing []string
		for _, value := range values {
			if got := translated(rule.Table, value, !ofHub); !slices.Contains(allowed, got) {
				missing = append(missing, strconv.Quote(value))
			}
		}
		switch {
		case values == nil:
			fields = append(fields, fmt.Sprintf("%s has the enum %s (%s: any %s, and the table does not translate all)", to.shown(ofHub), quotedList(allowed), source.version, map[bool]string{true: "text", false: "integer"}[own.Type == "string"]))
		case len(missing) > 0:
			fields = append(fields, fmt.Sprintf("%s has the enum %s (%s: %s too, which the table does not translate)", to.shown(ofHub), quotedList(allowed), source.version, few(missing)))
		}
	}
	return fields
}

// stricter returns the limits of a target that the source lacks or has wider.
func stricter(source, target *schema.Structural, version string) []string {
	s, t := validationOf(source), validationOf(target)
	limits := slices.Concat(
		strictSizes(s, t, version), strictNumbers(s, t, version),
		strictStrings(s, t, version), strictEnum(s, t, version), strictShapes(source, target, version))
	for name, of := range map[string][2]any{"allOf": {s.AllOf, t.AllOf}, "anyOf": {s.AnyOf, t.AnyOf}, "oneOf": {s.OneOf, t.OneOf}, "not": {s.Not, t.Not}} {
		if !reflect.ValueOf(of[1]).IsZero() && !reflect.DeepEqual(of[0], of[1]) {
			limits = append(limits, fmt.Sprintf("%s (%s: another)", name, version))
		}
	}
	slices.Sort(limits)
	return limits
}

func validationOf(s *schema.Structural) schema.ValueValidation {
	if s.ValueValidation == nil {
		return schema.ValueValidation{}
	}
	return *s.ValueValidation
}

func strictSizes(s, t schema.ValueValidation, version string) []string {
	var limits []string
	for _, limit := range []struct {
		name           string
		source, target *int64
		sign           int64
	}{
		{"maxLength", s.MaxLength, t.MaxLength, 1}, {"maxItems", s.MaxItems, t.MaxItems, 1}, {"maxProperties", s.MaxProperties, t.MaxProperties, 1},
		{"minLength", s.MinLength, t.MinLength, -1}, {"minItems", s.MinItems, t.MinItems, -1}, {"minProperties", s.MinProperties, t.MinProperties, -1},
	} {
		switch {
		case limit.target == nil, limit.sign < 0 && *limit.target <= 0:
		case limit.source == nil:
			limits = append(limits, fmt.Sprintf("%s %d (%s: none)", limit.name, *limit.target, version))
		case limit.sign**limit.source > limit.sign**limit.target:
			limits = append(limits, fmt.Sprintf("%s %d (%s: %d)", limit.name, *limit.target, version, *limit.source))
		}
	}
	return limits
}

func strictNumbers(s, t schema.ValueValidation, version string) []string {
	var limits []string
	for _, limit := range []struct {
		name                             string
		source, target                   *float64
		sourceExclusive, targetExclusive bool
		sign                             float64
	}{
		{"maximum", s.Maximum, t.Maximum, s.ExclusiveMaximum, t.ExclusiveMaximum, 1},
		{"minimum", s.Minimum, t.Minimum, s.ExclusiveMinimum, t.ExclusiveMinimum, -1},
	} {
		switch {
		case limit.target == nil:
		case limit.source == nil:
			limits = append(limits, fmt.Sprintf("%s %v (%s: none)", limit.name, *limit.target, version))
		case limit.sign**limit.source > limit.sign**limit.target:
			limits = append(limits, fmt.Sprintf("%s %v (%s: %v)", limit.name, *limit.target, version, *limit.source))
		case *limit.source == *limit.target && limit.targetExclusive && !limit.sourceExclusive:
			limits = append(limits, fmt.Sprintf("%s %v without %v itself (%s: with it)", limit.name, *limit.target, *limit.target, version))
		}
	}
	if t.MultipleOf != nil && (s.MultipleOf == nil || *s.MultipleOf != *t.MultipleOf) {
		limits = append(limits, fmt.Sprintf("multipleOf %v (%s: %s)", *t.MultipleOf, version, orNone(s.MultipleOf)))
	}
	return limits
}

func orNone(value *float64) string {
	if value == nil {
		return "none"
	}
	return fmt.Sprint(*value)
}

func strictStrings(s, t schema.ValueValidation, version string) []string {
	var limits []string
	for _, limit := range []struct{ name, source, target string }{{"pattern", s.Pattern, t.Pattern}, {"format", s.Format, t.Format}} {
		if limit.target != "" && limit.target != limit.source {
			limits = append(limits, fmt.Sprintf("%s %s (%s: %s)", limit.name, shorten(limit.target), version, shorten(limit.source)))
		}
	}
	return limits
}

// maxText limits how much of a pattern or rule a message quotes, in bytes.
const maxText = 60

// shorten returns a text of a schema as messages quote it.
func shorten(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	switch {
	case text == "":
		return "none"
	case len(text) > maxText:
		return strings.ToValidUTF8(text[:maxText], "") + "..."
	}
	return text
}

func strictEnum(s, t schema.ValueValidation, version string) []string {
	if len(t.Enum) == 0 {
		return nil
	}
	allowed, missing := asJSON(t.Enum), []string{}
	for _, value := range asJSON(s.Enum) {
		if !slices.Contains(allowed, value) {
			missing = append(missing, value)
		}
	}
	switch {
	case len(s.Enum) == 0:
		return []string{fmt.Sprintf("the enum %s (%s: none)", few(allowed), version)}
	case len(missing) > 0:
		return []string{fmt.Sprintf("the enum %s (%s: %s too)", few(allowed), version, few(missing))}
	}
	return nil
}

// asJSON encodes values as JSON.
func asJSON(values []schema.JSON) []string {
	var all []string
	for _, value := range values {
		text, err := json.Marshal(value.Object)
		if err == nil {
			all = append(all, string(text))
		}
	}
	return all
}

func quotedList(values []string) string {
	quoted := make([]string, len(values))
	for i, value := range values {
		quoted[i] = strconv.Quote(value)
	}
	return few(quoted)
}

// strictShapes returns list types that require unique elements, and validation rules in CEL.
func strictShapes(source, target *schema.Structural, version string) []string {
	var limits []string
	if kind, was := listType(target), listType(source); kind != "atomic" && (kind != was || !slices.Equal(source.XListMapKeys, target.XListMapKeys)) {
		limits = append(limits, fmt.Sprintf("the list type %s%s (%s: %s%s)", kind, keysText(target), version, was, keysText(source)))
	}
	for _, validation := range target.XValidations {
		known := false
		for _, other := range source.XValidations {
			known = known || other.Rule == validation.Rule
		}
		if !known {
			limits = append(limits, fmt.Sprintf("the validation %s (%s: none)", shorten(validation.Rule), version))
		}
	}
	return limits
}

func listType(s *schema.Structural) string {
	if s.XListType == nil {
		return "atomic"
	}
	return *s.XListType
}

func keysText(s *schema.Structural) string {
	if len(s.XListMapKeys) == 0 {
		return ""
	}
	return " by " + strings.Join(s.XListMapKeys, ", ")
}
