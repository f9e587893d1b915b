// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// A move may take an object, list or map to another object, while other rules are for fields in it. The move
// claims the value on both sides, as every rule claims its fields. What is in it is that of one more field that
// both schemas get, its place (package conversion, place.go). Rules for fields in it use the place instead of
// both paths, so that what corresponds has the same path here, too.

// placed is a value with a place.
type placed struct {
	// from is the path in the spoke. spoke and hub are its paths with the places around it, and with the names of
	// the hub that are known so far.
	from, spoke, hub, place conversion.Path
}

// own returns the path on one side.
func (p placed) own(ofHub bool) conversion.Path {
	if ofHub {
		return p.hub
	}
	return p.spoke
}

// placed returns a path of one side, which has the names of the hub, with places. A value with a place keeps
// its path.
func (c *compiler) placed(path conversion.Path, ofHub bool) conversion.Path {
	return placedBy(c.places, path, ofHub)
}

func placedBy(places []placed, path conversion.Path, ofHub bool) conversion.Path {
	for _, p := range places { // outer ones first
		if own := p.own(ofHub); len(path) > len(own) && path.HasPrefix(own) {
			path = slices.Concat(p.place, path[len(own):])
		}
	}
	return path
}

// ends returns the paths of a move with the names of the hub, and places.
func (c *compiler) ends(move candidate) (from, to conversion.Path) {
	return c.placed(move.from.Rename(c.namesToHub()), false), c.placed(move.to, true)
}

// isElsewhere reports whether a move leads to another object, so that it does not just give another name.
func (c *compiler) isElsewhere(move candidate) bool {
	from, to := c.ends(move)
	return !slices.Equal(from[:len(from)-1], to[:len(to)-1])
}

// placeProblem returns why a value with rules inside cannot move to another object, empty if it can.
func (c *compiler) placeProblem(move candidate) string {
	from, to := c.ends(move)
	fromScope, _ := splitScope(from)
	toScope, _ := splitScope(to)
	switch {
	case !slices.Equal(fromScope, toScope):
		return c.otherScope(from, to)
	case c.namesKey(c.spoke, move.from) || c.namesKey(c.hub, move.to):
		return "a rule for one key of a map moves all of its value: write [*] for all keys, or move the fields in it one by one"
	case len(from) == 1 && from[0] == "status" || len(to) == 1 && to[0] == "status":
		return ".status has the same name in every version: move the fields in it one by one"
	case !isStruct(move.spoke) && !sameElements(move.spoke, move.hub):
		return "its elements are no objects, and are not paired"
	case move.spoke.Nullable != move.hub.Nullable:
		return "it may be null in one version only"
	case c.isNamed(move):
		return fmt.Sprintf("another rule moves %s, or moves to %s: give every field to one rule", move.from, move.to)
	}
	for _, at := range []struct {
		root *schema.Structural
		path conversion.Path
	}{{c.spokeOwn, move.from}, {c.hub, move.to}} {
		if hasPlaceNames(at.root, at.path) {
			return "the schema has a field whose name begins with a dot or a bracket: move the fields in it one by one"
		}
	}
	return ""
}

// hasPlaceNames reports whether an object or element around a path has a field that looks like a place.
func hasPlaceNames(root *schema.Structural, path conversion.Path) bool {
	for i := range path {
		around, err := resolveParent(root, path[:i+1])
		if err != nil {
			continue
		}
		for name := range around.Properties {
			if conversion.IsPlace(name) {
				return true
			}
		}
	}
	return false
}

// otherScope says what to do instead of a move that leads out of an element, or of an object with a place.
func (c *compiler) otherScope(from, to conversion.Path) string {
	if problem := c.acrossPlaces(from, to); problem != "" {
		return problem
	}
	if missing := c.missingMove(from, to); missing != "" {
		return "they are in different elements" + missing
	}
	return "they are not in elements of the same lists and maps"
}

// placeOf returns the place that the value of a move would have.
func (c *compiler) placeOf(move candidate) conversion.Path {
	_, to := c.ends(move)
	scope, local := splitScope(to)
	return slices.Concat(scope, conversion.PlaceOf(local))
}

