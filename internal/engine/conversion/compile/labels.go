// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"regexp/syntax"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// warnLabels names the labels that a rule may give a value which is not a valid label value. The
// API server would refuse the object, so the value is preserved and the label is left out.
func (c *compiler) warnLabels() {
	for _, ofHub := range []bool{true, false} {
		target, source := c.root().sides(ofHub)
		var labels []string
		for _, to := range target.claims {
			if !to.path.IsLabel() || to.rule.Drop != nil {
				continue
			}
			if from := c.partner(to); from == nil || !c.fitsLabel(from) {
				labels = append(labels, to.path[2])
			}
		}
		if len(labels) > 0 {
			c.warn("objects at %s lack the label %s where its value from %s is none that a label can have: bound the field in %s by maxLength: 63 and a pattern such as ^[a-z0-9]([-a-z0-9]*[a-z0-9])?$, or use an annotation",
				target.version, few(labels), source.version, source.version)
		}
	}
}

// moveNotRoundTrippable: a value may not be a valid label or annotation, or may not have the type
// of the other side.
func (c *compiler) moveNotRoundTrippable(rule *policyRule, ofHub bool) bool {
	ownSchema, otherSchema := c.schemaAt(rule.Move.From, rule.Move.To, ofHub), c.schemaAt(rule.Move.From, rule.Move.To, !ofHub)
	if ownSchema != nil && otherSchema != nil && isWider(ownSchema, otherSchema) {
		return true
	}
	from, to := c.claimsOf(rule, ofHub), c.claimsOf(rule, !ofHub)
	if len(from) != 1 || len(to) != 1 {
		return false
	}
	own, _ := from[0].in.sides(ofHub)
	switch {
	case len(to[0].path) == 0 || len(from[0].path) == 0:
		return elementMayStay(own, from[0].path)
	case !to[0].isText():
		return false
	}
	s, err := own.resolve(from[0].path)
	return err != nil || s.Nullable || to[0].path.IsLabel() && !c.fitsLabel(&from[0])
}

// elementMayStay reports whether an element of one side may have no value that a move makes one of the other side of.
func elementMayStay(own *side, path conversion.Path) bool {
	found, err := own.resolve(path)
	if err != nil || found.Nullable || len(path) == 0 {
		return err != nil || found.Nullable
	}
	around, err := own.resolve(path[:len(path)-1])
	return err != nil || !isAlwaysSet(around, path[len(path)-1])
}

// fitsLabel reports whether a rule gives a label only valid values.
func (c *compiler) fitsLabel(from *claim) bool {
	source, _ := from.in.sides(from.ofHub)
	s, err := source.resolve(from.path)
	switch {
	case err != nil || s.Nullable:
		return false
	case from.isText() && from.path.IsLabel():
		return true
	case from.rule.Values != nil:
		return tableFitsLabel(from.rule, s, !from.ofHub)
	case from.rule.Cast != nil:
		v := validationOf(s)
		return s.Type == "boolean" || from.rule.Cast.As != v1alpha1.CastTimestamp && s.Type == "integer" && v.Minimum != nil && *v.Minimum >= 0
	}
	return from.rule.Move != nil && isLabelText(s)
}

func tableFitsLabel(rule *policyRule, s *schema.Structural, ofHub bool) bool {
	for _, pair := range rule.Values.Table {
		value := pair.From
		if ofHub {
			value = pair.To
		}
		if len(validation.IsValidLabelValue(value)) > 0 {
			return false
		}
	}
	return s.Type != "string" || isLabelText(s)
}

// isLabelText reports whether every text that a schema allows is a valid label value.
func isLabelText(s *schema.Structural) bool {
	if values := enumOf(s); values != nil {
		return !slices.ContainsFunc(values, func(value string) bool { return len(validation.IsValidLabelValue(value)) > 0 })
	}
	v := validationOf(s)
	if v.Format == "k8s-short-name" || v.Format == "uuid" {
		return true
	}
	if v.MaxLength == nil || *v.MaxLength > int64(validation.LabelValueMaxLength) || v.Pattern == "" {
		return false
	}
	// The API server matches patterns with Go's regexp, too.
	pattern, err := syntax.Parse(v.Pattern, syntax.Perl)
	return err == nil && isLabelPattern(pattern.Simplify())
}

