// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"cmp"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// A move may give an object, list or map another path while other rules are for fields in it, or while its inside differs
// between the versions, and an each rule pairs elements. The rule claims the value on both sides, as every rule claims its
// fields. What is in it is a frame, in which what corresponds has the same path in both versions.

// frame is the whole object, the inside of an object that moves, or the elements of a list or map that a rule pairs. It has
// its own schemas and claims, with paths relative to it.
type frame struct {
	*compiler
	spoke, hub *side
	// around is the scope that has what the rule pairs, and collection how it has that. The whole object has no rule.
	around     spot
	collection conversion.Collection
	rule       *policyRule
	// selections are the elements of which each version may have others.
	selections []selection
	// conflicting are fields with the same path but different schemas on both sides.
	conflicting []claim
}

// side is the spoke or the hub.
type side struct {
	version string
	isHub   bool
	// at is the path of the frame, and schema that of what is in it. value is the schema of what a rule pairs: for elements, of
	// their list or map.
	at            conversion.Path
	schema, value *schema.Structural
	// claims are the fields that rules read and write.
	claims []claim
	// preserved are the fields that are preserved without a rule. Of those in partlyPreserved, only some values are, while all
	// others are copied.
	preserved, partlyPreserved []conversion.Path
}

// sides returns the side that has a field, the hub or the spoke, and the other side.
func (f *frame) sides(ofHub bool) (own, other *side) {
	if ofHub {
		return f.hub, f.spoke
	}
	return f.spoke, f.hub
}

// isRoot reports whether the frame is the whole object.
func (s *side) isRoot() bool { return len(s.at) == 0 }

// isText reports whether a path leads to a label or an annotation.
func (s *side) isText(path conversion.Path) bool { return s.isRoot() && isText(path) }

// isEnvelope reports whether a member of the object at a path belongs to the API server.
func (s *side) isEnvelope(at conversion.Path, name string) bool {
	return s.isRoot() && len(at) == 0 && conversion.IsEnvelope(name)
}

// resolve returns the schema at a path of the frame, or an error that explains why there is none.
func (s *side) resolve(path conversion.Path) (*schema.Structural, error) {
	if s.isRoot() {
		return resolve(s.schema, path)
	}
	return resolveIn(s.schema, path)
}

// shown returns a path of the frame from the root, as the side has it.
func (s *side) shown(path conversion.Path) conversion.Path { return slices.Concat(s.at, path) }

// ofElements reports whether the frame is the elements of a list or map, in both versions.
func (f *frame) ofElements() bool {
	return f.rule != nil && f.collection.SpokeForm != conversion.FormOne && f.collection.HubForm != conversion.FormOne
}

// name returns the path of what the frame is: of the list or map if it has elements in both versions.
func (f *frame) name(ofHub bool) conversion.Path {
	own, _ := f.sides(ofHub)
	if f.ofElements() {
		return withoutEach(own.at)
	}
	return own.at
}

// withoutEach returns the path of a list or map by that of its elements.
func withoutEach(path conversion.Path) conversion.Path {
	if len(path) > 0 && path[len(path)-1] == conversion.Each {
		return path[:len(path)-1]
	}
	return path
}

// spot is a field, or a scope, by its path in the innermost frame. A scope is a frame, or the elements of a list or map in it.
type spot struct {
	in   *frame
	path conversion.Path
}

func (s spot) is(other spot) bool { return s.in == other.in && slices.Equal(s.path, other.path) }

// isText reports whether the field is a label or an annotation.
func (s spot) isText() bool { return s.in.spoke.isText(s.path) }

// shown returns the path from the root on one side.
func (s spot) shown(ofHub bool) conversion.Path {
	own, _ := s.in.sides(ofHub)
	return own.shown(s.path)
}

// local returns the path relative to a scope around the field, as one side has it there.
func (s spot) local(scope spot, ofHub bool) conversion.Path {
	return s.shown(ofHub)[len(scope.shown(ofHub)):]
}

// child returns a field of an object or of an element.
func (s spot) child(name string) spot { return spot{s.in, append(slices.Clip(s.path), name)} }

// parent returns what has the field: for the inside of what a rule pairs, the scope around that.
func (s spot) parent() spot {
	if len(s.path) == 0 {
		return s.in.around
	}
	return spot{s.in, s.path[:len(s.path)-1]}
}

