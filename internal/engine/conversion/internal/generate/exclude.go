// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"maps"
	"slices"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// Excluding is the bit of a seed with which rules exclude elements of lists.
const Excluding = 1 << 37

func (c *Choices) isExcluding() bool { return c.seed&Excluding != 0 }

// exclusions returns rules that exclude elements of the lists of both versions.
func (m *ruleMaker) exclusions() (rules []v1alpha1.Rule) {
	for _, ofHub := range []bool{true, false} {
		fields := m.spoke
		if ofHub {
			fields = m.hub
		}
		for _, list := range fields {
			if list.schema.Items == nil || list.schema.Items.Schema.Type != "object" || len(list.schema.XListMapKeys) > 0 || m.Rarely(8) {
				continue
			}
			rule := &v1alpha1.ExcludeRule{From: list.path + "[*]"}
			if ofHub {
				rule.From, rule.To = "", rule.From
			}
			names := slices.Sorted(maps.Keys(list.schema.Items.Schema.Properties))
			if len(names) == 0 {
				continue
			}
			name := One(m.Choices, names...)
			rule.Without = v1alpha1.Path(quotedName(name))
			if list.schema.Items.Schema.Properties[name].Type == "string" && m.IntN(2) == 0 {
				rule.Values = Shuffled(m.Choices, tableValues["string"])[:1+m.IntN(3)]
			}
			rules = append(rules, v1alpha1.Rule{Exclude: rule})
		}
	}
	return rules
}