// addPlace gives the value of a move a place.
func (c *compiler) addPlace(move candidate) {
	_, to := c.ends(move)
	p := placed{from: move.from, hub: to, place: c.placeOf(move)}
	c.places = append(c.places, p)
	c.renamings = append(c.renamings, renaming{move.from, p.place, move.fldPath, move.rule, true})
	c.namePlaces()
}

// namePlaces gives the paths of the spoke the names that the hub has for them so far.
func (c *compiler) namePlaces() {
	names := c.namesToHub()
	for i := range c.places {
		c.places[i].spoke = placedBy(c.places[:i], c.places[i].from.Rename(names), false)
	}
}

// withPlaces adds the places to the schema of one side.
func (c *compiler) withPlaces(s *schema.Structural, ofHub bool) *schema.Structural {
	for _, p := range c.places {
		if value, err := resolve(s, p.own(ofHub)); err == nil {
			s = withField(s, p.place, value)
		}
	}
	return s
}

// withField returns a schema with one more field. It changes no part of the schema that it gets.
func withField(s *schema.Structural, path conversion.Path, field *schema.Structural) *schema.Structural {
	more := *s
	switch {
	case len(path) == 0:
		return field
	case path[0] != conversion.Each:
		more.Properties = maps.Clone(s.Properties)
		if more.Properties == nil {
			more.Properties = map[string]schema.Structural{}
		}
		inner := more.Properties[path[0]]
		more.Properties[path[0]] = *withField(&inner, path[1:], field)
	case s.Items != nil:
		more.Items = withField(s.Items, path[1:], field)
	default:
		more.AdditionalProperties = &schema.StructuralOrBool{Bool: s.AdditionalProperties.Bool, Structural: withField(valuesOf(s), path[1:], field)}
	}
	return &more
}

// hasPlace reports whether a path is the place of a value.
func (c *compiler) hasPlace(path conversion.Path) bool {
	return slices.ContainsFunc(c.places, func(p placed) bool { return slices.Equal(p.place, path) })
}

// isPlaced reports whether the rule moves a value that has a place.
func (c *compiler) isPlaced(rule *policyRule) bool {
	return slices.ContainsFunc(c.renamings, func(r renaming) bool { return r.isPlaced && r.rule == rule })
}

// isObjectPlace reports whether a path is the place of an object.
func (c *compiler) isObjectPlace(path conversion.Path) bool {
	if !c.hasPlace(path) {
		return false
	}
	found, err := resolve(c.spoke, path)
	return err == nil && isStruct(found)
}

// acrossPlaces says that only one of two fields is in the same object with a place, empty if that is not so.
func (c *compiler) acrossPlaces(from, to conversion.Path) string {
	for _, r := range c.renamings {
		if r.isPlaced && c.isObject(r) && from.HasPrefix(r.to) != to.HasPrefix(r.to) {
			return fmt.Sprintf("%s moves to another object, and a rule for a field in it cannot lead out of it: move the fields in it one by one instead", r.from)
		}
	}
	return ""
}

// isObject reports whether a renaming is of an object.
func (c *compiler) isObject(r renaming) bool {
	found, err := resolve(c.spokeOwn, r.from)
	return err == nil && isStruct(found)
}

// objectWith finds or adds the object with a place in a scope.
func objectWith(scope *conversion.Scope, place conversion.Path) *conversion.Collection {
	object := collectionOf(scope, place, false)
	object.Object = true
	return object
}

// pairPlaced pairs the fields of an object with a place, or the elements of a list or map.
func (c *compiler) pairPlaced(cur cursor, spoke, hub *schema.Structural) {
	if !isStruct(spoke) {
		c.pairElements(cur, spoke, hub)
		return
	}
	c.pairFields(cursor{full: cur.full, scope: &objectWith(cur.scope, cur.local).Scope}, spoke, hub)
}

// bindPlaces adds the paths of values with a place to their collections.
func (c *compiler) bindPlaces(scope *conversion.Scope, above conversion.Path) {
	for i := range scope.Collections {
		collection := &scope.Collections[i]
		full := slices.Concat(above, collection.Path)
		for _, p := range c.places {
			if slices.Equal(full, p.place) {
				collection.Spoke, collection.Hub = p.spoke[len(above):], p.hub[len(above):]
			}
		}
		c.bindPlaces(&collection.Scope, collection.Inside(slices.Concat(above, collection.Path)))
	}
}
