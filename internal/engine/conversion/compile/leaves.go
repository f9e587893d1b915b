// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"maps"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// checkCollision checks that the other side has no field of its own at the path of a field that a rule sets: users mistake one
// for the other.
func (f *frame) checkCollision(path conversion.Path, of, other *side) {
	claim := claimOf(of.claims, path)
	if claim == nil || of.isText(path) || hasClaimBelow(other.claims, path) {
		return
	}
	if !claim.rule.drops() && (of.isHub || claim.rule.Default != nil) {
		f.invalid(claim.fldPath, claim.shown(of.isHub).String(), "collides with the field %s that version %s has, for which there is no rule: say by a rule what becomes of it",
			other.shown(path), other.version)
	}
}

// overlapping returns the first claim of the path, a parent of it, or something below it, nil if there is none.
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
	// full is relative to the frame, local to the scope.
	full, local conversion.Path
	scope       *conversion.Scope
}

func (s cursor) child(name string) cursor {
	s.full, s.local = append(slices.Clip(s.full), name), append(slices.Clip(s.local), name)
	return s
}

// assignLeaves walks both schemas of each frame and assigns every field without a rule to identity, or to
// preservation on the side that has it. What leaves an object in another one leaves both.
func (c *compiler) assignLeaves() {
	for _, f := range slices.Backward(c.frames) {
		f.pairAll(cursor{scope: c.scopeAt(spot{in: f})}, f.spoke.schema, f.hub.schema)
	}
	for _, name := range []string{"annotations", "labels"} {
		c.root().share(conversion.Path{"metadata", name})
	}
	for _, f := range c.frames {
		f.preserveMapKeys(f.spoke.claims, f.hub)
		f.preserveMapKeys(f.hub.claims, f.spoke)
	}
	c.finish(&c.rules, [2]conversion.Path{})
}

// pairAll pairs all that is in a frame, or in an element.
func (f *frame) pairAll(cur cursor, spoke, hub *schema.Structural) {
	if ofSpoke, ofHub := isClaimed(f.spoke.claims, cur.full), isClaimed(f.hub.claims, cur.full); ofSpoke || ofHub {
		f.preserveElement(cur, spoke, ofSpoke, f.spoke)
		f.preserveElement(cur, hub, ofHub, f.hub)
		return
	}
	if isStruct(spoke) && isStruct(hub) {
		f.pairFields(cur, spoke, hub)
		return
	}
	f.pair(cur, spoke, hub)
}

