// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"maps"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

// mayCollide notes a field that the other side has too, under the same name. With
// no rule of its own there, no one could say which of the two a value is.
func (c *compiler) mayCollide(path conversion.Path, other side, at *field.Path, text v1alpha1.Path) {
	if path[0] == "metadata" {
		return
	}
	if _, err := resolve(other.schema, path); err == nil {
		c.pending = append(c.pending, collision{path, other, at, text})
	}
}

// collision is a field that both sides have and a rule writes; it is none if
// another rule reads it on the other side.
type collision struct {
	path  conversion.Path
	other side
	at    *field.Path
	text  v1alpha1.Path
}

// checkCollisions looks, once all rules are known, whether each field that a
// rule names on one side and that exists on the other belongs to a rule there.
func (c *compiler) checkCollisions() {
	for _, p := range c.passages {
		for _, claim := range *p.other.claims {
			if p.path.HasPrefix(claim.path) {
				c.invalid(p.at, p.text, "goes through %s, which belongs to %s in version %s: name the list or map itself", p.path, claim.at, p.other.version)
			}
		}
	}
	for _, p := range c.pending {
		if !touched(*p.other.claims, p.path) {
			c.invalid(p.at, p.text, "collides with the field %s that version %s has, for which there is no rule: say by a rule what becomes of it",
				p.path, p.other.version)
		}
	}
}

// touched reports whether a rule claims the path, something above it, or in it.
func touched(claims []claim, path conversion.Path) bool {
	return slices.ContainsFunc(claims, func(claim claim) bool { return path.HasPrefix(claim.path) || claim.path.HasPrefix(path) })
}

func exactly(claims []claim, path conversion.Path) bool {
	return slices.ContainsFunc(claims, func(claim claim) bool { return slices.Equal(claim.path, path) })
}

// inside reports whether a rule claims something below the path.
func inside(claims []claim, path conversion.Path) bool {
	return slices.ContainsFunc(claims, func(claim claim) bool { return len(claim.path) > len(path) && claim.path.HasPrefix(path) })
}

// place in both schemas while they are walked together.
type spot struct {
	// full leads from the root, local from the scope.
	full, local conversion.Path
	scope       *conversion.Scope
	// anchor is the length of the part of local that both sides have.
	anchor int
}

func (s spot) down(name string) spot {
	s.full, s.local = append(slices.Clip(s.full), name), append(slices.Clip(s.local), name)
	return s
}

// assignLeaves walks both schemas and gives every field that has no rule to
// identity, or to preservation on the side that has it.
func (c *compiler) assignLeaves() {
	c.walk(spot{scope: &c.root}, c.spoke, c.hub)
	c.anchorAll()
	for _, name := range []string{"annotations", "labels"} {
		c.share(spot{scope: &c.root}.down("metadata").down(name))
	}
	c.strays(c.spokeClaims, c.hubClaims, c.hub, false)
	c.strays(c.hubClaims, c.spokeClaims, c.spoke, true)
	c.markNulls(&c.root, nil)
	c.nameElements(&c.root, nil)
}

// anchorAll anchors the rules. An object that is another one on the other side
// holds nothing there: it counts as taken.
func (c *compiler) anchorAll() {
	taken := *c
	taken.spokeClaims, taken.hubClaims = slices.Concat(c.spokeClaims, c.strangers), slices.Concat(c.hubClaims, c.strangers)
	taken.anchorRules(&c.root, nil)
}

// walk pairs the fields of two objects.
func (c *compiler) walk(at spot, spoke, hub *schema.Structural) {
	at.anchor = len(at.local)
	c.unknownFields(at, spoke, hub)
	for _, name := range unionOf(spoke.Properties, hub.Properties) {
		next := at.down(name)
		if len(next.full) == 1 && (name == "apiVersion" || name == "kind" || name == "metadata") {
			continue
		}
		left, right := c.unclaimed(next, spoke, hub)
		switch {
		case left != nil && right != nil:
			c.pair(next, left, right)
		case onlyOneNames(spoke, hub, name):
			c.unnamed(next, left, true)
		case onlyOneNames(hub, spoke, name):
			c.unnamed(next, right, false)
		case left != nil:
			c.oneSided(next, left, true)
		case right != nil:
			c.oneSided(next, right, false)
		}
	}
	c.share(at)
}

