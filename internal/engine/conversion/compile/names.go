// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape"
)

// A move of an object, list or map whose inside converts by fields only gives it another name. The
// compiler gives the schema of the spoke the names of the hub. From then on, what corresponds has the
// same path on both sides, as if there had been no such move; only messages use the names of the spoke.
// A value that such a move takes to another object has a place instead (placed.go).

// renaming is a move that gives a field another name, or a place.
type renaming struct {
	// from has the names of the spoke, to those of the hub.
	from, to conversion.Path
	fldPath  place
	rule     *policyRule
	isPlaced bool
}

// candidate is a move rule whose paths exist.
type candidate struct {
	renaming
	spoke, hub *schema.Structural
}

// takeNames finds the moves that only give another name, and gives the schema of the spoke the names of
// the hub.
func (c *compiler) takeNames(rules []*policyRule) {
	paths := pathsOf(rules)
	for _, rule := range paths {
		c.wholes = append(c.wholes, rule.spoke...)
	}
	for _, move := range c.candidates(rules) {
		switch {
		case !c.onlyRenames(move, paths):
		case c.isElsewhere(move):
			c.addPlace(move)
		default:
			c.rename(move.renaming)
		}
	}
	freed := freedNames(c.renamed)
	c.renamed = append(c.renamed, freed...)
	c.hubNames, c.spokeNames = conversion.NamesOf(c.renamed)
	c.spoke, c.hub = c.withPlaces(renamedSchema(c.spokeOwn, c.hubNames), false), c.withPlaces(c.hub, true)
	for _, name := range freed {
		c.noteFreed(name.Spoke, name.Hub)
	}
}

