// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"maps"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

// collides refuses a hub field that the spoke has too, under the same name and
// with no rule of its own: nobody could say which of the two a value is.
func (c *compiler) collides(path Path, at *field.Path, text v1alpha1.Path) bool {
	if path[0] == "metadata" {
		return false
	}
	if _, err := resolve(c.spoke, path); err != nil {
		return false
	}
	c.pending = append(c.pending, collision{path, at, text})
	return false
}

// collision is a field that both sides have and a rule writes; it is none if
// another rule reads it on the other side.
type collision struct {
	path Path
	at   *field.Path
	text v1alpha1.Path
}

// checkCollisions looks, once all rules are known, whether each field that a
// rule names on one side and that exists on the other belongs to a rule there.
func (c *compiler) checkCollisions() {
	for _, p := range c.pending {
		if !touched(c.spokeClaims, p.path) {
			c.invalid(p.at, p.text, "collides with the field %s that version %s has, for which there is no rule: say by a rule what becomes of it",
				p.path, c.spokeVersion)
		}
	}
}

// touched reports whether a rule claims the path, something above it, or in it.
func touched(claims []claim, path Path) bool {
	return slices.ContainsFunc(claims, func(claim claim) bool { return path.has(claim.path) || claim.path.has(path) })
}

func exactly(claims []claim, path Path) bool {
	return slices.ContainsFunc(claims, func(claim claim) bool { return slices.Equal(claim.path, path) })
}

// inside reports whether a rule claims something below the path.
func inside(claims []claim, path Path) bool {
	return slices.ContainsFunc(claims, func(claim claim) bool { return len(claim.path) > len(path) && claim.path.has(path) })
}

// place in both schemas while they are walked together.
type spot struct {
	// full leads from the root, local from the scope.
	full, local Path
	scope       *Scope
	// anchor is the length of the part of local that both sides have.
	anchor int
}

func (s spot) down(name string) spot {
	s.full, s.local = append(slices.Clip(s.full), name), append(slices.Clip(s.local), name)
	return s
}

// assignLeaves walks both schemas and gives every field that has no rule to
// identity, or to preservation on the side that has it.
func (c *compiler) assignLeaves() { c.walk(spot{scope: &c.root}, c.spoke, c.hub) }

// walk pairs the fields of two objects.
func (c *compiler) walk(at spot, spoke, hub *schema.Structural) {
	at.anchor = len(at.local)
	c.warnRequired(at, spoke, hub)
	for _, name := range unionOf(spoke.Properties, hub.Properties) {
		next := at.down(name)
		if len(next.full) == 1 && (name == "apiVersion" || name == "kind" || name == "metadata") {
			continue
		}
		left, right := c.unclaimed(next, spoke, hub)
		switch {
		case left != nil && right != nil:
			c.pair(next, left, right)
		case left != nil:
			c.oneSided(next, left, true)
		case right != nil:
			c.oneSided(next, right, false)
		}
	}
}

// unclaimed are the schemas of a field, nil where there is none or a rule has it.
func (c *compiler) unclaimed(at spot, spoke, hub *schema.Structural) (left, right *schema.Structural) {
	name := at.full[len(at.full)-1]
	if found, there := spoke.Properties[name]; there && !exactly(c.spokeClaims, at.full) {
		left = &found
	}
	if found, there := hub.Properties[name]; there && !exactly(c.hubClaims, at.full) {
		right = &found
	}
	return left, right
}

// pair decides about a field that both sides have.
func (c *compiler) pair(at spot, spoke, hub *schema.Structural) {
	ruled := inside(c.spokeClaims, at.full) || inside(c.hubClaims, at.full)
	switch {
	case !ruled && difference(spoke, hub, at.full) == "":
		return
	case isStruct(spoke) && isStruct(hub):
		c.walk(at, spoke, hub)
	case elementsOf(spoke) != nil && elementsOf(hub) != nil && (spoke.Items == nil) == (hub.Items == nil) &&
		isStruct(elementsOf(spoke)) && isStruct(elementsOf(hub)):
		scope := at.scope.collection(at.local, spoke, hub)
		c.walk(spot{full: append(slices.Clip(at.full), each), scope: scope}, elementsOf(spoke), elementsOf(hub))
	default:
		c.warn("%s cannot be copied between %s and %s (%s): each version keeps its own",
			at.full, c.spokeVersion, c.hubVersion, difference(spoke, hub, at.full))
		c.oneSided(at, spoke, true)
		c.oneSided(at, hub, false)
	}
}

// isStruct reports whether a schema is an object whose fields are known.
func isStruct(s *schema.Structural) bool {
	return s.Type == "object" && s.AdditionalProperties == nil && !s.XPreserveUnknownFields && !s.XEmbeddedResource
}

// elementsOf is the schema of a list's elements or a map's values.
func elementsOf(s *schema.Structural) *schema.Structural {
	if s.Items != nil {
		return s.Items
	}
	return valuesOf(s)
}

// oneSided gives a field to preservation: as a whole, or, where rules have part
// of it, the rest of it piece by piece.
func (c *compiler) oneSided(at spot, s *schema.Structural, ofSpoke bool) {
	claims := c.hubClaims
	if ofSpoke {
		claims = c.spokeClaims
	}
	if !inside(claims, at.full) {
		c.preserve(at, ofSpoke, false)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		next := at.down(name)
		if child := s.Properties[name]; !exactly(claims, next.full) {
			c.oneSided(next, &child, ofSpoke)
		}
	}
	c.preserve(at, ofSpoke, true)
}

func (c *compiler) preserve(at spot, ofSpoke, shell bool) {
	leaf := Leaf{Path: at.local, Anchor: at.anchor, Shell: shell}
	version := c.hubVersion
	if ofSpoke {
		version = c.spokeVersion
		at.scope.OnlySpoke = append(at.scope.OnlySpoke, leaf)
	} else {
		at.scope.OnlyHub = append(at.scope.OnlyHub, leaf)
	}
	if shell {
		return
	}
	c.onlySpoke, c.onlyHub = c.onlySpoke || ofSpoke, c.onlyHub || !ofSpoke
	c.preserved = append(c.preserved, version+":"+at.full.String())
}

// warnRequired names required fields that nothing fills in the other direction:
// such an object can be read, and not written back as it is.
func (c *compiler) warnRequired(at spot, spoke, hub *schema.Structural) {
	c.warnUnfilled(at, spoke, hub, c.spokeVersion, c.hubVersion, c.hubClaims)
	c.warnUnfilled(at, hub, spoke, c.hubVersion, c.spokeVersion, c.spokeClaims)
}

func (c *compiler) warnUnfilled(at spot, source, target *schema.Structural, from, to string, claims []claim) {
	if target.ValueValidation == nil {
		return
	}
	for _, name := range target.ValueValidation.Required {
		_, there := source.Properties[name]
		full := append(slices.Clip(at.full), name)
		if !there && !touched(claims, full) && target.Properties[name].Default.Object == nil {
			c.warn("%s requires %s, which %s does not have: objects from %s cannot be written at %s until it is set",
				to, full, from, from, to)
		}
	}
}