// onlyOneNames reports whether a side names a field that the other side may hold
// without naming it.
func onlyOneNames(own, other *schema.Structural, name string) bool {
	_, named := own.Properties[name]
	_, both := other.Properties[name]
	return named && !both && other.XPreserveUnknownFields
}

// unnamed decides about a field that one side names, and the other may hold all
// the same. They are the same as far as the name allows, unless rules have part of
// the one that is named: what the other side holds there is something else then. The
// schema is nil where a rule has all of it.
func (c *compiler) unnamed(at spot, s *schema.Structural, ofSpoke bool) {
	own, _ := c.sides(!ofSpoke)
	if s != nil && !inside(*own.claims, at.full) {
		if ofSpoke {
			c.pair(at, s, anything)
		} else {
			c.pair(at, anything, s)
		}
		return
	}
	if s != nil {
		c.oneSided(at, s, ofSpoke)
	}
	c.preserve(at, !ofSpoke, false)
}

// unknownFields preserves what one side allows without naming it, where the
// other side allows only what it names.
func (c *compiler) unknownFields(at spot, spoke, hub *schema.Structural) {
	if spoke.XPreserveUnknownFields == hub.XPreserveUnknownFields {
		return
	}
	known := unionOf(spoke.Properties, hub.Properties)
	if len(at.full) == 0 {
		known = append(known, "apiVersion", "kind", "metadata")
	}
	c.preserveUnknown(at, spoke.XPreserveUnknownFields, known)
}

func (c *compiler) preserveUnknown(at spot, ofSpoke bool, known []string) {
	c.addLeaf(at, ofSpoke, conversion.LeafField{Path: at.local, Anchor: at.anchor, Known: append([]string{}, known...)})
	at.full = append(slices.Clip(at.full), conversion.Each)
	c.notePreserved(at, ofSpoke)
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
	differs := difference(spoke, hub, at.full)
	if shape := commonShape(spoke, hub); shape != nil && !ruled {
		c.pairShape(at, spoke, hub, shape)
		return
	}
	switch {
	case !ruled && differs == "":
		c.pairNulls(at, spoke, hub)
	case isStruct(spoke) && isStruct(hub):
		c.keepNulls(at, spoke, hub)
		c.walk(at, spoke, hub)
	case ruled && differs == "" && !c.ruledElements(at.full) && !nullsDiffer(elementsOf(spoke), elementsOf(hub)):
		c.keepNulls(at, spoke, hub)
		c.shareKeys(at) // rules have some keys of a map; the others are the same
	case sameElements(spoke, hub):
		c.keepNulls(at, spoke, hub)
		c.elements(at, spoke, hub)
	case ruled:
		c.keepRest(at, spoke, hub, differs)
	default:
		c.unlike = append(c.unlike, unlike(at.full, differs))
		c.apart(at, spoke, hub)
	}
}

// elements pairs the elements of a list or map.
func (c *compiler) elements(at spot, spoke, hub *schema.Structural) {
	for _, claim := range slices.Concat(c.spokeClaims, c.hubClaims) {
		if claim.path.HasPrefix(at.full) && len(claim.path) > len(at.full) && claim.path[len(at.full)] != conversion.Each {
			c.invalid(claim.at, claim.path.String(), "names one element of %s, whose elements differ between the versions: write %s[*]", at.full, at.full)
			return
		}
	}
	collection := collectionOf(at.scope, at.local, spoke.Items == nil)
	element := spot{full: append(slices.Clip(at.full), conversion.Each), scope: &collection.Scope}
	if isStruct(elementsOf(spoke)) {
		c.walk(element, elementsOf(spoke), elementsOf(hub))
		return
	}
	c.pair(element, elementsOf(spoke), elementsOf(hub))
}

