// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"cmp"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// A move may give an object, list or map another path while other rules are for fields in it, or while its inside differs
// between the versions. The move claims the value on both sides, as every rule claims its fields. What is in it is that
// of one more field that both schemas get, its place. Rules for fields in it use the place instead of both paths, so
// that what corresponds has the same path on both sides.

// placed is a value with a place.
type placed struct {
	// spoke and hub are its paths, without places.
	spoke, hub, place  conversion.Path
	spokeForm, hubForm conversion.Form
	// key is the field that identifies the elements of lists, and integerKey is true if it is one of maps that is an integer.
	key        string
	integerKey bool
	// rule is the one that pairs both.
	rule *policyRule
}

// own returns the path on one side.
func (p placed) own(ofHub bool) conversion.Path {
	if ofHub {
		return p.hub
	}
	return p.spoke
}

// forms returns the form on one side, and on the other.
func (p placed) forms(ofHub bool) (own, other conversion.Form) {
	if ofHub {
		return p.hubForm, p.spokeForm
	}
	return p.spokeForm, p.hubForm
}

// inside returns the path on one side of what is in the place: of the elements of a list, if that is one value in the other
// version.
func (p placed) inside(ofHub bool) conversion.Path {
	if form, other := p.forms(ofHub); form == conversion.FormList && other == conversion.FormOne {
		return append(slices.Clip(p.own(ofHub)), conversion.Each)
	}
	return p.own(ofHub)
}

// withoutEach returns the path of a list or map by that of its elements.
func withoutEach(path conversion.Path) conversion.Path {
	if len(path) > 0 && path[len(path)-1] == conversion.Each {
		return path[:len(path)-1]
	}
	return path
}

// isPlace reports whether a member is a place: its name begins with a dot or a bracket, as paths do.
func isPlace(member string) bool {
	return member != conversion.Each && len(member) > 0 && (member[0] == '.' || member[0] == '[')
}

// placed returns a path of one side with places. A value with a place keeps its path.
func (c *compiler) placed(path conversion.Path, ofHub bool) conversion.Path {
	var innermost *placed
	for i := range c.places {
		own := c.places[i].inside(ofHub)
		if len(path) > len(own) && path.HasPrefix(own) && (innermost == nil || len(own) > len(innermost.inside(ofHub))) {
			innermost = &c.places[i]
		}
	}
	if innermost == nil {
		return path
	}
	return slices.Concat(innermost.place, path[len(innermost.inside(ofHub)):])
}

// shown returns a path of a side as that side has it, without places.
func (s *side) shown(path conversion.Path) conversion.Path {
	if p := placeAround(s.places, path); p != nil {
		return slices.Concat(p.inside(s.isHub), path[len(p.place):])
	}
	return path
}

// shown returns the path of a claim as its side has it.
func (c *compiler) shown(of claim) conversion.Path {
	if slices.ContainsFunc(c.spoke.claims, func(own claim) bool { return own.fldPath == of.fldPath && slices.Equal(own.path, of.path) }) {
		return c.spoke.shown(of.path)
	}
	return c.hub.shown(of.path)
}

// local returns a path relative to a scope around the field, as the side has it there.
func (s *side) local(path, scope conversion.Path) conversion.Path {
	return s.shown(path)[len(s.shown(scope)):]
}

// candidate is a move or each rule whose paths exist.
type candidate struct {
	rule     *policyRule
	from, to conversion.Path
	// spoke and hub are the schemas of the values.
	spoke, hub *schema.Structural
}

func (m candidate) path() place { return m.rule.fldPath.Child("move") }

// findPlaces finds the values in which fields are converted by themselves, by the rules that pair them.
func (c *compiler) findPlaces(rules []*policyRule) {
	paths := pathsOf(rules)
	for _, pair := range c.candidates(rules) {
		switch {
		case pair.rule.Each != nil:
			c.findEach(pair, paths)
		case c.needsPlace(pair, paths):
			form := formOf(pair.spoke)
			c.addPlace(pair, placed{rule: pair.rule, spokeForm: form, hubForm: form})
		}
	}
	c.spoke.schema, c.hub.schema = c.withPlaces(c.spoke.schema, false), c.withPlaces(c.hub.schema, true)
}

// candidates returns the rules that may pair what is in two values, outer ones first.
func (c *compiler) candidates(rules []*policyRule) []candidate {
	var all []candidate
	for _, rule := range rules {
		if rule.Move == nil && rule.Each == nil {
			continue
		}
		spokePaths, hubPaths := rule.Paths()
		if len(spokePaths) != 1 || len(hubPaths) != 1 {
			continue
		}
		from, errFrom := conversion.ParsePath(string(spokePaths[0]))
		to, errTo := conversion.ParsePath(string(hubPaths[0]))
		if errFrom != nil || errTo != nil || from[0] == "metadata" || to[0] == "metadata" {
			continue
		}
		spoke, errFrom := resolve(c.spoke.schema, from)
		hub, errTo := resolve(c.hub.schema, to)
		if errFrom != nil || errTo != nil || from[len(from)-1] == conversion.Each || to[len(to)-1] == conversion.Each {
			continue
		}
		all = append(all, candidate{rule, from, to, spoke, hub})
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(len(a.from), len(b.from)) })
	return all
}