// scope returns the innermost scope around a field. A scope is in itself.
func (s spot) scope() spot {
	for len(s.path) > 0 && s.path[len(s.path)-1] != conversion.Each {
		s = s.parent()
	}
	return s
}

// beyond returns the scope around a scope, without a frame for that of the whole object.
func (s spot) beyond() spot {
	if len(s.path) == 0 {
		return s.in.around
	}
	return s.parent().scope()
}

// isIn reports whether a scope is another one, or in it.
func (s spot) isIn(scope spot) bool {
	for ; s.in != nil; s = s.beyond() {
		if s.is(scope) {
			return true
		}
	}
	return false
}

// lists returns the lists and maps around a field by their elements, the outermost first.
func (s spot) lists() (elements []spot) {
	for s = s.scope(); s.in != nil; s = s.beyond() {
		if len(s.path) > 0 || s.in.ofElements() {
			elements = append(elements, s)
		}
	}
	slices.Reverse(elements)
	return elements
}

// collection returns the schemas of the list or map that has the elements of a scope, nil on a side that has none.
func (s spot) collection() (spoke, hub *schema.Structural) {
	root := s.in.root()
	spoke, _ = resolveIn(root.spoke.schema, withoutEach(s.shown(false)))
	hub, _ = resolveIn(root.hub.schema, withoutEach(s.shown(true)))
	return spoke, hub
}

// commonScope returns the innermost scope that has all fields.
func commonScope(spots ...spot) spot {
	scope := spots[0].scope()
	for slices.ContainsFunc(spots, func(s spot) bool { return !s.scope().isIn(scope) }) {
		scope = scope.beyond()
	}
	return scope
}

// isInOneScope reports whether two fields are in the same elements of the same lists and maps.
func isInOneScope(from, to spot) bool {
	scope := commonScope(from, to)
	return !slices.Contains(from.local(scope, false), conversion.Each) && !slices.Contains(to.local(scope, true), conversion.Each)
}

// root is the frame of the whole object.
func (c *compiler) root() *frame { return c.frames[0] }

// locate finds a path of one side. What a rule pairs is itself outside of its frame.
func (c *compiler) locate(path conversion.Path, ofHub bool) spot {
	innermost := spot{c.root(), path}
	for _, f := range c.frames[1:] {
		own, _ := f.sides(ofHub)
		inside := len(path) - len(own.at)
		if path.HasPrefix(own.at) && inside < len(innermost.path) && (inside > 0 || f.ofElements()) {
			innermost = spot{f, path[len(own.at):]}
		}
	}
	return innermost
}

// frameOf returns the frame of what a rule pairs, nil if it pairs nothing.
func (c *compiler) frameOf(rule *policyRule) *frame {
	i := slices.IndexFunc(c.frames, func(f *frame) bool { return f.rule == rule })
	if i < 0 {
		return nil
	}
	return c.frames[i]
}

// candidate is a move or each rule whose paths exist.
type candidate struct {
	rule     *policyRule
	from, to conversion.Path
	// spoke and hub are the schemas of the values.
	spoke, hub *schema.Structural
}

// findFrames finds the values in which fields are converted by themselves, by the rules that pair them.
func (c *compiler) findFrames(rules []*policyRule) {
	for _, pair := range c.candidates(rules) {
		isTaken := func(f *frame) bool {
			return slices.Equal(f.paired(false), pair.from) || slices.Equal(f.paired(true), pair.to)
		}
		switch {
		case slices.ContainsFunc(c.frames[1:], isTaken): // claims find the overlap
		case pair.rule.Each != nil:
			c.findEach(pair, rules)
		case c.needsFrame(pair, rules):
			form := formOf(pair.spoke)
			c.addFrame(pair, conversion.Collection{SpokeForm: form, HubForm: form})
		}
	}
}

