// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// Expressions is the bit of a seed with which some rules are pairs of expressions, most of which also
// compute values of missing fields.
const Expressions = 1 << 38

func (c *Choices) hasExpressions() bool { return c.seed&Expressions != 0 && !c.WithoutExpressions }

// Constants are values that expressions compute without reading a field, besides the name of the object.
var Constants = []any{"a", "b", "", ":", json.Number("80"), json.Number("0"), json.Number("1"), true, false}

// cel generates a rule with expressions between one or two fields of each version.
func (m *ruleMaker) cel() []v1alpha1.Rule {
	var left, right []namedField
	for _, from := range Shuffled(m.Choices, m.spoke) {
		left = m.someOf(m.spoke, from.scope, nil)
		if right = m.someOf(m.hub, m.atHub(from.scope), left); len(left) > 0 && len(right) > 0 {
			break
		}
	}
	if len(left) == 0 || len(right) == 0 {
		return nil
	}
	rule := &v1alpha1.CELRule{From: map[string]v1alpha1.Path{}, To: map[string]v1alpha1.Path{}}
	for i, field := range left {
		rule.From[fmt.Sprint("s", i)] = field.path
	}
	for i, field := range right {
		rule.To[fmt.Sprint("h", i)] = field.path
	}
	readLeft, readRight := m.alsoRead(rule.From, left, m.spoke, "s"), m.alsoRead(rule.To, right, m.hub, "h")
	rule.Forward, rule.Backward = m.expressions(right, readLeft, "h", "s"), m.expressions(left, readRight, "s", "h")
	if m.Often(5) {
		rule.WhenMissing = v1alpha1.CELEvaluate
	}
	return []v1alpha1.Rule{{CEL: rule}}
}

// alsoRead sometimes names one more field, which the rule only reads, in the same elements or around them, and returns all.
func (m *ruleMaker) alsoRead(named map[string]v1alpha1.Path, computed, fields []namedField, prefix string) []namedField {
	if m.IntN(3) > 0 {
		return computed
	}
	for _, field := range Shuffled(m.Choices, fields) {
		if strings.HasPrefix(computed[0].scope, field.scope) && constants[field.schema.Type] != nil && !has(computed, field.path) && !m.isDropped(field.path) {
			named[fmt.Sprint(prefix, len(computed))] = field.path
			return append(slices.Clip(computed), field)
		}
	}
	return computed
}

// isDropped reports whether a rule so far drops a field: what is computed from it would not come back.
func (m *ruleMaker) isDropped(path v1alpha1.Path) bool {
	return slices.ContainsFunc(m.made, func(rule v1alpha1.Rule) bool {
		return rule.Drop != nil && strings.HasPrefix(string(path), string(rule.Drop.From+rule.Drop.To))
	})
}

// isRead reports whether an expression so far reads a field, or a part of it.
func (m *ruleMaker) isRead(path v1alpha1.Path) bool {
	return slices.ContainsFunc(m.made, func(rule v1alpha1.Rule) bool {
		if rule.CEL == nil {
			return false
		}
		spoke, hub := rule.Paths()
		return slices.ContainsFunc(slices.Concat(spoke, hub), func(read v1alpha1.Path) bool { return strings.HasPrefix(string(read), string(path)) })
	})
}

// someOf returns one or two fields in a scope that expressions can compute, often with the paths of the
// others: a field of the hub that the spoke has, too, needs a rule for the latter. None is the key of a list: expressions would
// compute the same for several elements, and no API server accepts such a list.
func (m *ruleMaker) someOf(fields []namedField, scope string, others []namedField) []namedField {
	fields = Shuffled(m.Choices, fields)
	if m.Often(4) {
		slices.SortStableFunc(fields, func(a, b namedField) int {
			switch {
			case has(others, a.path) == has(others, b.path):
				return 0
			case has(others, a.path):
				return -1
			}
			return 1
		})
	}
	var some []namedField
	for _, field := range fields {
		if field.scope == scope && (isPlain(field.schema) || isRecord(field.schema)) && !isKey(fields, field) && len(some) < 1+m.IntN(2) {
			some = append(some, field)
		}
	}
	return some
}

// isPlain reports whether expressions have constants for a field.
func isPlain(s *props) bool { return s.Format == "" && s.Enum == nil && constants[s.Type] != nil }

// isRecord reports whether a field is an object of which an expression can write the members.
func isRecord(s *props) bool {
	return s.Type == "object" && len(s.Properties) > 0 && !s.XEmbeddedResource
}

// isKey reports whether a field identifies the elements of a list.
func isKey(fields []namedField, field namedField) bool {
	return slices.ContainsFunc(fields, func(list namedField) bool {
		return string(list.path+"[*]") == field.scope && slices.ContainsFunc(list.schema.XListMapKeys, func(key string) bool {
			return string(field.path) == field.scope+quotedName(key)
		})
	})
}

// constants are expressions without fields, by the type of the field.
var constants = map[string][]string{
	"string":  {"'a'", "'b'", "''", "':'", "metadata.name"},
	"integer": {"80", "0", "1"},
	"boolean": {"true", "false"},
}

// expressions generates an expression for each field, over fields of the other version.
func (m *ruleMaker) expressions(of, over []namedField, prefix, inputs string) map[string]v1alpha1.CELExpression {
	all := map[string]v1alpha1.CELExpression{}
	for i, field := range of {
		one := m.scalar
		if isRecord(field.schema) {
			one = m.record
		}
		all[fmt.Sprint(prefix, i)] = v1alpha1.CELExpression(one(field.schema, over, inputs))
	}
	return all
}

// scalar generates an expression for a string, an integer or a boolean.
func (m *ruleMaker) scalar(of *props, over []namedField, inputs string) string {
	input := m.IntN(len(over))
	name := fmt.Sprint(inputs, input)
	constant := One(m.Choices, constants[of.Type]...)
	choices := []string{
		constant, fmt.Sprintf("has(self.%s) ? %s : %s", name, One(m.Choices, constants[of.Type]...), constant),
		fmt.Sprintf("has(self.%s) ? null : %s", name, constant), "null",
	}
	if over[input].schema.Type == of.Type {
		same := []string{"self." + name, fmt.Sprintf("self.?%s.orValue(%s)", name, constant),
			fmt.Sprintf("self.?%s.orValue(%s) == %s ? null : self.?%s", name, constant, constant, name)}
		choices = slices.Concat(choices, same, same)
	}
	return One(m.Choices, choices...)
}

// record generates an expression for an object: an object of the other version, which may have other members, or one with
// members of several types, of which some are no value.
func (m *ruleMaker) record(of *props, over []namedField, inputs string) string {
	input := m.IntN(len(over))
	name := fmt.Sprint(inputs, input)
	var members []string
	for _, member := range slices.Sorted(maps.Keys(of.Properties)) {
		if s := of.Properties[member]; isPlain(&s) && m.Often(2) {
			members = append(members, fmt.Sprintf("'%s': %s", member, m.scalar(&s, over, inputs)))
		}
	}
	literal := "{" + strings.Join(members, ", ") + "}"
	choices := []string{literal, fmt.Sprintf("has(self.%s) ? %s : null", name, literal)}
	if isRecord(over[input].schema) {
		choices = append(choices, "self."+name, fmt.Sprintf("has(self.%s) ? self.%s : %s", name, name, literal))
	}
	return One(m.Choices, choices...)
}
