// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// anchorRules tells the rules of a scope without which objects nothing that was
// kept aside comes back, and nothing is filled.
func (c *compiler) anchorRules(scope *Scope, above Path) {
	for i := range scope.Formats {
		format := &scope.Formats[i]
		format.Anchor = anchorOf(above, format.Spoke, c.hub, c.hubClaims)
		for j := range format.Holes {
			format.Holes[j].Anchor = anchorOf(above, format.Holes[j].Hub, c.spoke, c.spokeClaims)
		}
	}
	for i := range scope.Values {
		value := &scope.Values[i]
		value.SpokeAnchor = anchorOf(above, value.Spoke, c.hub, c.hubClaims)
		value.HubAnchor = anchorOf(above, value.Hub, c.spoke, c.spokeClaims)
	}
	for i := range scope.Defaults {
		_, other := c.sides(scope.Defaults[i].Hub)
		scope.Defaults[i].Anchor = anchorOf(above, scope.Defaults[i].Path, other.schema, *other.claims)
	}
	for i := range scope.Collections {
		collection := &scope.Collections[i]
		c.anchorRules(&collection.Scope, slices.Concat(above, collection.Path, Path{each}))
	}
}

// anchorOf is the length of the part of a path that the other side has too.
func anchorOf(above, local Path, other *schema.Structural, claims []claim) int {
	if len(above) == 0 && local[0] == "metadata" {
		return 1
	}
	for i := len(local) - 1; i > 0; i-- {
		full := slices.Concat(above, local[:i])
		claimed := slices.ContainsFunc(claims, func(c claim) bool { return full.has(c.path) })
		if found, err := resolve(other, full); err == nil && !claimed && found.Type == "object" {
			return i
		}
	}
	return 0
}

// strays preserves single keys of maps, labels and annotations, that a rule has
// on one side and nobody has on the other: a schema cannot say that they are not
// there, and they are not the same.
func (c *compiler) strays(claims, others []claim, other *schema.Structural, ofSpoke bool) {
	for _, claim := range claims {
		path := claim.path
		if _, err := resolve(other, path); err != nil || !c.namesKey(other, path) || touched(others, path) {
			continue
		}
		at := spot{full: path, scope: &c.root}
		at.local, at.anchor = path, len(path)-1
		if path[0] == "metadata" {
			at.anchor = 1
		}
		c.preserve(at, ofSpoke, false)
	}
}

// namesKey reports whether the path goes through a map by the name of a key.
func (c *compiler) namesKey(root *schema.Structural, path Path) bool {
	if path[0] == "metadata" {
		return true
	}
	for at, i := root, 0; i < len(path) && at != nil; i++ {
		if valuesOf(at) != nil && path[i] != each {
			return true
		}
		at = step(at, path[i])
	}
	return false
}

// crossing is a rule, as the paths of its values on both sides.
type crossing struct {
	spoke Path
	hub   []Path
}

// share notes which values leave an object that both sides have, if any.
func (c *compiler) share(at spot) {
	if len(at.local) == 0 {
		return
	}
	shared := Shared{Path: at.local}
	out := func(path Path) bool { return !path.has(at.full) }
	local := func(path Path) Path { return path[len(at.full)-len(at.local):] }
	for _, crossing := range c.crossings {
		if !out(crossing.spoke) && slices.ContainsFunc(crossing.hub, out) {
			shared.Spoke = append(shared.Spoke, local(crossing.spoke))
		}
		for _, hub := range crossing.hub {
			if !out(hub) && out(crossing.spoke) {
				shared.Hub = append(shared.Hub, local(hub))
			}
		}
	}
	if len(shared.Spoke)+len(shared.Hub) > 0 {
		at.scope.Shared = append(at.scope.Shared, shared)
	}
}