// candidates returns the rules that may pair what is in two values, outer ones first.
func (c *compiler) candidates(rules []*policyRule) []candidate {
	var all []candidate
	for _, rule := range rules {
		if rule.Move == nil && rule.Each == nil || len(rule.spokePaths) != 1 || len(rule.hubPaths) != 1 {
			continue
		}
		from, to := rule.spokePaths[0], rule.hubPaths[0]
		spoke, errFrom := resolve(c.root().spoke.schema, from)
		hub, errTo := resolve(c.root().hub.schema, to)
		if errFrom != nil || errTo != nil || isText(from) || isText(to) || from[len(from)-1] == conversion.Each || to[len(to)-1] == conversion.Each {
			continue
		}
		all = append(all, candidate{rule, from, to, spoke, hub})
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(len(a.from), len(b.from)) })
	return all
}

// needsFrame reports whether fields in a moved value are converted by themselves: other rules are for them, or the inside
// differs between the versions, also only in what may be null. It adds an error if that has to be, but cannot.
func (c *compiler) needsFrame(move candidate, rules []*policyRule) bool {
	inner := innerOf(move, rules)
	differs := difference(move.spoke, move.hub, nil)
	var problem string
	switch isAlike := isAlike(move.spoke, move.hub); {
	case inner == nil && (differs == "" && !nullsDiffer(move.spoke, move.hub) || !isAlike):
		return false
	case isAlike:
		problem = c.pairProblem(move)
	case elementsOf(move.spoke) != nil && elementsOf(move.hub) != nil:
		problem = differs + ": their elements cannot be paired"
	default:
		return false // claims find the overlap
	}
	if problem != "" && inner == nil && differs == "" {
		return false // a warning names the nulls
	}
	if fldPath, rule := move.rule.fldPath.Child("move").Child("to"), move.rule.Move; problem != "" && inner != nil {
		c.invalid(fldPath, rule.To, "cannot be moved from %s while a rule is for %s in it: %s", rule.From, inner, problem)
	} else if problem != "" {
		c.invalid(fldPath, rule.To, "cannot be moved from %s: %s, and %s", rule.From, differs, problem)
	}
	return problem == ""
}

// innerOf returns the path of a field in a moved value for which there is another rule, nil if there is
// none.
func innerOf(move candidate, rules []*policyRule) conversion.Path {
	for _, rule := range rules {
		for _, path := range rule.spokePaths {
			if len(path) > len(move.from) && path.Meets(move.from) {
				return path
			}
		}
		for _, path := range rule.hubPaths {
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

// pairProblem returns why what is in two values cannot be paired, empty if it can.
func (c *compiler) pairProblem(pair candidate) string {
	from, to := c.locate(pair.from, false), c.locate(pair.to, true)
	switch {
	case !isInOneScope(from, to):
		if missing := missingMove(from, to); missing != "" {
			return "they are in different elements" + missing
		}
		return "they are not in elements of the same lists and maps"
	case pair.rule.Move != nil && (namesKey(c.root().spoke, pair.from) || namesKey(c.root().hub, pair.to)):
		return "a rule for one key of a map moves all of its value: write [*] for all keys, or move the fields in it one by one"
	case len(pair.from) == 1 && pair.from[0] == "status" || len(pair.to) == 1 && pair.to[0] == "status":
		return ".status has the same name in every version: move the fields in it one by one"
	case pair.rule.Move != nil && !isStruct(pair.spoke) && !sameElements(pair.spoke, pair.hub):
		return "its elements are no objects, and are not paired"
	}
	return ""
}

// paired returns the path of what the rule of a frame pairs.
func (f *frame) paired(ofHub bool) conversion.Path {
	return slices.Concat(f.around.shown(ofHub), f.collection.At(ofHub))
}

// addFrame adds the frame of what a rule pairs, in the innermost scope that has both.
func (c *compiler) addFrame(of candidate, pair conversion.Collection) {
	from, to := c.locate(of.from, false), c.locate(of.to, true)
	f := &frame{compiler: c, around: commonScope(from, to), collection: pair, rule: of.rule}
	f.collection.Spoke, f.collection.Hub = from.local(f.around, false), to.local(f.around, true)
	root := c.root()
	f.spoke = &side{version: root.spoke.version, at: f.collection.Inside(false, f.around.shown(false)), schema: elementOf(pair, of.spoke, false), value: of.spoke}
	f.hub = &side{version: root.hub.version, isHub: true, at: f.collection.Inside(true, f.around.shown(true)), schema: elementOf(pair, of.hub, true), value: of.hub}
	c.frames = append(c.frames, f)
}
