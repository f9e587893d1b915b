// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"maps"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// pairedSubtree is a field of the spoke and a field of the hub that have the same value, because
// they have the same path or a rule pairs them.
type pairedSubtree struct {
	spokePath, hubPath conversion.Path
	spoke, hub         *schema.Structural
	ruled              bool
}

// pairedSubtrees returns all fields whose values are copied, parents first. Labels and annotations
// are left out: they have no schema to compare.
func (c *compiler) pairedSubtrees() []pairedSubtree {
	pairs := c.pairedSubtreesIn(pairedSubtree{spoke: c.spoke.schema, hub: c.hub.schema}, nil)
	for _, from := range c.spoke.claims {
		to := c.partner(from, c.hub.claims)
		if to == nil || from.rule.Move == nil || c.placeBy(from.rule) != nil || from.path[0] == "metadata" || to.path[0] == "metadata" {
			continue
		}
		t := pairedSubtree{spokePath: from.path, hubPath: to.path, ruled: true}
		t.spoke, _ = resolve(c.spoke.schema, from.path)
		t.hub, _ = resolve(c.hub.schema, to.path)
		pairs = c.pairedSubtreesIn(t, pairs)
	}
	return pairs
}

// partner returns the only field that the claim's rule has on the other side, nil if it has none or
// several.
func (c *compiler) partner(of claim, others []claim) *claim {
	var found *claim
	for i := range others {
		if others[i].rule == of.rule {
			if found != nil {
				return nil
			}
			found = &others[i]
		}
	}
	return found
}

func (c *compiler) pairedSubtreesIn(t pairedSubtree, pairs []pairedSubtree) []pairedSubtree {
	if !t.ruled && c.isSeparate(t.spokePath) || typeName(t.spoke) != typeName(t.hub) {
		return pairs
	}
	pairs = append(pairs, t)
	for _, name := range slices.Sorted(maps.Keys(t.spoke.Properties)) {
		hub, both := t.hub.Properties[name]
		if both && (len(t.spokePath) > 0 || !conversion.IsEnvelope(name)) {
			spoke := t.spoke.Properties[name]
			pairs = c.pairedSubtreesIn(t.child(name, &spoke, &hub), pairs)
		}
	}
	if spoke, hub := elementsOf(t.spoke), elementsOf(t.hub); spoke != nil && hub != nil {
		pairs = c.pairedSubtreesIn(t.child(conversion.Each, spoke, hub), pairs)
	}
	return pairs
}

func (t pairedSubtree) child(name string, spoke, hub *schema.Structural) pairedSubtree {
	return pairedSubtree{append(slices.Clip(t.spokePath), name), append(slices.Clip(t.hubPath), name), spoke, hub, t.ruled}
}

// isSeparate reports whether the fields at a common path are not one field: on at least one side,
// the field belongs to a rule or is preserved.
func (c *compiler) isSeparate(path conversion.Path) bool {
	return isClaimed(c.spoke.claims, path) || isClaimed(c.hub.claims, path) ||
		contains(c.spoke.preserved, path) || contains(c.hub.preserved, path)
}
