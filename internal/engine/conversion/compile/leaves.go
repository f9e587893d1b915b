// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"maps"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// mayCollide notes a field that also exists on the other side under the same path. Unless a rule
// claims that one too, the two values cannot be told apart.
func (c *compiler) mayCollide(path conversion.Path, other *side, fldPath place, text v1alpha1.Path) {
	if path[0] == "metadata" {
		return
	}
	if _, err := resolve(other.schema, path); err == nil {
		c.collisions = append(c.collisions, collision{path, other, fldPath, text})
	}
}

// collision is a field of a rule that both sides have. It is no collision if another rule claims
// the field on the other side.
type collision struct {
	path    conversion.Path
	other   *side
	fldPath place
	text    v1alpha1.Path
}

// checkCollisions reports collisions. It runs after all rules are known.
func (c *compiler) checkCollisions() {
	for _, p := range c.traversed {
		for _, claim := range p.other.claims {
			if p.path.HasPrefix(claim.path) {
				c.invalid(p.fldPath, p.text, "goes through %s, which belongs to %s in version %s: name the list or map itself", p.other.shown(p.path), claim.fldPath, p.other.version)
			}
		}
	}
	for _, p := range c.collisions {
		if !overlapsClaim(p.other.claims, p.path) {
			c.invalid(p.fldPath, p.text, "collides with the field %s that version %s has, for which there is no rule: say by a rule what becomes of it",
				p.other.shown(p.path), p.other.version)
		}
	}
}

// overlapsClaim reports whether a rule claims the path, a parent of it, or something below it.
func overlapsClaim(claims []claim, path conversion.Path) bool {
	return overlapping(claims, path) != nil
}

// overlapping returns the first such claim, nil if there is none.
func overlapping(claims []claim, path conversion.Path) *claim {
	i := slices.IndexFunc(claims, func(claim claim) bool { return path.HasPrefix(claim.path) || claim.path.HasPrefix(path) })
	if i < 0 {
		return nil
	}
	return &claims[i]
}

func isClaimed(claims []claim, path conversion.Path) bool {
	return slices.ContainsFunc(claims, func(claim claim) bool { return slices.Equal(claim.path, path) })
}

// hasClaimBelow reports whether a rule claims something below the path.
func hasClaimBelow(claims []claim, path conversion.Path) bool {
	return slices.ContainsFunc(claims, func(claim claim) bool { return len(claim.path) > len(path) && claim.path.HasPrefix(path) })
}

// cursor is a position in both schemas, which are walked together.
type cursor struct {
	// full is relative to the root, local to the scope.
	full, local conversion.Path
	scope       *conversion.Scope
}

func (s cursor) child(name string) cursor {
	s.full, s.local = append(slices.Clip(s.full), name), append(slices.Clip(s.local), name)
	return s
}

// assignLeaves walks both schemas and assigns every field without a rule to identity, or to
// preservation on the side that has it.
func (c *compiler) assignLeaves() {
	c.pairFields(cursor{scope: &c.root}, c.spoke.schema, c.hub.schema)
	c.anchorAll()
	for _, name := range []string{"annotations", "labels"} {
		c.share(conversion.Path{"metadata", name})
	}
	c.preserveMapKeys(c.spoke.claims, c.hub)
	c.preserveMapKeys(c.hub.claims, c.spoke)
	c.markNulls(&c.root, [2]conversion.Path{})
	c.nameElements(&c.root, [2]conversion.Path{})
}

// anchorAll sets the anchors of all rules. Conflicting fields count as claimed: an object of one
// side holds nothing of the other.
func (c *compiler) anchorAll() {
	withConflicting, spoke, hub := *c, *c.spoke, *c.hub
	spoke.claims, hub.claims = slices.Concat(c.spoke.claims, c.conflicting), slices.Concat(c.hub.claims, c.conflicting)
	withConflicting.spoke, withConflicting.hub = &spoke, &hub
	withConflicting.anchorRules(&c.root, [2]conversion.Path{})
}

// pairFields pairs the fields of two objects.
func (c *compiler) pairFields(cur cursor, spoke, hub *schema.Structural) {
	c.unknownFields(cur, spoke, hub)
	for _, name := range unionOf(spoke.Properties, hub.Properties) {
		next := cur.child(name)
		if len(next.full) == 1 && (name == "apiVersion" || name == "kind" || name == "metadata") {
			continue
		}
		left, right := c.unclaimed(next, spoke, hub)
		switch {
		case c.placeOf(next.full) != nil:
			c.pairPlaced(next, left, right)
		case left != nil && right != nil:
			c.pair(next, left, right)
		case isNamedOnlyBy(spoke, hub, name):
			c.pairUnnamed(next, left, c.spoke, c.hub)
		case isNamedOnlyBy(hub, spoke, name):
			c.pairUnnamed(next, right, c.hub, c.spoke)
		case left != nil:
			c.preserveUnclaimed(next, left, c.spoke)
		case right != nil:
			c.preserveUnclaimed(next, right, c.hub)
		}
	}
	c.share(cur.full)
}

