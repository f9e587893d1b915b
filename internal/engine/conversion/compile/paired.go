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
	inSpoke, inHub spot
	spoke, hub     *schema.Structural
	ruled          bool
}

// pairedSubtrees returns all fields whose values are copied, parents first. Labels and annotations
// are left out: they have no schema to compare.
func (c *compiler) pairedSubtrees() (pairs []pairedSubtree) {
	for _, f := range c.frames {
		for _, from := range f.spoke.claims {
			to := c.partner(from)
			if to == nil || from.rule.Move == nil && from.rule.Each == nil || from.isText() || to.isText() {
				continue
			}
			t := pairedSubtree{inSpoke: from.spot, inHub: to.spot, ruled: true}
			t.spoke, _ = f.spoke.resolve(from.path)
			t.hub, _ = to.in.hub.resolve(to.path)
			switch paired := c.frameOf(from.rule); {
			case paired == nil:
				pairs = t.in(pairs)
			case paired.ofElements() && paired.collection.SpokeForm == paired.collection.HubForm:
				pairs = append(pairs, t) // what is in it is a frame
			}
		}
		pairs = pairedSubtree{inSpoke: spot{in: f}, inHub: spot{in: f}, spoke: f.spoke.schema, hub: f.hub.schema}.in(pairs)
	}
	return pairs
}

// partner returns the only field that the claim's rule has on the other side, nil if it has none or
// several.
func (c *compiler) partner(of claim) *claim {
	if others := c.claimsOf(of.rule, !of.ofHub); len(others) == 1 {
		return &others[0]
	}
	return nil
}

// allClaims returns the claims of all rules on one side.
func (c *compiler) allClaims(ofHub bool) (claims []claim) {
	for _, f := range c.frames {
		own, _ := f.sides(ofHub)
		claims = append(claims, own.claims...)
	}
	return claims
}

// claimsOf returns the claims of a rule on one side.
func (c *compiler) claimsOf(rule *policyRule, ofHub bool) []claim {
	return slices.DeleteFunc(c.allClaims(ofHub), func(claim claim) bool { return claim.rule != rule })
}

// in adds the subtree, and those in it, to others.
func (t pairedSubtree) in(pairs []pairedSubtree) []pairedSubtree {
	if !t.ruled && t.inSpoke.in.isSeparate(t.inSpoke.path) || typeName(t.spoke) != typeName(t.hub) {
		return pairs
	}
	pairs = append(pairs, t)
	for _, name := range slices.Sorted(maps.Keys(t.spoke.Properties)) {
		hub, both := t.hub.Properties[name]
		if both && !t.inSpoke.in.spoke.isEnvelope(t.inSpoke.path, name) {
			spoke := t.spoke.Properties[name]
			pairs = t.child(name, &spoke, &hub).in(pairs)
		}
	}
	if spoke, hub := elementsOf(t.spoke), elementsOf(t.hub); spoke != nil && hub != nil {
		pairs = t.child(conversion.Each, spoke, hub).in(pairs)
	}
	return pairs
}

func (t pairedSubtree) child(name string, spoke, hub *schema.Structural) pairedSubtree {
	return pairedSubtree{t.inSpoke.child(name), t.inHub.child(name), spoke, hub, t.ruled}
}

// isSeparate reports whether the fields at a common path are not one field: on at least one side,
// the field belongs to a rule or is preserved.
func (f *frame) isSeparate(path conversion.Path) bool {
	return isClaimed(f.spoke.claims, path) || isClaimed(f.hub.claims, path) ||
		contains(f.spoke.preserved, path) || contains(f.hub.preserved, path)
}