// isLabelPattern reports whether a pattern is anchored at both ends and matches only characters of
// labels, with a letter or digit first and last.
func isLabelPattern(pattern *syntax.Regexp) bool {
	parts := []*syntax.Regexp{pattern}
	if pattern.Op == syntax.OpConcat {
		parts = pattern.Sub
	}
	if len(parts) < 2 || parts[0].Op != syntax.OpBeginText || parts[len(parts)-1].Op != syntax.OpEndText {
		return false
	}
	parts = parts[1 : len(parts)-1]
	body := &syntax.Regexp{Op: syntax.OpConcat, Sub: parts}
	return onlyRunes(body, isLabelRune) && hasAlphanumericEdge(body, true) && hasAlphanumericEdge(body, false)
}

func isAlphanumeric(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}

func isLabelRune(r rune) bool { return isAlphanumeric(r) || r == '-' || r == '_' || r == '.' }

// onlyRunes reports whether a pattern matches only allowed characters. It is false for operators
// that it does not know.
func onlyRunes(pattern *syntax.Regexp, allowed func(rune) bool) bool {
	switch pattern.Op {
	case syntax.OpLiteral, syntax.OpCharClass:
		return allRunes(pattern, allowed)
	case syntax.OpEmptyMatch:
		return true
	case syntax.OpCapture, syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat, syntax.OpConcat, syntax.OpAlternate:
		return !slices.ContainsFunc(pattern.Sub, func(sub *syntax.Regexp) bool { return !onlyRunes(sub, allowed) })
	}
	return false
}

// allRunes reports whether all characters of a literal, or of a class's ranges, are allowed.
func allRunes(pattern *syntax.Regexp, allowed func(rune) bool) bool {
	if pattern.Op == syntax.OpLiteral {
		return pattern.Flags&syntax.FoldCase == 0 && !slices.ContainsFunc(pattern.Rune, func(r rune) bool { return !allowed(r) })
	}
	for i := 0; i+1 < len(pattern.Rune); i += 2 {
		for r := pattern.Rune[i]; r <= pattern.Rune[i+1]; r++ {
			if !allowed(r) {
				return false
			}
		}
	}
	return true
}

// hasAlphanumericEdge reports whether all matches of a pattern begin, or end, with a letter or
// digit, or are empty.
func hasAlphanumericEdge(pattern *syntax.Regexp, first bool) bool {
	switch pattern.Op {
	case syntax.OpEmptyMatch:
		return true
	case syntax.OpLiteral:
		if first {
			return isAlphanumeric(pattern.Rune[0])
		}
		return isAlphanumeric(pattern.Rune[len(pattern.Rune)-1])
	case syntax.OpCharClass:
		return allRunes(pattern, isAlphanumeric)
	case syntax.OpConcat:
		return concatHasAlphanumericEdge(pattern.Sub, first)
	}
	return !slices.ContainsFunc(pattern.Sub, func(sub *syntax.Regexp) bool { return !hasAlphanumericEdge(sub, first) })
}

// concatHasAlphanumericEdge examines the outermost part, and the next ones as long as a part may be
// empty.
func concatHasAlphanumericEdge(parts []*syntax.Regexp, first bool) bool {
	ordered := slices.Clone(parts)
	if !first {
		slices.Reverse(ordered)
	}
	for _, part := range ordered {
		if !hasAlphanumericEdge(part, first) {
			return false
		}
		if !mayBeEmpty(part) {
			return true
		}
	}
	return true
}

func mayBeEmpty(pattern *syntax.Regexp) bool {
	switch pattern.Op {
	case syntax.OpEmptyMatch, syntax.OpStar, syntax.OpQuest:
		return true
	case syntax.OpLiteral, syntax.OpCharClass:
		return false
	case syntax.OpRepeat:
		return pattern.Min == 0 || mayBeEmpty(pattern.Sub[0])
	case syntax.OpAlternate:
		return slices.ContainsFunc(pattern.Sub, mayBeEmpty)
	}
	return !slices.ContainsFunc(pattern.Sub, func(sub *syntax.Regexp) bool { return !mayBeEmpty(sub) })
}