// isNamedOnlyBy reports whether a side names a field that the other side allows without naming it.
func isNamedOnlyBy(own, other *schema.Structural, name string) bool {
	_, named := own.Properties[name]
	_, both := other.Properties[name]
	return named && !both && other.XPreserveUnknownFields
}

// pairUnnamed decides about a field that one side names and the other allows without naming it.
// They are paired, unless rules claim part of the named field: then the other side's value is a
// different one. The schema is nil if a rule claims the whole field.
func (c *compiler) pairUnnamed(cur cursor, s *schema.Structural, own, other *side) {
	switch {
	case s == nil:
	case hasClaimBelow(own.claims, cur.full):
		c.preserveUnclaimed(cur, s, own)
	case own.isHub:
		c.pair(cur, anything, s)
		return
	default:
		c.pair(cur, s, anything)
		return
	}
	c.preserve(cur, other, false)
}

// unknownFields preserves the fields that one side allows without naming them, if the other side
// allows only named fields.
func (c *compiler) unknownFields(cur cursor, spoke, hub *schema.Structural) {
	if spoke.XPreserveUnknownFields == hub.XPreserveUnknownFields {
		return
	}
	known := slices.DeleteFunc(unionOf(spoke.Properties, hub.Properties), isPlace)
	if len(cur.full) == 0 {
		known = append(known, "apiVersion", "kind", "metadata")
	}
	own, _ := c.sides(hub.XPreserveUnknownFields)
	c.preserveUnknown(cur, own, known)
}

func (c *compiler) preserveUnknown(cur cursor, of *side, known []string) {
	c.addLeaf(cur, of, conversion.LeafField{Path: cur.local, Known: append([]string{}, known...)})
	cur.full = append(slices.Clip(cur.full), conversion.Each)
	of.notePreserved(cur)
}

// unclaimed returns the schemas of a field, nil on a side that lacks it or where a rule claims it.
func (c *compiler) unclaimed(cur cursor, spoke, hub *schema.Structural) (left, right *schema.Structural) {
	name := cur.full[len(cur.full)-1]
	if found, there := spoke.Properties[name]; there && !isClaimed(c.spoke.claims, cur.full) {
		left = &found
	}
	if found, there := hub.Properties[name]; there && !isClaimed(c.hub.claims, cur.full) {
		right = &found
	}
	return left, right
}

// pair decides about a field that both sides have.
func (c *compiler) pair(cur cursor, spoke, hub *schema.Structural) {
	ruled := hasClaimBelow(c.spoke.claims, cur.full) || hasClaimBelow(c.hub.claims, cur.full)
	differs := difference(spoke, hub, cur.full)
	if shape := commonShape(spoke, hub); shape != nil && !ruled {
		c.pairShape(cur, spoke, hub, shape)
		return
	}
	switch {
	case !ruled && differs == "":
		c.pairNulls(cur, spoke, hub)
	case isStruct(spoke) && isStruct(hub):
		c.preserveNulls(cur, spoke, hub)
		c.pairFields(cur, spoke, hub)
	case ruled && differs == "" && !c.ruledElements(cur.full) && !nullsDiffer(elementsOf(spoke), elementsOf(hub)):
		c.preserveNulls(cur, spoke, hub)
		c.shareKeys(cur) // rules claim some keys of a map; the others are the same
	case sameElements(spoke, hub):
		c.preserveNulls(cur, spoke, hub)
		c.pairElements(cur, spoke, hub)
	case ruled:
		c.preserveRest(cur, spoke, hub, differs)
	default:
		c.differences = append(c.differences, describeDifference(cur.full, differs))
		c.preserveBoth(cur, spoke, hub)
	}
}

// pairElements pairs the elements of a list or map.
func (c *compiler) pairElements(cur cursor, spoke, hub *schema.Structural) {
	for _, claim := range slices.Concat(c.spoke.claims, c.hub.claims) {
		if claim.path.HasPrefix(cur.full) && len(claim.path) > len(cur.full) && claim.path[len(cur.full)] != conversion.Each {
			c.invalid(claim.fldPath, c.shown(claim).String(), "names one element of %s, whose elements differ between the versions: write %[1]s[*]", c.hub.shown(cur.full))
			return
		}
	}
	collection := c.collectionOf(cur.scope, cur.full)
	element := cursor{full: append(slices.Clip(cur.full), conversion.Each), scope: &collection.Scope}
	if ofSpoke, ofHub := isClaimed(c.spoke.claims, element.full), isClaimed(c.hub.claims, element.full); ofSpoke || ofHub {
		c.preserveElement(element, elementsOf(spoke), ofSpoke, c.spoke)
		c.preserveElement(element, elementsOf(hub), ofHub, c.hub)
		return
	}
	if isStruct(elementsOf(spoke)) {
		c.pairFields(element, elementsOf(spoke), elementsOf(hub))
		return
	}
	c.pair(element, elementsOf(spoke), elementsOf(hub))
}