// pathsOfRule are the paths of a rule as they are written.
type pathsOfRule struct{ spoke, hub []conversion.Path }

// pathsOf returns the paths of all rules, without those that are not paths.
func pathsOf(rules []*policyRule) []pathsOfRule {
	all := make([]pathsOfRule, len(rules))
	for i, rule := range rules {
		spoke, hub := rule.Paths()
		all[i] = pathsOfRule{parsed(spoke), parsed(hub)}
	}
	return all
}

func parsed(texts []v1alpha1.Path) (paths []conversion.Path) {
	for _, text := range texts {
		if path, err := conversion.ParsePath(string(text)); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

// needsPlace reports whether fields in a moved value are converted by themselves: other rules are for them, or the inside
// differs between the versions. It adds an error if that has to be, but cannot.
func (c *compiler) needsPlace(move candidate, paths []pathsOfRule) bool {
	inner := innerOf(move, paths)
	differs := difference(move.spoke, move.hub, nil)
	switch {
	case inner == nil && (differs == "" || !isAlike(move.spoke, move.hub)):
		return false
	case !isAlike(move.spoke, move.hub):
		if elementsOf(move.spoke) != nil && elementsOf(move.hub) != nil {
			c.cannotPlace(move, inner, differs+": their elements cannot be paired")
		}
		return false // claims find the overlap
	}
	problem := c.placeProblem(move)
	if problem != "" && inner != nil {
		c.cannotPlace(move, inner, problem)
	} else if problem != "" {
		move.rule.notPlaced = problem
	}
	return problem == ""
}

func (c *compiler) cannotPlace(move candidate, inner conversion.Path, problem string) {
	c.invalid(move.path().Child("to"), move.rule.Move.To, "cannot be moved from %s while a rule is for %s in it: %s", move.from, inner, problem)
}

// innerOf returns the path of a field in a moved value for which there is another rule, nil if there is
// none.
func innerOf(move candidate, paths []pathsOfRule) conversion.Path {
	for _, rule := range paths {
		for _, path := range rule.spoke {
			if len(path) > len(move.from) && path.Meets(move.from) {
				return path
			}
		}
		for _, path := range rule.hub {
			if len(path) > len(move.to) && path.Meets(move.to) {
				return path
			}
		}
	}
	return nil
}

// isAlike reports whether the inside of two values can be paired field by field.
func isAlike(spoke, hub *schema.Structural) bool {
	switch {
	case isStruct(spoke) && isStruct(hub):
		return true
	case elementsOf(spoke) == nil || elementsOf(hub) == nil:
		return false
	}
	return sameElements(spoke, hub) || (spoke.Items == nil) == (hub.Items == nil) && difference(spoke, hub, nil) == ""
}

// ends returns the paths of a move with places.
func (c *compiler) ends(move candidate) (from, to conversion.Path) {
	return c.placed(move.from, false), c.placed(move.to, true)
}

// placeProblem returns why a value with rules inside cannot move, empty if it can.
func (c *compiler) placeProblem(move candidate) string {
	from, to := c.ends(move)
	switch {
	case !c.isInOneScope(from, to):
		return c.otherScope(from, to)
	case move.rule.Move != nil && (c.namesKey(c.spoke.schema, move.from) || c.namesKey(c.hub.schema, move.to)):
		return "a rule for one key of a map moves all of its value: write [*] for all keys, or move the fields in it one by one"
	case len(from) == 1 && from[0] == "status" || len(to) == 1 && to[0] == "status":
		return ".status has the same name in every version: move the fields in it one by one"
	case move.rule.Move != nil && !isStruct(move.spoke) && !sameElements(move.spoke, move.hub):
		return "its elements are no objects, and are not paired"
	case slices.ContainsFunc(c.places, func(p placed) bool { return slices.Equal(p.spoke, move.from) || slices.Equal(p.hub, move.to) }):
		return "another rule moves " + move.from.String() + ", or moves to " + move.to.String() + ": give every field to one rule"
	case hasPlaceNames(c.spoke.own, move.from) || hasPlaceNames(c.hub.schema, move.to):
		return "the schema has a field whose name begins with a dot or a bracket: move the fields in it one by one"
	}
	return ""
}

// hasPlaceNames reports whether an object or element around a path has a field that looks like a place.
func hasPlaceNames(root *schema.Structural, path conversion.Path) bool {
	for i := range path {
		around := root
		if i > 0 {
			around, _ = resolve(root, path[:i])
		}
		if around == nil {
			continue
		}
		for name := range around.Properties {
			if isPlace(name) {
				return true
			}
		}
	}
	return false
}

// otherScope says what to do instead of a move that leads out of an element.
func (c *compiler) otherScope(from, to conversion.Path) string {
	if missing := c.missingMove(from, to); missing != "" {
		return "they are in different elements" + missing
	}
	return "they are not in elements of the same lists and maps"
}

// addPlace gives a value a place, in the innermost scope that has both ends.
func (c *compiler) addPlace(pair candidate, p placed) {
	from, to := c.ends(pair)
	scope := commonScope(from, to)
	p.spoke, p.hub, p.place = pair.from, pair.to, append(slices.Clip(scope), c.hub.local(to, scope).String())
	c.places = append(c.places, p)
	c.spoke.places, c.hub.places = c.places, c.places
}

// withPlaces adds the places to the schema of one side.
func (c *compiler) withPlaces(own *schema.Structural, ofHub bool) *schema.Structural {
	s := own
	for _, p := range slices.SortedStableFunc(slices.Values(c.places), func(p, q placed) int { return cmp.Compare(len(p.place), len(q.place)) }) {
		if value, err := resolve(own, p.own(ofHub)); err == nil {
			s = withField(s, p.place, p.inPlace(value, ofHub))
		}
	}
	return s
}

// withField returns a schema with one more field. It changes no part of the schema that it gets.
func withField(s *schema.Structural, path conversion.Path, field *schema.Structural) *schema.Structural {
	if len(path) == 0 {
		return field
	}
	return withChild(s, path[0], withField(childOf(s, path[0]), path[1:], field))
}

// placeOf returns the value with a place that is at a path, nil if there is none.
func (c *compiler) placeOf(path conversion.Path) *placed {
	i := slices.IndexFunc(c.places, func(p placed) bool { return slices.Equal(p.place, path) })
	if i < 0 {
		return nil
	}
	return &c.places[i]
}

// placeBy returns the value to which a rule gives a place, nil if it gives none.
func (c *compiler) placeBy(rule *policyRule) *placed {
	i := slices.IndexFunc(c.places, func(p placed) bool { return p.rule == rule })
	if i < 0 {
		return nil
	}
	return &c.places[i]
}

// placeAround returns the innermost value with a place of which a path is part, nil if there is none.
func placeAround(places []placed, path conversion.Path) (found *placed) {
	for i := range places {
		if p := &places[i]; path.HasPrefix(p.place) && (found == nil || len(p.place) > len(found.place)) {
			found = p
		}
	}
	return found
}

// pairPlaced pairs the fields of an object with a place, or the elements of a list or map.
func (c *compiler) pairPlaced(cur cursor, spoke, hub *schema.Structural) {
	switch {
	case elementsOf(spoke) != nil && elementsOf(hub) != nil:
		c.pairElements(cur, spoke, hub)
		return
	case !isStruct(spoke) || !isStruct(hub):
		c.collectionOf(cur.scope, cur.full) // the elements are alike
		return
	}
	c.pairFields(cursor{full: cur.full, scope: &c.collectionOf(cur.scope, cur.full).Scope}, spoke, hub)
}

// scopeAround returns the path of the innermost scope around a field: a path up to an [*], or to the place of an object, or
// that of the root, which is empty. An element is a scope itself.
func scopeAround(path conversion.Path) conversion.Path {
	for i := len(path); i > 0; i-- {
		if path[i-1] == conversion.Each || isPlace(path[i-1]) && i < len(path) && path[i] != conversion.Each {
			return path[:i]
		}
	}
	return nil
}

// scopeBeyond returns the path of the scope around another one.
func scopeBeyond(scope conversion.Path) conversion.Path {
	if scope[len(scope)-1] == conversion.Each {
		return scopeAround(scope[:len(scope)-1])
	}
	return scopeAround(scope)
}

// commonScope returns the path of the innermost scope that has all fields.
func commonScope(paths ...conversion.Path) conversion.Path {
	scope := scopeAround(paths[0])
	for len(scope) > 0 && slices.ContainsFunc(paths, func(path conversion.Path) bool { return !scopeAround(path).HasPrefix(scope) }) {
		scope = scopeBeyond(scope)
	}
	return scope
}

// isInOneScope reports whether two fields are in the same elements of the same lists and maps.
func (c *compiler) isInOneScope(from, to conversion.Path) bool {
	scope := commonScope(from, to)
	return !slices.Contains(c.spoke.local(from, scope), conversion.Each) && !slices.Contains(c.hub.local(to, scope), conversion.Each)
}