// pairFields pairs the fields of two objects.
func (f *frame) pairFields(cur cursor, spoke, hub *schema.Structural) {
	f.unknownFields(cur, spoke, hub)
	for _, name := range unionOf(spoke.Properties, hub.Properties) {
		next := cur.child(name)
		if f.spoke.isEnvelope(cur.full, name) {
			continue
		}
		left, right := f.unclaimed(next, spoke, hub)
		switch {
		case left != nil && right != nil:
			f.pair(next, left, right)
		case isNamedOnlyBy(spoke, hub, name):
			f.pairUnnamed(next, left, f.spoke, f.hub)
		case isNamedOnlyBy(hub, spoke, name):
			f.pairUnnamed(next, right, f.hub, f.spoke)
		case left != nil:
			f.checkCollision(next.full, f.hub, f.spoke)
			f.preserveUnclaimed(next, left, f.spoke)
		case right != nil:
			f.checkCollision(next.full, f.spoke, f.hub)
			f.preserveUnclaimed(next, right, f.hub)
		}
	}
	f.share(cur.full)
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
func (f *frame) pairUnnamed(cur cursor, s *schema.Structural, own, other *side) {
	switch {
	case s == nil:
	case hasClaimBelow(own.claims, cur.full):
		f.preserveUnclaimed(cur, s, own)
	case own.isHub:
		f.pair(cur, anything, s)
		return
	default:
		f.pair(cur, s, anything)
		return
	}
	f.preserve(cur, other, false)
}

// unknownFields preserves the fields that one side allows without naming them, if the other side
// allows only named fields.
func (f *frame) unknownFields(cur cursor, spoke, hub *schema.Structural) {
	if spoke.XPreserveUnknownFields == hub.XPreserveUnknownFields {
		return
	}
	known := unionOf(spoke.Properties, hub.Properties)
	if f.spoke.isRoot() && len(cur.full) == 0 {
		known = append(known, "apiVersion", "kind", "metadata")
	}
	own, _ := f.sides(hub.XPreserveUnknownFields)
	f.preserveUnknown(cur, own, known)
}

func (f *frame) preserveUnknown(cur cursor, of *side, known []string) {
	f.addLeaf(cur, of, conversion.LeafField{Path: cur.local, Known: append([]string{}, known...)})
	cur.full = append(slices.Clip(cur.full), conversion.Each)
	of.notePreserved(cur)
}

// unclaimed returns the schemas of a field, nil on a side that lacks it or where a rule claims it.
func (f *frame) unclaimed(cur cursor, spoke, hub *schema.Structural) (left, right *schema.Structural) {
	name := cur.full[len(cur.full)-1]
	if found, there := spoke.Properties[name]; there && !isClaimed(f.spoke.claims, cur.full) {
		left = &found
	}
	if found, there := hub.Properties[name]; there && !isClaimed(f.hub.claims, cur.full) {
		right = &found
	}
	return left, right
}

// pair decides about a field that both sides have.
func (f *frame) pair(cur cursor, spoke, hub *schema.Structural) {
	ruled := hasClaimBelow(f.spoke.claims, cur.full) || hasClaimBelow(f.hub.claims, cur.full)
	at := f.hub.shown(cur.full)
	differs := difference(spoke, hub, at)
	if shape := commonShape(spoke, hub); shape != nil && !ruled {
		f.pairShape(cur, spoke, hub, shape)
		return
	}
	switch {
	case !ruled && differs == "":
		f.pairNulls(cur, spoke, hub)
	case isStruct(spoke) && isStruct(hub):
		f.preserveNulls(cur, spoke, hub)
		f.pairFields(cur, spoke, hub)
	case ruled && differs == "" && !f.ruledElements(cur.full) && !nullsDiffer(elementsOf(spoke), elementsOf(hub)):
		f.preserveNulls(cur, spoke, hub)
		f.shareKeys(cur) // rules claim some keys of a map; the others are the same
	case sameElements(spoke, hub):
		f.preserveNulls(cur, spoke, hub)
		f.pairElements(cur, spoke, hub)
	case ruled:
		f.preserveRest(cur, spoke, hub, differs)
	default:
		f.differences = append(f.differences, differs)
		f.preserveBoth(cur, spoke, hub)
	}
}

// pairElements pairs the elements of a list or map.
func (f *frame) pairElements(cur cursor, spoke, hub *schema.Structural) {
	for _, claim := range slices.Concat(f.spoke.claims, f.hub.claims) {
		if claim.path.HasPrefix(cur.full) && len(claim.path) > len(cur.full) && claim.path[len(cur.full)] != conversion.Each {
			f.invalid(claim.fldPath, claim.shown(claim.ofHub).String(), "names one element of %s, whose elements differ between the versions: write %[1]s[*]", f.hub.shown(cur.full))
			return
		}
	}
	list := spot{f, cur.full}
	f.pairAll(cursor{full: list.child(conversion.Each).path, scope: &f.collectionOf(list).Scope}, elementsOf(spoke), elementsOf(hub))
}

// preserveElement preserves the fields of an element that rules do not claim, if the other side has elements that a rule
// makes of some of them, or that are made of these.
func (f *frame) preserveElement(cur cursor, s *schema.Structural, claimed bool, of *side) {
	if claimed {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if next := cur.child(name); !isClaimed(of.claims, next.full) {
			f.preserveUnclaimed(next, childOf(s, name), of)
		}
	}
	if holdsAnything(s) {
		f.preserveUnknown(cur, of, slices.Sorted(maps.Keys(s.Properties)))
	}
}

// ruledElements reports whether a rule goes through all elements of a list or map.
func (f *frame) ruledElements(path conversion.Path) bool {
	all := append(slices.Clip(path), conversion.Each)
	return hasClaimBelow(f.spoke.claims, all) || hasClaimBelow(f.hub.claims, all)
}

// preserveBoth preserves a field on both sides: it has the same path and a different schema.
func (f *frame) preserveBoth(cur cursor, spoke, hub *schema.Structural) {
	f.conflicting = append(f.conflicting, claim{spot: spot{f, cur.full}})
	f.preserveUnclaimed(cur, spoke, f.spoke)
	f.preserveUnclaimed(cur, hub, f.hub)
}

// preserveRest decides about a field with different schemas, of which rules claim a part.
func (f *frame) preserveRest(cur cursor, spoke, hub *schema.Structural, differs string) {
	for _, of := range []*schema.Structural{spoke, hub} {
		if elementsOf(of) == nil {
			continue
		}
		for _, claim := range slices.Concat(f.spoke.claims, f.hub.claims) {
			if claim.path.HasPrefix(cur.full) && len(claim.path) > len(cur.full) {
				f.invalid(claim.fldPath, claim.shown(claim.ofHub).String(), "is part of %s, which differs between the versions (%s): write a rule for all of %[1]s", f.hub.shown(cur.full), differs)
				return
			}
		}
	}
	f.preserveBoth(cur, spoke, hub)
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

// checkTraversed checks that no rule is for the elements of a list or map that the other side has for another rule.
func (f *frame) checkTraversed(list conversion.Path, of *side) {
	_, other := f.sides(of.isHub)
	for _, claim := range of.claims {
		taken := claimOf(other.claims, list)
		if taken != nil && len(claim.path) > len(list) && claim.path.HasPrefix(list) && claim.path[len(list)] == conversion.Each {
			f.invalid(claim.fldPath, claim.shown(of.isHub).String(), "goes through %s, which belongs to %s in version %s: name the list or map itself", of.shown(list), taken.fldPath, other.version)
		}
	}
}

// preserveUnclaimed preserves a field of one side: as a whole, or, if rules claim a part, the rest
// piece by piece.
func (f *frame) preserveUnclaimed(cur cursor, s *schema.Structural, of *side) {
	if elementsOf(s) != nil {
		f.checkTraversed(cur.full, of)
	}
	if s.Items != nil || !hasClaimBelow(of.claims, cur.full) {
		f.preserve(cur, of, false)
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
			f.preserveUnclaimed(next, childOf(s, name), of)
		}
	}
	if s.Properties == nil || holdsAnything(s) {
		f.preserveUnknown(cur, of, known)
	}
	f.preserve(cur, of, true)
}

func (f *frame) preserve(cur cursor, of *side, shell bool) {
	f.addLeaf(cur, of, conversion.LeafField{Path: cur.local, Shell: shell})
	if shell {
		f.addSmall(of.shown(cur.full))
		return
	}
	of.notePreserved(cur)
}

func (f *frame) addLeaf(cur cursor, of *side, leaf conversion.LeafField) {
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