// ruledElements reports whether a rule goes through all elements of a list or map.
func (c *compiler) ruledElements(path conversion.Path) bool {
	all := append(slices.Clip(path), conversion.Each)
	return inside(c.spokeClaims, all) || inside(c.hubClaims, all)
}

// apart notes a field that both sides have under one name, and that is not the
// same: each side keeps its own.
func (c *compiler) apart(at spot, spoke, hub *schema.Structural) {
	c.strangers = append(c.strangers, claim{path: at.full})
	c.oneSided(at, spoke, true)
	c.oneSided(at, hub, false)
}

// keepRest decides about a field that has not the same shape on both sides, and
// of which rules have a part.
func (c *compiler) keepRest(at spot, spoke, hub *schema.Structural, differs string) {
	for _, of := range []*schema.Structural{spoke, hub} {
		if elementsOf(of) == nil {
			continue
		}
		for _, claim := range slices.Concat(c.spokeClaims, c.hubClaims) {
			if claim.path.HasPrefix(at.full) && len(claim.path) > len(at.full) {
				c.invalid(claim.at, claim.path.String(), "is part of %s, which differs between the versions (%s): write a rule for all of %s", at.full, differs, at.full)
				return
			}
		}
	}
	c.apart(at, spoke, hub)
}

// isStruct reports whether a schema is an object whose fields may be known.
func isStruct(s *schema.Structural) bool {
	return s.Type == "object" && s.AdditionalProperties == nil && !s.XEmbeddedResource
}

// sameElements reports whether the elements of two lists, or of two maps, can be
// paired: they are objects, or lists or maps of such.
func sameElements(a, b *schema.Structural) bool {
	left, right := elementsOf(a), elementsOf(b)
	if left == nil || right == nil || (a.Items == nil) != (b.Items == nil) {
		return false
	}
	return isStruct(left) && isStruct(right) || sameElements(left, right)
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
	known := slices.Sorted(maps.Keys(s.Properties))
	for _, claim := range claims {
		if len(claim.path) > len(at.full) && claim.path.HasPrefix(at.full) && !slices.Contains(known, claim.path[len(at.full)]) {
			known = append(known, claim.path[len(at.full)])
		}
	}
	for _, name := range known {
		next := at.down(name)
		if !exactly(claims, next.full) {
			c.oneSided(next, step(s, name), ofSpoke)
		}
	}
	if s.Properties == nil || holdsAnything(s) {
		c.preserveUnknown(at, ofSpoke, known)
	}
	c.preserve(at, ofSpoke, true)
}

func (c *compiler) preserve(at spot, ofSpoke, shell bool) {
	c.addLeaf(at, ofSpoke, conversion.LeafField{Path: at.local, Anchor: at.anchor, Shell: shell, Text: isText(at.full), Label: at.full.IsLabel()})
	if !shell {
		c.notePreserved(at, ofSpoke)
	}
}

func (c *compiler) addLeaf(at spot, ofSpoke bool, leaf conversion.LeafField) {
	if ofSpoke {
		at.scope.OnlySpoke = append(at.scope.OnlySpoke, leaf)
	} else {
		at.scope.OnlyHub = append(at.scope.OnlyHub, leaf)
	}
}

// notePreserved writes a field down for the verdict.
func (c *compiler) notePreserved(at spot, ofSpoke bool) {
	if c.preservedWithin(at.full, ofSpoke) {
		return
	}
	if ofSpoke {
		c.preservedSpoke = append(c.preservedSpoke, at.full)
	} else {
		c.preservedHub = append(c.preservedHub, at.full)
	}
}