// candidates returns the moves between two objects, lists, maps or keys, outer ones first.
func (c *compiler) candidates(rules []*policyRule) []candidate {
	var all []candidate
	for _, rule := range rules {
		if rule.Move == nil {
			continue
		}
		from, errFrom := conversion.ParsePath(string(rule.Move.From))
		to, errTo := conversion.ParsePath(string(rule.Move.To))
		if errFrom != nil || errTo != nil || from[0] == "metadata" || to[0] == "metadata" {
			continue
		}
		spoke, errFrom := resolve(c.spoke, from)
		hub, errTo := resolve(c.hub, to)
		if errFrom != nil || errTo != nil || from[len(from)-1] == conversion.Each || to[len(to)-1] == conversion.Each {
			continue
		}
		all = append(all, candidate{renaming{from, to, rule.fldPath.Child("move"), rule, false}, spoke, hub})
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

// onlyRenames reports whether a move only gives another name: other rules are for fields in it, or its inside
// differs between the versions. It adds an error if it has to, but cannot.
func (c *compiler) onlyRenames(move candidate, paths []pathsOfRule) bool {
	inner := innerOf(move.renaming, paths)
	differs := difference(move.spoke, move.hub, nil)
	isKey := c.isKey(move)
	switch {
	case inner == nil && !isKey && (differs == "" || !isAlike(move.spoke, move.hub)):
		return false
	case !isKey && !isAlike(move.spoke, move.hub):
		if elementsOf(move.spoke) != nil && elementsOf(move.hub) != nil {
			c.cannotName(move, inner, differs+": their elements cannot be paired")
		}
		return false // claims find the overlap
	}
	problem := c.namingProblem(move)
	if problem != "" && inner != nil {
		c.cannotName(move, inner, problem)
	} else if problem != "" && !isKey {
		c.notNamed[move.rule.fldPath.String()] = problem
	}
	return problem == ""
}

func (c *compiler) cannotName(move candidate, inner conversion.Path, problem string) {
	c.invalid(move.fldPath.Child("to"), move.rule.Move.To, "cannot be moved from %s while a rule is for %s in it: %s", move.from, inner, problem)
}

// innerOf returns the path of a field in a moved value for which there is another rule, nil if there is
// none.
func innerOf(move renaming, paths []pathsOfRule) conversion.Path {
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

// isKey reports whether a move is between two fields that are the same key of a list's elements.
func (c *compiler) isKey(move candidate) bool {
	left, right := listAround(c.spoke, move.from), listAround(c.hub, move.to)
	if left == nil || right == nil || !isListMap(left) || !isListMap(right) || typeName(move.spoke) != typeName(move.hub) || elementsOf(move.spoke) != nil || move.spoke.Type == "object" {
		return false
	}
	at := slices.Index(left.XListMapKeys, move.from[len(move.from)-1])
	return at >= 0 && at == slices.Index(right.XListMapKeys, move.to[len(move.to)-1])
}

// listAround returns the list whose elements have the field directly, nil if there is none.
func listAround(root *schema.Structural, path conversion.Path) *schema.Structural {
	if len(path) < 3 || path[len(path)-2] != conversion.Each {
		return nil
	}
	if list, err := resolve(root, path[:len(path)-2]); err == nil && list.Items != nil {
		return list
	}
	return nil
}

// namingProblem returns why a field cannot just get another name, empty if it can.
func (c *compiler) namingProblem(move candidate) string {
	last := len(move.from) - 1
	switch {
	case c.isElsewhere(move):
		return c.placeProblem(move)
	case slices.Equal(move.from, move.to):
		return ""
	case last == 0 && (move.from[0] == "status" || move.to[0] == "status"):
		return ".status has the same name in every version: move the fields in it one by one"
	case c.namesKey(c.spoke, move.from) || c.namesKey(c.hub, move.to):
		return "a rule for one key of a map moves all of its value: write [*] for all keys, or move the fields in it one by one"
	case c.isNamed(move):
		return fmt.Sprintf("another rule moves %s, or moves to %s: give every field to one rule", move.from, move.to)
	}
	return c.collidingName(move)
}

// collidingName returns the problem of a field of the spoke that already has the new name.
func (c *compiler) collidingName(move candidate) string {
	there := append(slices.Clip(move.from[:len(move.from)-1]), move.to[len(move.to)-1])
	parent, _ := resolveParent(c.spoke, move.from)
	_, named := parent.Properties[there[len(there)-1]]
	if named && !slices.ContainsFunc(c.wholes, func(path conversion.Path) bool { return slices.Equal(path, there) }) {
		return fmt.Sprintf("%s is another field that version %s has, and no rule is for all of it: say by a rule what becomes of it", there, c.spokeVersion)
	}
	return ""
}

// resolveParent returns the schema of the object that has a field.
func resolveParent(root *schema.Structural, path conversion.Path) (*schema.Structural, error) {
	if len(path) == 1 {
		return root, nil
	}
	return resolve(root, path[:len(path)-1])
}

// isNamed reports whether another renaming has one of the fields.
func (c *compiler) isNamed(move candidate) bool {
	return slices.ContainsFunc(c.renamings, func(other renaming) bool {
		return slices.Equal(other.from, move.from) || slices.Equal(other.to, c.placed(move.to, true)) || other.isPlaced && slices.Equal(other.to, c.placeOf(move))
	})
}

// rename notes the names of a field, unless they are the same. In a value with a place, a field of
// the spoke with the names of the hub has the path of the spoke.
func (c *compiler) rename(move renaming) {
	if from, to := move.from[len(move.from)-1], move.to[len(move.to)-1]; from != to {
		hub := append(slices.Clone(move.from[:len(move.from)-1].Rename(c.namesToHub())), to)
		c.renamed = append(c.renamed, conversion.Renamed{Spoke: move.from, Hub: hub, InElement: listAround(c.spoke, move.from) != nil})
		c.namePlaces()
	}
	move.to = c.placed(move.to, true)
	c.renamings = append(c.renamings, move)
}

// namesToHub returns the names that fields of the spoke have in the hub, by the moves so far.
func (c *compiler) namesToHub() *shape.Names {
	toHub, _ := conversion.NamesOf(slices.Concat(c.renamed, freedNames(c.renamed)))
	return toHub
}

// freedNames makes the names of each object a permutation: what has a name that another field gets, and
// gets none itself, gets the name that has become free.
func freedNames(renamed []conversion.Renamed) (freed []conversion.Renamed) {
	of := func(path conversion.Path) string { return path[len(path)-1] }
	same := func(a, b conversion.Path) bool { return slices.Equal(a[:len(a)-1], b[:len(b)-1]) }
	for _, end := range renamed {
		if slices.ContainsFunc(renamed, func(r conversion.Renamed) bool { return same(r.Hub, end.Hub) && of(r.Spoke) == of(end.Hub) }) {
			continue // not the end of a chain
		}
		start := end
		for {
			i := slices.IndexFunc(renamed, func(r conversion.Renamed) bool { return same(r.Hub, end.Hub) && of(r.Hub) == of(start.Spoke) })
			if i < 0 {
				break
			}
			start = renamed[i]
		}
		spoke, hub := slices.Clone(end.Spoke), slices.Clone(end.Hub)
		spoke[len(spoke)-1], hub[len(hub)-1] = of(end.Hub), of(start.Spoke)
		freed = append(freed, conversion.Renamed{Spoke: spoke, Hub: hub, InElement: end.InElement})
	}
	return freed
}

// noteFreed notes a name that has become free in an object that may hold anything in one of the versions.
// There, a field of the spoke with the new name, and one of the hub with the old name, are not the same.
func (c *compiler) noteFreed(spoke, hub conversion.Path) {
	hub = c.placed(hub, false)
	left, _ := resolveParent(c.spokeOwn, spoke)
	right, _ := resolveParent(c.hub, hub)
	if left.XPreserveUnknownFields || right.XPreserveUnknownFields {
		c.freed = append(c.freed, claim{path: hub})
	}
}

// freedIn returns the names that have become free in an object.
func (c *compiler) freedIn(path conversion.Path) (names []string) {
	for _, freed := range c.freed {
		if len(freed.path) == len(path)+1 && freed.path.HasPrefix(path) {
			names = append(names, freed.path[len(path)])
		}
	}
	return names
}

// preserveFreed preserves the fields that have a freed name, also those that no schema names.
func (c *compiler) preserveFreed(cur cursor, spoke, hub *schema.Structural) {
	left, right := c.unclaimed(cur, spoke, hub)
	name := cur.full[len(cur.full)-1]
	for _, own := range []struct {
		holder, field *schema.Structural
		ofSpoke       bool
	}{{spoke, left, true}, {hub, right, false}} {
		_, named := own.holder.Properties[name]
		switch {
		case own.field != nil:
			c.preserveUnclaimed(cur, own.field, own.ofSpoke)
		case !named && own.holder.XPreserveUnknownFields:
			c.preserve(cur, own.ofSpoke, false)
		}
	}
}

// renamedSchema returns a schema with other names.
func renamedSchema(s *schema.Structural, names *shape.Names) *schema.Structural {
	if names == nil || s == nil {
		return s
	}
	renamed := *s
	if s.Properties != nil {
		renamed.Properties = map[string]schema.Structural{}
	}
	for name, property := range s.Properties {
		renamed.Properties[names.Name(name)] = *renamedSchema(&property, names.Member(name))
	}
	renamed.Items = renamedSchema(s.Items, names.Each)
	if values := valuesOf(s); values != nil {
		renamed.AdditionalProperties = &schema.StructuralOrBool{Bool: s.AdditionalProperties.Bool, Structural: renamedSchema(values, names.Each)}
	}
	renamed.XListMapKeys = names.Each.All(s.XListMapKeys)
	if s.ValueValidation != nil {
		renamed.ValueValidation = renamedValidation(s.ValueValidation, names)
	}
	return &renamed
}

func renamedValidation(v *schema.ValueValidation, names *shape.Names) *schema.ValueValidation {
	renamed := *v
	renamed.Required = names.All(v.Required)
	for _, joined := range []*[]schema.NestedValueValidation{&renamed.AllOf, &renamed.AnyOf, &renamed.OneOf} {
		*joined = slices.Clone(*joined)
		for i := range *joined {
			(*joined)[i] = *renamedNested(&(*joined)[i], names)
		}
	}
	renamed.Not = renamedNested(v.Not, names)
	return &renamed
}

func renamedNested(v *schema.NestedValueValidation, names *shape.Names) *schema.NestedValueValidation {
	if v == nil || names == nil {
		return v
	}
	renamed := *v
	renamed.ValueValidation = *renamedValidation(&v.ValueValidation, names)
	renamed.Items = renamedNested(v.Items, names.Each)
	renamed.AdditionalProperties = renamedNested(v.AdditionalProperties, names.Each)
	renamed.Properties = maps.Clone(v.Properties)
	clear(renamed.Properties)
	for name, property := range v.Properties {
		renamed.Properties[names.Name(name)] = *renamedNested(&property, names.Member(name))
	}
	return &renamed
}

// shown returns a path of a side as that side has it. The compiler uses places and the names of the hub.
func (s side) shown(path conversion.Path) conversion.Path {
	for _, p := range slices.Backward(s.places) { // inner ones first
		if path.HasPrefix(p.place) {
			path = slices.Concat(p.own(s.isHub), path[len(p.place):])
		}
	}
	return path.Rename(s.ownNames)
}

// shown returns the path of a claim with the names of its side.
func (c *compiler) shown(of claim) conversion.Path {
	if slices.ContainsFunc(c.spokeClaims, func(own claim) bool { return own.fldPath == of.fldPath && slices.Equal(own.path, of.path) }) {
		return c.spokeSide().shown(of.path)
	}
	return c.hubSide().shown(of.path)
}

// renamingOf returns the renaming by a rule, nil if it is not one.
func (c *compiler) renamingOf(fldPath place) *renaming {
	i := slices.IndexFunc(c.renamings, func(r renaming) bool { return r.fldPath.String() == fldPath.String() })
	if i < 0 {
		return nil
	}
	return &c.renamings[i]
}

// renamingAround returns the innermost renaming of which a path is part, nil if there is none. The path
// has the names of the hub.
func (c *compiler) renamingAround(path conversion.Path) (found *renaming) {
	for i := range c.renamings {
		if r := &c.renamings[i]; path.HasPrefix(r.to) && (found == nil || len(r.to) > len(found.to)) {
			found = r
		}
	}
	return found
}