// preserveElement preserves the fields of an element that rules do not claim, if the other side has elements that a rule
// makes of some of them, or that are made of these.
func (c *compiler) preserveElement(cur cursor, s *schema.Structural, claimed bool, of *side) {
	if claimed {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if next := cur.child(name); !isClaimed(of.claims, next.full) {
			c.preserveUnclaimed(next, childOf(s, name), of)
		}
	}
	if holdsAnything(s) {
		c.preserveUnknown(cur, of, slices.Sorted(maps.Keys(s.Properties)))
	}
}

// ruledElements reports whether a rule goes through all elements of a list or map.
func (c *compiler) ruledElements(path conversion.Path) bool {
	all := append(slices.Clip(path), conversion.Each)
	return hasClaimBelow(c.spoke.claims, all) || hasClaimBelow(c.hub.claims, all)
}

// preserveBoth preserves a field on both sides: it has the same path and a different schema.
func (c *compiler) preserveBoth(cur cursor, spoke, hub *schema.Structural) {
	c.conflicting = append(c.conflicting, claim{path: cur.full})
	c.preserveUnclaimed(cur, spoke, c.spoke)
	c.preserveUnclaimed(cur, hub, c.hub)
}

// preserveRest decides about a field with different schemas, of which rules claim a part.
func (c *compiler) preserveRest(cur cursor, spoke, hub *schema.Structural, differs string) {
	for _, of := range []*schema.Structural{spoke, hub} {
		if elementsOf(of) == nil {
			continue
		}
		for _, claim := range slices.Concat(c.spoke.claims, c.hub.claims) {
			if claim.path.HasPrefix(cur.full) && len(claim.path) > len(cur.full) {
				c.invalid(claim.fldPath, c.shown(claim).String(), "is part of %s, which differs between the versions (%s): write a rule for all of %[1]s", c.hub.shown(cur.full), differs)
				return
			}
		}
	}
	c.preserveBoth(cur, spoke, hub)
}

// isStruct reports whether a schema is an object whose fields may be known.
func isStruct(s *schema.Structural) bool {
	return s.Type == "object" && s.AdditionalProperties == nil && !s.XEmbeddedResource
}

// sameElements reports whether the elements of two lists, or of two maps, can be paired: they are
// objects, or lists or maps of objects.
func sameElements(a, b *schema.Structural) bool {
	left, right := elementsOf(a), elementsOf(b)
	if left == nil || right == nil || (a.Items == nil) != (b.Items == nil) {
		return false
	}
	return isStruct(left) && isStruct(right) || sameElements(left, right)
}

// elementsOf returns the schema of a list's elements or a map's values, nil if there is none.
func elementsOf(s *schema.Structural) *schema.Structural {
	if s.Items != nil {
		return s.Items
	}
	return valuesOf(s)
}

// preserveUnclaimed preserves a field of one side: as a whole, or, if rules claim a part, the rest
// piece by piece.
func (c *compiler) preserveUnclaimed(cur cursor, s *schema.Structural, of *side) {
	if !hasClaimBelow(of.claims, cur.full) {
		c.preserve(cur, of, false)
		return
	}
	known := slices.Sorted(maps.Keys(s.Properties))
	for _, claim := range of.claims {
		if len(claim.path) > len(cur.full) && claim.path.HasPrefix(cur.full) && !slices.Contains(known, claim.path[len(cur.full)]) {
			known = append(known, claim.path[len(cur.full)])
		}
	}
	for _, name := range known {
		next := cur.child(name)
		if !isClaimed(of.claims, next.full) {
			c.preserveUnclaimed(next, childOf(s, name), of)
		}
	}
	if s.Properties == nil || holdsAnything(s) {
		c.preserveUnknown(cur, of, known)
	}
	c.preserve(cur, of, true)
}

func (c *compiler) preserve(cur cursor, of *side, shell bool) {
	c.addLeaf(cur, of, conversion.LeafField{Path: cur.local, Shell: shell, Text: isText(cur.full), Label: cur.full.IsLabel()})
	if !shell {
		of.notePreserved(cur)
	}
}

func (c *compiler) addLeaf(cur cursor, of *side, leaf conversion.LeafField) {
	if of.isHub {
		cur.scope.OnlyHub = append(cur.scope.OnlyHub, leaf)
	} else {
		cur.scope.OnlySpoke = append(cur.scope.OnlySpoke, leaf)
	}
}

// notePreserved records a field for the verdict.
func (s *side) notePreserved(cur cursor) {
	if !s.preservedWithin(cur.full) {
		s.preserved = append(s.preserved, cur.full)
	}
}
