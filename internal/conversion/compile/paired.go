// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"maps"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

// paired subtree is a field of the spoke and one of the hub that have the same value: by
// their path, or by a rule.
type pairedSubtree struct {
	spokePath, hubPath conversion.Path
	spoke, hub         *schema.Structural
	ruled              bool
}

// paired subtrees are all fields whose values are copied, the objects above them first.
// Labels and annotations have no schema to compare.
func (c *compiler) pairedSubtrees() []pairedSubtree {
	twins := c.pairedSubtreesIn(pairedSubtree{spoke: c.spoke, hub: c.hub}, nil)
	for _, from := range c.spokeClaims {
		to := c.partner(from, c.hubClaims)
		if to == nil || from.path[0] == "metadata" || to.path[0] == "metadata" {
			continue
		}
		t := pairedSubtree{spokePath: from.path, hubPath: to.path, ruled: true}
		t.spoke, _ = resolve(c.spoke, from.path)
		t.hub, _ = resolve(c.hub, to.path)
		switch {
		case from.rule.Wrap != nil && t.spoke.Items != nil:
			t.spoke, t.spokePath = t.spoke.Items, append(slices.Clip(t.spokePath), conversion.Each)
		case from.rule.Wrap != nil:
			t.hub, t.hubPath = t.hub.Items, append(slices.Clip(t.hubPath), conversion.Each)
		case from.rule.Move == nil:
			continue
		}
		twins = c.pairedSubtreesIn(t, twins)
	}
	return twins
}

// partner is the one field on the other side of a rule that has one, or nil.
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

func (c *compiler) pairedSubtreesIn(t pairedSubtree, twins []pairedSubtree) []pairedSubtree {
	if !t.ruled && c.ownedApart(t.spokePath) || typeName(t.spoke) != typeName(t.hub) {
		return twins
	}
	twins = append(twins, t)
	for _, name := range slices.Sorted(maps.Keys(t.spoke.Properties)) {
		hub, both := t.hub.Properties[name]
		if both && (len(t.spokePath) > 0 || !conversion.IsEnvelope(name)) {
			spoke := t.spoke.Properties[name]
			twins = c.pairedSubtreesIn(t.down(name, &spoke, &hub), twins)
		}
	}
	if spoke, hub := elementsOf(t.spoke), elementsOf(t.hub); spoke != nil && hub != nil {
		twins = c.pairedSubtreesIn(t.down(conversion.Each, spoke, hub), twins)
	}
	return twins
}

func (t pairedSubtree) down(name string, spoke, hub *schema.Structural) pairedSubtree {
	return pairedSubtree{append(slices.Clip(t.spokePath), name), append(slices.Clip(t.hubPath), name), spoke, hub, t.ruled}
}

// ownedApart reports whether a path that both sides have is not one field: on one
// side at least it belongs to a rule, or is preserved.
func (c *compiler) ownedApart(path conversion.Path) bool {
	is := func(other conversion.Path) bool { return slices.Equal(path, other) }
	return exactly(c.spokeClaims, path) || exactly(c.hubClaims, path) ||
		slices.ContainsFunc(c.preservedSpoke, is) || slices.ContainsFunc(c.preservedHub, is)
}
